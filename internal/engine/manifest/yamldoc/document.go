// Package yamldoc splits files into YAML documents, replaces the ${VARIABLES} of templates, and keeps the line of each
// value in its file.
package yamldoc

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Document is one YAML document and its position in the source.
type Document struct {
	File string
	From []int // source line of each line of the document
	Root *yaml.Node

	lines []string
}

// At converts a line of the document, from 1, to a position in the source.
func (d Document) At(line int) manifest.Position {
	if len(d.From) == 0 {
		return manifest.Position{File: d.File}
	}
	return manifest.Position{File: d.File, Line: d.From[min(max(line, 1), len(d.From))-1]}
}

// IsReadable reports whether a source is YAML whose keys are texts, with or without values for its variables.
func IsReadable(s input.Source) bool {
	t := Text{File: s.Name}
	for i, line := range strings.Split(string(s.Data), "\n") {
		t.Lines = append(t.Lines, strings.TrimSuffix(line, "\r"))
		t.From = append(t.From, i+1)
	}
	documents, problems := Split(t)
	return len(problems) == 0 && !slices.ContainsFunc(documents, func(d Document) bool {
		return hasOddKey(d.Root)
	})
}

// hasOddKey reports whether a key of a mapping is not a text.
func hasOddKey(n *yaml.Node) bool {
	for i, below := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && below.Kind != yaml.ScalarNode && below.Kind != yaml.AliasNode || hasOddKey(below) {
			return true
		}
	}
	return false
}

// maxDocuments is the largest number of documents in a file.
const maxDocuments = 10_000

// Split splits a text at its "---" lines and parses each part, so that an error in one
// document does not hide errors in others.
func Split(t Text) ([]Document, []manifest.Problem) {
	t = withoutDirectives(t)
	var documents []Document
	var problems []manifest.Problem
	start := 0
	for i := 0; i <= len(t.Lines); i++ {
		if i < len(t.Lines) && (i == start || !isSeparator(t.Lines[i])) {
			continue
		}
		found, bad := parseAny(t, start, i)
		documents = append(documents, found...)
		problems = append(problems, bad...)
		if len(documents)+len(problems) > maxDocuments {
			at := manifest.Position{File: t.File, Line: t.From[start]}
			return nil, []manifest.Problem{
				{Position: at, What: fmt.Sprintf("there are more than %d documents", maxDocuments), Fix: "remove those that do not belong to the cluster"},
			}
		}
		start = i
	}
	return documents, problems
}

func isSeparator(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// parseAny parses one part: YAML documents, or a stream of JSON values.
func parseAny(t Text, start, end int) (documents []Document, problems []manifest.Problem) {
	parts := jsonStream(t, start, end)
	if parts == nil {
		return parse(t, start, end)
	}
	for _, part := range parts {
		found, bad := parse(part, 0, len(part.Lines))
		documents = append(documents, found...)
		problems = append(problems, bad...)
	}
	return documents, problems
}

// withoutDirectives replaces the lines with directives, such as "%YAML 1.2", by empty ones: the
// parser knows YAML 1.1 only.
func withoutDirectives(t Text) Text {
	lines, start := slices.Clone(t.Lines), true
	for i, line := range lines {
		switch {
		case start && strings.HasPrefix(strings.TrimPrefix(line, "\ufeff"), "%"):
			lines[i] = ""
		case strings.TrimSpace(line) == "..." && strings.HasPrefix(line, "..."):
			start = true
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			start = false
		}
	}
	t.Lines = lines
	return t
}

// jsonStream splits a part that consists of several JSON values, as kubectl does. Each value is a
// part of its own, with spaces before it. It returns nil for any other text.
func jsonStream(t Text, start, end int) []Text {
	whole := strings.Join(t.Lines[start:end], "\n")
	if !strings.HasPrefix(strings.TrimLeft(whole, " \t\r\n\ufeff"), "{") {
		return nil
	}
	whole = strings.Replace(whole, "\ufeff", " ", 1)
	var parts []Text
	decoder, from := json.NewDecoder(strings.NewReader(whole)), 0
	for {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil
		}
		to := int(decoder.InputOffset())
		line := start + strings.Count(whole[:from], "\n")
		part := Text{File: t.File, Lines: strings.Split(whole[from:to], "\n")}
		part.From = t.From[line : line+len(part.Lines)]
		parts = append(parts, part)
		from = to
	}
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// parse parses the lines of one part. It contains several documents if they end with
// "...".
func parse(t Text, start, end int) (documents []Document, problems []manifest.Problem) {
	lines := t.Lines[start:end]
	d := Document{File: t.File, From: t.From[start:end], lines: lines}
	for i, line := range lines {
		if !utf8.ValidString(line) {
			return nil, []manifest.Problem{{Position: d.At(i + 1), What: "the text is not UTF-8", Fix: "save the file as UTF-8"}}
		}
	}
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, manifest.Problem{Position: d.At(1), What: fmt.Sprintf("the YAML is invalid: %v", r)})
		}
	}()
	decoder := yaml.NewDecoder(strings.NewReader(strings.Join(lines, "\n")))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return documents, problems
		}
		if err != nil {
			return documents, append(problems, d.syntax(err, lines))
		}
		if content := single(&root); content != nil {
			documents = append(documents, Document{File: d.File, From: d.From, Root: content, lines: lines})
		}
	}
}

