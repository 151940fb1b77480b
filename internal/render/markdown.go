package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PlanMarkdown writes a plan for a comment on a pull request: the numbers, the cost, conflicts and what is replaced or
// deleted first; all else is folded.
func PlanMarkdown(w io.Writer, p plan.Plan, v PlanView) error {
	v.Style, v.Width, v.Full = Style{}, 0, false
	var b strings.Builder
	fmt.Fprintf(&b, "### Plan of the cluster `%s` in %s\n\n", v.Cluster, v.Region)
	b.WriteString(emphasized(Headline(p, v)) + "\n")
	if line := strings.TrimSpace(CostLine(p.Cost, v.Style)); line != "" {
		b.WriteString("\n" + emphasized(line) + "\n")
	}
	conflicts, replaced, deleted, rest := rowsOf(p)
	table(&b, "Conflict", "Difference", conflicts, false)
	table(&b, "Replaced", "Because", replaced, len(replaced) > mostRows)
	table(&b, "Deleted", "", deleted, len(deleted) > mostRows)
	for _, note := range v.Notes {
		b.WriteString("\n> " + cell(note) + "\n")
	}
	if len(rest) > 0 {
		table(&b, "Created or changed", "Fields", rest, true)
	}
	if !p.Empty() {
		var all strings.Builder
		if err := Plan(&all, p, v); err != nil {
			return err
		}
		text := all.String()
		if len(text) > mostText {
			text = text[:strings.LastIndexByte(text[:mostText], '\n')+1] + "… (the plan is longer than a comment may be)\n"
		}
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		b.WriteString("\n<details><summary>The whole plan</summary>\n\n" + fence + "text\n" + text + fence + "\n\n</details>\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mostRows is the longest table that is not folded.
const mostRows = 10

// mostText is the most of a plan in a comment: one has 65536 characters at most, on GitHub
// (https://github.com/orgs/community/discussions/27190).
const mostText = 40_000

// emphasized makes the text before the first colon bold.
func emphasized(line string) string {
	title, text, ok := strings.Cut(line, ":")
	if !ok {
		return cell(line)
	}
	return "**" + title + "**:" + cell(text)
}

// cell escapes a text for Markdown, in a table also.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`", "@", "@\u200b", "$", `\$`).Replace(text)
}

// table writes rows, folded if there are many.
func table(b *strings.Builder, first, second string, rows [][2]string, fold bool) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n")
	if fold {
		fmt.Fprintf(b, "<details><summary>%s: %d</summary>\n\n", first, len(rows))
	}
	if second == "" {
		fmt.Fprintf(b, "| %s |\n|---|\n", first)
	} else {
		fmt.Fprintf(b, "| %s | %s |\n|---|---|\n", first, second)
	}
	for i, r := range rows {
		if i == mostFolded {
			fmt.Fprintf(b, "| … and %d more |%s\n", len(rows)-i, strings.Repeat(" |", min(len(second), 1)))
			break
		}
		b.WriteString("| `" + strings.ReplaceAll(r[0], "`", "") + "` |")
		if second != "" {
			b.WriteString(" " + r[1] + " |")
		}
		b.WriteString("\n")
	}
	if fold {
		b.WriteString("\n</details>\n")
	}
}

// mostFolded is the longest table.
const mostFolded = 100

// rowsOf sorts the steps of a plan by what a reviewer looks at.
func rowsOf(p plan.Plan) (conflicts, replaced, deleted, rest [][2]string) {
	within := partsOf(p)
	for _, s := range p.Steps {
		name := string(s.Resource)
		if s.Label != "" {
			name = string(s.Label)
		}
		row := [2]string{name, changesOf(s)}
		switch {
		case s.Action == plan.Conflict:
			conflicts = append(conflicts, row)
		case actionOf(s) == replace:
			replaced = append(replaced, row)
		case within.contain(s):
		case s.Action == plan.Remove:
			deleted = append(deleted, row)
		case s.Action == plan.Update:
			rest = append(rest, row)
		case s.Action == plan.Create:
			rest = append(rest, [2]string{name, "new"})
		}
	}
	return conflicts, replaced, deleted, rest
}

// changesOf lists the changes of a step, with where they come from.
func changesOf(s plan.Step) string {
	var all []string
	for _, c := range s.Diff {
		text := cell(lineOf(c).text(0, actionOf(s), Style{}))
		if i := strings.Index(text, "  # "); i >= 0 {
			text = strings.TrimSpace(text[:i]) + " (" + text[i+4:] + ")"
		}
		if text = strings.TrimSpace(text); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 && s.Origin != "" {
		return cell(s.Origin)
	}
	return strings.Join(all, "<br>")
}
