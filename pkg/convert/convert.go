// Package convert converts manifests of older API versions of Cluster API and of Cluster API Provider
// AWS to v1beta2. It edits the text, and keeps comments, order, quotes, line endings and the
// ${VARIABLES} of templates. The notes list fields that v1beta2 does not have, and fields that have
// another meaning there.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Result is a converted file.
type Result struct {
	Text      []byte
	Converted int             // objects of an older API version
	Notes     []input.Problem // what was not carried, or has another meaning
}

// File converts the objects of one file. The error is an *input.InvalidError if the text cannot be
// read; then nothing is converted.
func File(name string, data []byte) (*Result, error) {
	c := &converter{file: name}
	c.find(string(data))
	var out strings.Builder
	for _, part := range split(string(data)) {
		out.WriteString(c.part(part))
	}
	if len(c.problems) > 0 {
		return nil, &input.InvalidError{Problems: c.problems}
	}
	return &Result{Text: []byte(out.String()), Converted: c.converted, Notes: c.notes}, nil
}

// converter converts one file.
type converter struct {
	file      string
	converted int
	tooOld    bool              // the file has objects that are too old, which is said
	clusters  map[string]string // name of the Cluster, by "kind/name" of its infrastructure or control plane
	notes     []input.Problem
	problems  []input.Problem
}

// part is a part of a file with one document at most.
type part struct {
	text  string
	first int // lines before it
}

// split splits a file at "---" and after "...". A file of JSON values is split between them.
func split(text string) (parts []part) {
	if parts = jsonParts(text); parts != nil {
		return parts
	}
	start, line, first := 0, 0, 0
	cut := func(at, line int) {
		if at > start {
			parts = append(parts, part{text[start:at], first})
			start, first = at, line
		}
	}
	for at := 0; at < len(text); line++ {
		next := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		switch l := strings.TrimRight(text[at:next], "\r\n"); {
		case isMarker(l, "---"):
			cut(at, line)
		case isMarker(l, "..."):
			cut(next, line+1)
		}
		at = next
	}
	cut(len(text), line)
	return parts
}

func isMarker(line, marker string) bool {
	rest, ok := strings.CutPrefix(line, marker)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// jsonParts splits a stream of several JSON values.
func jsonParts(text string) (parts []part) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return nil
	}
	for d, from := json.NewDecoder(strings.NewReader(text)), 0; ; {
		var value json.RawMessage
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			if len(parts) < 2 {
				return nil
			}
			return append(parts, part{text[from:], strings.Count(text[:from], "\n")})
		}
		if err != nil {
			return nil
		}
		to := int(d.InputOffset())
		parts = append(parts, part{text[from:to], strings.Count(text[:from], "\n")})
		from = to
	}
}

// mask replaces the ${VARIABLES} of a template by words of the same length, so that it is YAML.
func mask(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	out := []byte(text)
	for i := 0; i+1 < len(out); i++ {
		if out[i] != '$' || out[i+1] != '{' {
			continue
		}
		end := closing(text, i+2)
		for j := i; j < end; j++ {
			if !isWordByte(out[j]) {
				out[j] = 'x'
			}
		}
		if isAlone(text, i, end) {
			out[i] = '#'
		}
		i = end - 1
	}
	return string(out)
}

// isAlone reports whether a variable is all that is on its line: it stands for lines of the manifest.
func isAlone(text string, start, end int) bool {
	from, to := strings.LastIndexByte(text[:start], '\n')+1, len(text)
	if n := strings.IndexByte(text[start:], '\n'); n >= 0 {
		to = start + n
	}
	return strings.Contains(text, "\n") && end-start > 2 && strings.TrimSpace(text[from:to]) == text[start:end]
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c >= 0x80
}

// closing returns the offset after the brace that ends a variable, or after "${".
func closing(text string, from int) int {
	depth := 0
	for i := from; i < len(text) && text[i] != '\n'; i++ {
		switch {
		case text[i] == '{' && text[i-1] == '$':
			depth++
		case text[i] == '}' && depth == 0:
			return i + 1
		case text[i] == '}':
			depth--
		}
	}
	return from
}

// prepared returns the text as the parser reads it: directives and a byte order mark are replaced.
func prepared(text string) (mark, body, masked string) {
	body, found := strings.CutPrefix(text, "\ufeff")
	if found {
		mark = "\ufeff"
	}
	masked = mask(body)
	return mark, body, regex.Of(`(?m)^%`).ReplaceAllString(masked, "#")
}

// document parses one part. The node is nil for an empty one.
func document(masked string) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	var d yaml.Node
	if err := yaml.Unmarshal([]byte(masked), &d); err != nil {
		return nil, err
	}
	if d.Kind != yaml.DocumentNode || len(d.Content) == 0 {
		return nil, nil
	}
	return d.Content[0], nil
}

