package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

// explainWidth is the width of the texts, as in kubectl explain.
const explainWidth = 80

// Explanation writes what a field is, as kubectl explain does. With recursive, it lists fields of fields by name and type only.
func Explanation(w io.Writer, e *schema.Explanation, recursive bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "KIND:       %s\nVERSION:    %s\n\n", e.Kind, e.APIVersion)
	if e.Path != "" {
		fmt.Fprintf(&b, "FIELD: %s <%s>%s\n\n", e.Name, e.Type, requiredMark(&e.Field))
	}
	paragraphsBelow(&b, "DESCRIPTION", paragraphs(e.Description))
	paragraphsBelow(&b, "VALUES", valuesOf(&e.Field))
	paragraphsBelow(&b, "RULES", e.Rules)
	paragraphsBelow(&b, "CLUSTERAWSADM", e.Notes)
	if len(e.Fields) > 0 {
		b.WriteString("FIELDS:\n")
		fields(&b, e.Fields, "  ", recursive)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func requiredMark(f *schema.Field) string {
	if f.Required {
		return " -required-"
	}
	return ""
}

// paragraphsBelow writes paragraphs below a title, or nothing if there are none.
func paragraphsBelow(b *strings.Builder, title string, all []string) {
	if len(all) == 0 {
		return
	}
	b.WriteString(title + ":\n")
	for _, p := range all {
		indented(b, p, "    ")
	}
	b.WriteString("\n")
}

// paragraphs splits a description. Lines that are indented or begin with a dash stay lines.
func paragraphs(description string) (all []string) {
	joins := false
	for line := range strings.SplitSeq(description, "\n") {
		item := strings.HasPrefix(strings.TrimSpace(line), "-") || strings.HasPrefix(line, " ")
		switch {
		case strings.TrimSpace(line) == "":
			joins = false
		case joins && !item:
			all[len(all)-1] += " " + strings.TrimSpace(line)
		default:
			all = append(all, strings.TrimRight(line, " "))
			joins = true
		}
	}
	return all
}

// valuesOf says which values a field may have.
func valuesOf(f *schema.Field) (all []string) {
	if len(f.Values) > 0 {
		values := slices.Clone(f.Values)
		for i, v := range values {
			if v == "" {
				values[i] = `""`
			}
		}
		all = append(all, "one of: "+strings.Join(values, ", "))
	}
	if len(f.Limits) > 0 {
		all = append(all, strings.Join(f.Limits, ", "))
	}
	if f.Default != "" {
		all = append(all, "default: "+f.Default)
	}
	return all
}

func indented(b *strings.Builder, paragraph, indent string) {
	for line := range strings.SplitSeq(text.Wrap(paragraph, explainWidth-len(indent)), "\n") {
		b.WriteString(indent + line + "\n")
	}
}

// fields lists the fields of a field: by name and type, and unless the list is recursive with their texts.
func fields(b *strings.Builder, all []schema.Field, indent string, recursive bool) {
	for i := range all {
		f := &all[i]
		fmt.Fprintf(b, "%s%s\t<%s>%s\n", indent, f.Name, f.Type, requiredMark(f))
		if recursive {
			if note := ownNote(f); note != "" {
				b.WriteString(indent + "  # " + note + "\n")
			}
			fields(b, f.Fields, indent+"  ", true)
			continue
		}
		for _, p := range paragraphs(f.Description) {
			indented(b, p, indent+"  ")
		}
		for _, p := range append(valuesOf(f), noteLine(ownNote(f))...) {
			indented(b, p, indent+"  ")
		}
		b.WriteString("\n")
	}
}

// ownNote is the note about the field itself; those about a field above it are said there.
func ownNote(f *schema.Field) string {
	if f.Inherited || len(f.Notes) == 0 {
		return ""
	}
	return f.Notes[0]
}

func noteLine(note string) []string {
	if note == "" {
		return nil
	}
	return []string{"clusterawsadm: " + note}
}

// Kinds lists kinds with their API versions.
func Kinds(w io.Writer, all []schema.Kind) error {
	var b strings.Builder
	for _, k := range all {
		versions := k.APIVersions[0]
		group, _, _ := strings.Cut(versions, "/")
		for _, older := range k.APIVersions[1:] {
			versions += ", " + strings.TrimPrefix(older, group+"/")
		}
		fmt.Fprintf(&b, "%-31s %s\n", k.Name, versions)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