// single returns the content of a document, or nil for an empty one.
func single(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
		return nil
	}
	content := root.Content[0]
	if content.Kind == yaml.ScalarNode && content.ShortTag() == nullTag {
		return nil
	}
	return content
}

// syntax converts an error of the YAML parser to a problem. The parser counts lines from
// the start of the part. Its scanner counts from one, its grammar from zero.
func (d Document) syntax(err error, lines []string) manifest.Problem {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := regex.Of(`^line (\d+): `).FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = what[len(m[0]):]
		if regex.Of(`^did not find expected (key|node content|'|<)|^found undefined tag`).MatchString(what) {
			line++
		}
	}
	fix := "check the indentation, and quote text that holds special characters"
	if m := regex.Of(`^unknown anchor '(.*)' referenced`).FindStringSubmatch(what); m != nil {
		fix = "quote text that begins with *, or define the anchor"
		line = 1 + slices.IndexFunc(lines, func(text string) bool { return strings.Contains(text, "*"+m[1]) })
	}
	if tab := slices.IndexFunc(lines, tabbed); tab >= 0 {
		line, what, fix = tab+1, "a tab is used for indentation", "use spaces"
	}
	if odd := slices.IndexFunc(lines, noBreak); odd >= 0 {
		line, what, fix = odd+1, "a no-break space is used for indentation", "use spaces"
	}
	return manifest.Problem{Position: d.At(line), What: "the YAML is invalid: " + what, Fix: fix}
}

func tabbed(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " "), "\t")
}

func noBreak(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " "), "\u00a0")
}

// Short tags of the YAML types.
const (
	nullTag   = "!!null"
	boolTag   = "!!bool"
	intTag    = "!!int"
	floatTag  = "!!float"
	StringTag = "!!str"
	timeTag   = "!!timestamp"
	binaryTag = "!!binary"
	mergeTag  = "!!merge"
)

// Values converts a YAML node tree to JSON values, as kubectl does before it sends a
// document, and records the position of each value.
type Values struct {
	Doc      Document
	Lines    map[string]manifest.Position // by path; the root is ""
	Texts    map[string][]int             // by path: the source line of each line of a block of text
	Problems []manifest.Problem
	Budget   int  // number of nodes that may still be visited; aliases can multiply nodes
	cut      bool // a limit was exceeded and reported
	depth    int  // current depth; an alias inside its own anchor would recurse forever

	// Repeated is called for each duplicate key of a mapping, of which the last value is used.
	// If it is nil, duplicate keys are problems.
	Repeated func(manifest.Problem)
}

// Limits of a document after the expansion of its aliases.
const (
	MaxNodes = 200_000
	maxDepth = 64
)

func (v *Values) report(n *yaml.Node, path, what, fix string) {
	v.Problems = append(v.Problems, manifest.Problem{Position: v.Doc.At(n.Line), Path: path, What: what, Fix: fix})
}

// Value converts a node.
func (v *Values) Value(n *yaml.Node, path string) any {
	v.Budget--
	v.depth++
	defer func() { v.depth-- }()
	if v.Budget < 0 || v.depth > maxDepth {
		if !v.cut {
			v.report(n, "", "the document is nested too deeply, or too large once its aliases are expanded", "write it without aliases")
		}
		v.cut = true
		return nil
	}
	if _, known := v.Lines[path]; !known {
		v.Lines[path] = v.Doc.At(n.Line)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return v.mapping(n, path)
	case yaml.SequenceNode:
		items := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			items = append(items, v.Value(item, path+"["+strconv.Itoa(i)+"]"))
		}
		return items
	case yaml.AliasNode:
		return v.Value(n.Alias, path)
	case yaml.ScalarNode:
		if lines := v.Doc.block(n); lines != nil {
			if v.Texts == nil {
				v.Texts = map[string][]int{}
			}
			v.Texts[path] = lines
		}
		return v.scalar(n, path)
	case yaml.DocumentNode:
		return nil
	default:
		return nil
	}
}