// part converts one part and returns its text.
func (c *converter) part(in part) string {
	mark, body, masked := prepared(in.text)
	root, err := document(masked)
	if err != nil {
		c.problems = append(c.problems, c.syntax(err, in))
		return ""
	}
	if root != nil && isTooOld(field(root, "apiVersion")) {
		if !c.tooOld {
			c.problems = append(c.problems, input.Problem{
				Position: input.Position{File: c.file, Line: in.first + root.Line},
				What:     field(root, "apiVersion") + " cannot be converted: this version has no control planes, only machines",
				Fix:      "make a new manifest with clusterawsadm cluster generate",
			})
		}
		c.tooOld = true
		return ""
	}
	if root == nil || !needed(root) {
		return in.text
	}
	wanted, notes, count := c.rewrite(body, masked, in.first, root, true)
	if wanted == nil {
		c.problems = append(c.problems, input.Problem{
			Position: input.Position{File: c.file, Line: in.first + root.Line}, What: "the document has a form of YAML that is not converted",
			Fix: "write it with plain keys and less nested anchors",
		})
		return ""
	}
	c.converted += count
	c.notes = append(c.notes, notes...)
	kept, _, _ := c.rewrite(body, masked, in.first, root, false)
	for _, tree := range []*tree{kept, wanted} {
		if tree == nil {
			continue
		}
		if text := tree.print(); means(text, wanted.root) {
			return mark + text
		}
	}
	c.problems = append(c.problems, input.Problem{
		Position: input.Position{File: c.file, Line: in.first + root.Line}, What: "the document cannot be converted as text", Fix: "report this, with the document",
	})
	return ""
}

// tree is a document with its text.
type tree struct {
	source       *source
	prefix, rest string
	root         *node
}

// rewrite parses a document and applies the rules. With expand, aliases are replaced by what they
// stand for.
func (c *converter) rewrite(body, masked string, first int, root *yaml.Node, expand bool) (*tree, []input.Problem, int) {
	s := newSource(body, masked, first)
	s.expand = expand
	t := &tree{source: s}
	t.prefix, t.root, t.rest = s.root(root)
	if s.odd || t.root == nil {
		return nil, nil, 0
	}
	if !expand {
		s.link(root, t.root)
	}
	s.indentation(t.root)
	s.flush = isFlush(t.root)
	o := &objects{converter: c}
	o.all(t.root)
	return t, o.notes, o.count
}

// indentation finds out how far blocks are indented.
func (s *source) indentation(root *node) {
	for _, e := range root.entries {
		if v := e.value; !v.flow && v.column > root.column && v.column <= 8 {
			s.step = v.column - root.column
			return
		}
	}
}

// isFlush reports whether the first list that is the value of a key is not indented.
func isFlush(n *node) bool {
	found := -1
	var visit func(*node)
	visit = func(n *node) {
		for _, e := range n.entries {
			if v := e.value; found < 0 && n.kind == yaml.MappingNode && v.kind == yaml.SequenceNode && !v.flow && v.column >= 0 {
				found = v.column - n.column
			}
			visit(e.value)
		}
	}
	visit(n)
	return found == 0
}

// link sets the targets of aliases.
func (s *source) link(root *yaml.Node, n *node) {
	anchors := map[*yaml.Node]*node{}
	var pair func(y *yaml.Node, n *node, visit func(*yaml.Node, *node))
	pair = func(y *yaml.Node, n *node, visit func(*yaml.Node, *node)) {
		visit(y, n)
		width := 1
		if y.Kind == yaml.MappingNode {
			width = 2
		}
		for i, e := range n.entries {
			if k := i*width + width - 1; k < len(y.Content) && y.Kind != yaml.AliasNode {
				pair(y.Content[k], e.value, visit)
			}
		}
	}
	pair(root, n, func(y *yaml.Node, n *node) { anchors[y] = n })
	pair(root, n, func(y *yaml.Node, n *node) {
		if y.Kind == yaml.AliasNode {
			n.target = anchors[y.Alias]
		}
	})
}

// print returns the text of the document.
func (t *tree) print() string {
	p := &printer{end: t.source.end, step: t.source.step, flush: t.source.flush}
	p.write(t.prefix)
	if t.root.flow {
		p.write(t.root.text())
	} else {
		p.block(t.root, t.root.column, false)
	}
	p.write(t.rest)
	text := p.out.String()
	if !strings.HasSuffix(t.source.text, "\n") {
		text = strings.TrimSuffix(text, t.source.end)
	}
	return text
}

// means reports whether a text has the values of a tree.
func means(text string, want *node) bool {
	_, body, masked := prepared(text)
	root, err := document(masked)
	if err != nil || root == nil {
		return false
	}
	s := newSource(body, masked, 0)
	s.expand = true
	_, got, _ := s.root(root)
	return !s.odd && got != nil && reflect.DeepEqual(got.meaning(), want.meaning())
}

// meaning returns a value without its form.
func (n *node) meaning() any {
	switch n = n.resolved(); n.kind { //nolint:exhaustive // all others are scalars
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range n.entries {
			out[e.key] = e.value.meaning()
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, e := range n.entries {
			out = append(out, e.value.meaning())
		}
		return out
	default:
		if n.tag == "!!null" {
			return nil
		}
		return n.tag + " " + n.value
	}
}

// syntax converts an error of the parser.
func (c *converter) syntax(err error, in part) input.Problem {
	what, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := regex.Of(`^line (\d+): `).FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = what[len(m[0]):]
	}
	fix := "correct it first: cluster validate says more"
	if strings.Contains(in.text, "{{") {
		fix = "if it is a Helm or Go template, render it first"
	}
	return input.Problem{Position: input.Position{File: c.file, Line: in.first + line}, What: "the YAML is invalid: " + what, Fix: fix}
}
