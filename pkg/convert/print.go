package convert

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// printer writes a tree as text.
type printer struct {
	out strings.Builder

	end   string // line end
	step  int
	flush bool // lists are not indented below their key
}

func (p *printer) write(text string) { _, _ = p.out.WriteString(text) }

// block writes a mapping or list at a column. With sameLine, its first entry follows a dash.
func (p *printer) block(n *node, column int, sameLine bool) {
	for i, e := range n.entries {
		if i == 0 && (len(n.was) == 0 || n.was[0] != e) {
			e.head = e.head[len(blankLines(e.head)):]
		}
		p.entry(e, n.kind, column, sameLine && i == 0)
	}
}

// entry writes one entry with its line end.
func (p *printer) entry(e *entry, of yaml.Kind, column int, sameLine bool) {
	by := 0
	if e.column >= 0 {
		by = column - e.column
	}
	if !sameLine {
		p.write(shift(e.head, by))
		if e.inlineFirst(of) { // a comment before the first entry is written before the dash
			head := e.value.entries[0].head
			p.write(shift(head, column-indentOf(head)))
		}
		p.write(strings.Repeat(" ", column))
	}
	if of == yaml.MappingNode {
		p.write(e.keyText())
	}
	switch v := e.value; {
	case v.isBlock():
		p.nested(e, of, column, by)
	case v.kind == yaml.ScalarNode && v.raw == "" && v.tag == "!!null":
		p.write(e.sep + e.trail + p.end)
	default:
		p.inline(e, of, column, by)
	}
	p.write(shift(e.tail, by))
}

// isBlock reports whether a value is a mapping or list that is not in braces.
func (n *node) isBlock() bool {
	return (n.kind == yaml.MappingNode || n.kind == yaml.SequenceNode) && !n.flow
}

// inline writes a scalar, an alias, or a value in braces.
func (p *printer) inline(e *entry, of yaml.Kind, column, by int) {
	v, sep := e.value, e.sep
	if e.first != v && (!strings.Contains(sep, " ") || strings.Contains(sep, "\n")) || sep == "" {
		sep = ": "
		if of == yaml.SequenceNode {
			sep = "- "
		}
	}
	p.write(shift1(sep, by))
	if v.column >= 0 {
		by = column - v.column
	}
	text := shift1(v.text(), by)
	p.write(text)
	if !v.block {
		p.write(e.trail + p.end)
	} else if !strings.HasSuffix(text, "\n") {
		p.write(p.end)
	}
}

// nested writes the block of an entry.
func (p *printer) nested(e *entry, of yaml.Kind, column, by int) {
	v, sep := e.value, e.sep
	if e.first != v {
		sep = e.header(of)
	}
	if len(v.entries) == 0 {
		p.write(sep[:1] + " " + map[yaml.Kind]string{yaml.MappingNode: "{}", yaml.SequenceNode: "[]"}[v.kind] + strings.TrimRight(sep[1:], " ") + p.end)
		return
	}
	p.write(sep)
	inline := e.inlineFirst(of)
	if !inline {
		p.write(p.end)
	}
	p.block(v, p.below(e, of, column, by), inline)
}

// header returns the text between a key or dash and the block of an entry that has had another value.
func (e *entry) header(of yaml.Kind) string {
	header := strings.TrimRight(e.sep, " \t")
	switch {
	case of == yaml.SequenceNode:
		return "- "
	case strings.Contains(header, "\n"), header == "":
		return ":" + e.trail
	}
	return header + e.trail
}

// below returns the column in which the block under an entry begins.
func (p *printer) below(e *entry, of yaml.Kind, column, by int) int {
	switch v := e.value; {
	case v.column >= 0 && e.column >= 0 && e.first == v:
		return v.column + by
	case of == yaml.SequenceNode:
		return column + 2
	case v.kind == yaml.SequenceNode && p.flush:
		return column
	}
	return column + p.step
}

// inlineFirst reports whether the value of an item begins on the line of its dash.
func (e *entry) inlineFirst(of yaml.Kind) bool {
	v := e.value
	return of == yaml.SequenceNode && v.isBlock() && len(v.entries) > 0 && (e.first != v || strings.HasSuffix(e.sep, " "))
}

func indentOf(lines string) int {
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) != "" {
			return len(line) - len(strings.TrimLeft(line, " "))
		}
	}
	return 0
}

// keyText returns the text of a key. A new name has the quotes of the old one.
func (e *entry) keyText() string {
	switch {
	case e.name != "" && e.key == e.was:
		return e.name
	case strings.HasPrefix(e.name, `"`), strings.HasPrefix(e.name, "'"):
		return e.name[:1] + e.key + e.name[:1]
	default:
		return e.key
	}
}