func (v *Values) mapping(n *yaml.Node, path string) any {
	result := make(map[string]any, len(n.Content)/2)
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], n.Content[i+1]
		if key.ShortTag() == mergeTag {
			v.merge(result, item, path)
			continue
		}
		name, ok := v.key(key, path)
		if !ok {
			continue
		}
		below := Join(path, name)
		if line, twice := first[name]; twice {
			again := manifest.Problem{
				Position: v.Doc.At(key.Line), Path: below, Fix: "keep one of them",
				What: fmt.Sprintf("the key %q is duplicated, first on line %d", name, v.Doc.At(line).Line),
			}
			if v.Repeated == nil {
				v.Problems = append(v.Problems, again)
				continue
			}
			again.What += ": the last value is used, as in Cluster API"
			v.Repeated(again)
		}
		first[name] = key.Line
		v.Lines[below] = v.Doc.At(key.Line)
		result[name] = v.Value(item, below)
	}
	return result
}

// merge adds the entries of a "<<" key; keys of the mapping itself take precedence.
func (v *Values) merge(into map[string]any, n *yaml.Node, path string) {
	switch more := v.Value(n, path).(type) {
	case map[string]any:
		fill(into, more)
	case []any:
		for _, one := range more {
			if m, ok := one.(map[string]any); ok {
				fill(into, m)
			}
		}
	default:
		v.report(n, path, `"<<" merges something that is not a mapping`, "point it at a mapping")
	}
}

func fill(into, more map[string]any) {
	for k, x := range more {
		if _, set := into[k]; !set {
			into[k] = x
		}
	}
}

// key returns the key of a mapping as a string, as in JSON.
func (v *Values) key(n *yaml.Node, path string) (string, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == nullTag {
		v.report(n, path, "a key is not a plain text", "quote it")
		return "", false
	}
	return n.Value, true
}

func (v *Values) scalar(n *yaml.Node, path string) any {
	switch n.ShortTag() {
	case nullTag:
		return nil
	case boolTag:
		return strings.EqualFold(n.Value, "true")
	case intTag, floatTag:
		return v.number(n, path)
	case StringTag, timeTag:
		if truth, ok := oldBool(n.Value); ok && n.Style == 0 {
			return truth
		}
		return n.Value
	case binaryTag:
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			v.report(n, path, "the !!binary value is not base64", "encode it with base64")
			return ""
		}
		return string(raw)
	default:
		v.report(n, path, fmt.Sprintf("the YAML tag %s has no meaning here", n.Tag), "remove it")
		return n.Value
	}
}

// oldBool parses the booleans of YAML 1.1, which kubectl accepts.
func oldBool(s string) (truth, ok bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	default:
		return false, false
	}
}

// number returns an int64 if the value fits, otherwise a float64.
func (v *Values) number(n *yaml.Node, path string) any {
	var whole int64
	if n.ShortTag() == intTag && n.Decode(&whole) == nil {
		return whole
	}
	var fraction float64
	if err := n.Decode(&fraction); err != nil || math.IsNaN(fraction) || math.IsInf(fraction, 0) {
		v.report(n, path, fmt.Sprintf("%s is not a number that JSON knows", n.Value), "write a finite number, or quote it")
		return nil
	}
	return fraction
}

// Join returns the path of a field below another one.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// ListItems returns the objects of a document: the items of a JSON list or of a list object, or the
// document itself.
func ListItems(root *yaml.Node) []*yaml.Node {
	if root.Kind == yaml.SequenceNode {
		return root.Content
	}
	if items, ok := ItemsOf(root); ok {
		return items
	}
	return []*yaml.Node{root}
}

// ScalarField returns the value of a field of a mapping; "" if it has none.
func ScalarField(n *yaml.Node, name string) string {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// ItemsOf returns the items of a v1 List, or of the list of one kind, such as ClusterList, whose
// items may lack apiVersion and kind.
func ItemsOf(root *yaml.Node) ([]*yaml.Node, bool) {
	kind, version := ScalarField(root, "kind"), ScalarField(root, "apiVersion")
	of, isList := strings.CutSuffix(kind, "List")
	if !isList || version == "" {
		return nil, false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "items" || root.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		items := slices.Clone(root.Content[i+1].Content)
		for j, item := range items {
			if of != "" && item.Kind == yaml.MappingNode && ScalarField(item, "kind")+ScalarField(item, "apiVersion") == "" {
				items[j] = withFields(item, "apiVersion", version, "kind", of)
			}
		}
		return items, true
	}
	return nil, kind == "List" && version == "v1"
}

// withFields returns a copy of a mapping with more fields, on its own line.
func withFields(n *yaml.Node, fields ...string) *yaml.Node {
	copied := *n
	copied.Content = slices.Clone(n.Content)
	for _, text := range fields {
		copied.Content = append(copied.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: StringTag, Value: text, Line: n.Line, Column: n.Column})
	}
	return &copied
}