// shift moves lines to the right or to the left.
func shift(lines string, by int) string {
	if by == 0 || lines == "" {
		return lines
	}
	var b strings.Builder
	for line := range strings.Lines(lines) {
		switch {
		case strings.TrimSpace(line) == "":
		case by > 0:
			b.WriteString(strings.Repeat(" ", by))
		default:
			line = line[min(-by, len(line)-len(strings.TrimLeft(line, " "))):]
		}
		b.WriteString(line)
	}
	return b.String()
}

// shift1 moves all lines but the first.
func shift1(text string, by int) string {
	first, rest, several := strings.Cut(text, "\n")
	if !several {
		return text
	}
	return first + "\n" + shift(rest, by)
}

// text returns the text of a scalar, an alias, or a value in braces.
func (n *node) text() string {
	if n.kind == yaml.ScalarNode || n.kind == yaml.AliasNode || n.raw != "" && !n.changed() {
		return n.raw
	}
	if strings.Contains(n.raw, "\n") {
		first, last := strings.Index(n.raw, "\n")+1, strings.LastIndex(n.raw, "\n")+1
		return n.props + n.lines(indent(n.raw[last:]), strings.Repeat(" ", max(len(indent(n.raw[first:]))-len(indent(n.raw[last:])), 2)))
	}
	return n.props + n.braces()
}

func indent(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }

// changed reports whether a rule has changed something in a value in braces.
func (n *node) changed() bool {
	if len(n.entries) != len(n.was) {
		return true
	}
	for i, e := range n.entries {
		if e != n.was[i] || e.key != e.was || e.value != e.first || e.value.changed() {
			return true
		}
	}
	return false
}

// flowItem returns an entry in braces.
func (n *node) flowItem(e *entry, value string) string {
	if n.kind == yaml.SequenceNode {
		return value
	}
	key := e.keyText()
	if e.name == "" && n.isJSON() {
		key = strconv.Quote(key)
	}
	return key + ": " + value
}

// isJSON reports whether the keys are quoted.
func (n *node) isJSON() bool {
	for _, e := range n.was {
		if strings.HasPrefix(e.name, `"`) {
			return true
		}
	}
	for _, e := range n.entries {
		if strings.HasPrefix(e.name, `"`) || e.value.isJSON() {
			return true
		}
	}
	return false
}

// braces writes a value on one line.
func (n *node) braces() string {
	if n.kind != yaml.MappingNode && n.kind != yaml.SequenceNode {
		return n.flowScalar()
	}
	if n.isLine() {
		return n.raw
	}
	items := make([]string, 0, len(n.entries))
	for _, e := range n.entries {
		items = append(items, n.flowItem(e, e.value.braces()))
	}
	if n.kind == yaml.SequenceNode {
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "{" + strings.Join(items, ", ") + "}"
}

// isLine reports whether a value in braces is on one line, and is as it was.
func (n *node) isLine() bool { return n.raw != "" && !strings.Contains(n.raw, "\n") && !n.changed() }

// lines writes a value in braces with one entry in each line, as in JSON.
func (n *node) lines(indent, step string) string {
	if n.kind != yaml.MappingNode && n.kind != yaml.SequenceNode || len(n.entries) == 0 || n.isLine() {
		return n.braces()
	}
	open, closing := "{", "}"
	if n.kind == yaml.SequenceNode {
		open, closing = "[", "]"
	}
	var b strings.Builder
	b.WriteString(open)
	for i, e := range n.entries {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + indent + step + n.flowItem(e, e.value.lines(indent+step, step)))
	}
	b.WriteString("\n" + indent + closing)
	return b.String()
}

// flowScalar returns a scalar for a value in braces.
func (n *node) flowScalar() string {
	switch {
	case n.kind == yaml.ScalarNode && n.raw == "":
		return "null"
	case n.block || strings.Contains(n.raw, "\n"):
		text, _ := json.Marshal(n.value) // a string
		return string(text)
	case !n.quoted && strings.ContainsAny(n.raw, ",[]{}") && n.kind == yaml.ScalarNode && !strings.Contains(n.raw, "${"):
		return strconv.Quote(n.raw)
	}
	return n.raw
}

// scalar returns a new scalar with the text.
func scalar(text string) *node {
	return &node{kind: yaml.ScalarNode, raw: quoteIfNeeded(text), value: mask(text), tag: "!!str", quoted: quoteIfNeeded(text) != text, column: -1}
}

// number returns a new scalar with a number.
func number(text string) *node {
	if strings.Contains(text, "${") {
		return scalar(text)
	}
	return &node{kind: yaml.ScalarNode, raw: text, value: mask(text), tag: "!!int", column: -1}
}

// quoteIfNeeded quotes a text that is not a plain string in YAML.
func quoteIfNeeded(text string) string {
	if regex.Of(`^[A-Za-z/][A-Za-z0-9_./-]*$`).MatchString(text) && !isWord(text) || strings.HasPrefix(text, "${") {
		return text
	}
	return strconv.Quote(text)
}

// isWord reports whether YAML reads a word as a boolean or as null.
func isWord(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return true
	}
	return false
}
