package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// blockOf parses a block that begins at an offset: after the line of its key, or on the line of
// its dash.
func (s *source) blockOf(n *yaml.Node, at, column int, sameLine bool) (*node, int) {
	out := &node{kind: n.Kind, tag: n.ShortTag(), column: column, line: s.lineOf(n)}
	width := 1
	if n.Kind == yaml.MappingNode {
		width = 2
	}
	for i := 0; i+width <= len(n.Content) && s.count() && !s.odd; i += width {
		onLine := sameLine && i == 0
		var begin int
		if width == 2 {
			begin = s.key(n.Content[i], at, column, onLine)
		} else {
			begin = s.dash(at, column, onLine)
		}
		if s.odd {
			break
		}
		e := &entry{column: column, line: s.first + 1 + strings.Count(s.masked[:begin], "\n")}
		if !onLine {
			e.head = s.text[at:s.lineStart(begin)]
		}
		if i > 0 {
			out.entries[len(out.entries)-1].tail, e.head = splitTail(e.head, column)
		}
		if width == 2 {
			at = s.entryOf(e, n.Content[i], n.Content[i+1], begin)
		} else {
			at = s.valueOf(e, n.Content[i], begin, begin+1)
		}
		if e.first = e.value; e.copied {
			e.first = nil
		}
		out.entries = append(out.entries, e)
	}
	if k := len(out.entries); k > 0 && !s.odd {
		out.entries[k-1].tail, _ = splitTail(s.text[at:], column)
		at += len(out.entries[k-1].tail)
	}
	out.was = append([]*entry(nil), out.entries...)
	if !s.odd {
		s.merge(out)
	}
	return out, at
}

// key returns the offset of the next key of a block mapping.
func (s *source) key(n *yaml.Node, at, column int, sameLine bool) int {
	begin := s.start(n)
	if n.Kind != yaml.ScalarNode || !sameLine && (s.columnOf(begin) != column || s.lineStart(begin) < at) {
		s.odd = true
	}
	return begin
}

// merge replaces "<<" keys by the entries that they stand for, where aliases are replaced.
func (s *source) merge(n *node) {
	if !s.expand || n.kind != yaml.MappingNode {
		return
	}
	var all []*entry
	for _, e := range n.entries {
		if e.key != "<<" {
			all = append(all, e)
			continue
		}
		from := []*node{e.value}
		if e.value.kind == yaml.SequenceNode {
			from = nil
			for _, item := range e.value.entries {
				from = append(from, item.value)
			}
		}
		for _, m := range from {
			for _, more := range m.entries {
				if m.kind == yaml.MappingNode && n.entry(more.key) == nil && !hasKey(all, more.key) {
					more.head, more.tail = "", ""
					if m.flow {
						more.sep, more.column = ": ", -1
					}
					all = append(all, more)
				}
			}
		}
	}
	n.entries = all
}

func hasKey(entries []*entry, key string) bool {
	for _, e := range entries {
		if e.key == key {
			return true
		}
	}
	return false
}

// splitTail splits the lines between two entries: comments that are deeper belong to the first.
func splitTail(lines string, column int) (tail, head string) {
	end := 0
	for at := 0; at < len(lines); {
		next := len(lines)
		if i := strings.IndexByte(lines[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		line := strings.TrimRight(lines[at:next], "\r\n")
		text := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(text, "#") || len(line)-len(text) <= column {
			break
		}
		at, end = next, next
	}
	return lines[:end], lines[end:]
}

// dash returns the offset of the dash of the next item.
func (s *source) dash(at, column int, sameLine bool) int {
	if sameLine {
		return at
	}
	for at < len(s.masked) {
		end, next := s.lineEnd(at)
		text := strings.TrimLeft(s.masked[at:end], " ")
		if text != "" && text[0] != '#' {
			begin := end - len(text)
			s.odd = s.odd || text[0] != '-' || begin-at != column
			return begin
		}
		at = next
	}
	s.odd = true
	return at
}

// entryOf parses an entry of a block mapping, and returns the offset of the next line.
func (s *source) entryOf(e *entry, key, value *yaml.Node, begin int) int {
	end := s.scalarEnd(key, begin, e.column, false)
	e.key, e.was, e.name = key.Value, key.Value, s.text[begin:end]
	colon := end + len(s.masked[end:]) - len(strings.TrimLeft(s.masked[end:], " "))
	if colon >= len(s.masked) || s.masked[colon] != ':' {
		s.odd = true
		return end
	}
	return s.valueOf(e, value, end, colon+1)
}

// valueOf parses the value of an entry. The separator begins at from; the colon or dash ends at
// after.
func (s *source) valueOf(e *entry, value *yaml.Node, from, after int) int {
	if (value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode) && !isFlow(value) {
		return s.blockValue(e, value, from, after)
	}
	lineStop, nextLine := s.lineEnd(after)
	if value.Kind == yaml.ScalarNode && value.Value == "" && value.ShortTag() == "!!null" && value.Style == 0 && value.Anchor == "" {
		e.sep, e.trail = s.text[from:after], s.text[after:lineStop]
		e.value = &node{kind: yaml.ScalarNode, tag: "!!null", line: s.lineOf(value)}
		return nextLine
	}
	e.copied = s.expand && value.Kind == yaml.AliasNode
	start := s.offset(value.Line, value.Column)
	if start < after {
		s.odd = true
		return nextLine
	}
	e.sep = s.text[from:start]
	var end int
	e.value, end = s.inline(value, start, e.column)
	if e.value.block && !e.copied {
		return end
	}
	stop, next := s.lineEnd(end)
	e.trail = s.text[end:stop]
	return next
}

// blockValue parses a block: below a key or a dash, or on the line of a dash.
func (s *source) blockValue(e *entry, value *yaml.Node, from, after int) int {
	lineStop, nextLine := s.lineEnd(after)
	between := strings.TrimLeft(s.masked[after:lineStop], " \t")
	var at int
	switch {
	case between != "" && between[0] != '#' && between[0] != '&' && between[0] != '!': // on the line of a dash
		start := lineStop - len(between)
		e.sep = s.text[from:start]
		e.value, at = s.blockOf(value, start, s.columnOf(start), true)
		return at
	case nextLine >= len(s.masked), value.Kind == yaml.MappingNode && s.start(value) < nextLine: // an anchor and a key on one line
		s.odd = true
		e.value = &node{kind: value.Kind}
		return nextLine
	}
	e.sep = s.text[from:lineStop]
	e.value, at = s.blockOf(value, nextLine, s.firstColumn(nextLine), false)
	return at
}

// firstColumn returns the indentation of the first line with a value.
func (s *source) firstColumn(at int) int {
	for at < len(s.masked) {
		end, next := s.lineEnd(at)
		text := strings.TrimLeft(s.masked[at:end], " ")
		if text != "" && text[0] != '#' {
			return end - len(text) - at
		}
		at = next
	}
	return 0
}

// inline parses a scalar, an alias, or a value in braces.
func (s *source) inline(n *yaml.Node, start, column int) (*node, int) {
	out := &node{kind: n.Kind, tag: n.ShortTag(), value: n.Value, column: column, line: s.lineOf(n), flow: n.Kind != yaml.ScalarNode}
	if !s.count() {
		return out, start
	}
	end := start
	switch n.Kind {
	case yaml.AliasNode:
		out.flow = false
		end = start + 1 + len(n.Value)
		out.raw = s.text[start:min(end, len(s.text))]
		if s.expand {
			return s.copyOf(n.Alias, column), end
		}
		return out, end
	case yaml.ScalarNode:
		end = s.scalarEnd(n, start, column, true)
		out.quoted = n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		out.block = n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	case yaml.MappingNode, yaml.SequenceNode:
		end = s.flowEnd(start)
		out.props = s.text[start:s.properties(start)]
		s.flowEntries(out, n)
	case yaml.DocumentNode:
	}
	out.raw = s.text[start:end]
	return out, end
}

// copyOf parses the target of an alias again.
func (s *source) copyOf(n *yaml.Node, column int) *node {
	if (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && !isFlow(n) {
		start := s.start(n)
		if n.Kind == yaml.SequenceNode {
			_, next := s.lineEnd(s.offset(n.Line, n.Column))
			start = next
			if n.Anchor == "" {
				start = s.offset(n.Line, n.Column)
			}
			at := s.firstColumn(s.lineStart(start))
			out, _ := s.blockOf(n, s.lineStart(start), at, false)
			return bare(out)
		}
		out, _ := s.blockOf(n, s.lineStart(start), s.columnOf(start), false)
		return bare(out)
	}
	out, _ := s.inline(n, s.offset(n.Line, n.Column), column)
	out.raw, out.props = withoutAnchor(out.raw, n.Anchor), ""
	return out
}

// bare returns a block without the comments before its first entry.
func bare(n *node) *node {
	if len(n.entries) > 0 {
		n.entries[0].head = ""
	}
	return n
}

func withoutAnchor(text, anchor string) string {
	if anchor == "" {
		return text
	}
	return strings.TrimLeft(strings.Replace(text, "&"+anchor, "", 1), " ")
}

// flowEntries parses the entries of a value in braces.
func (s *source) flowEntries(out *node, n *yaml.Node) {
	width := 1
	if n.Kind == yaml.MappingNode {
		width = 2
	}
	for i := 0; i+width <= len(n.Content); i += width {
		e := &entry{column: -1, line: s.lineOf(n.Content[i])}
		value := n.Content[i+width-1]
		if width == 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				s.odd = true
				return
			}
			begin := s.offset(key.Line, key.Column)
			e.key, e.was = key.Value, key.Value
			e.name = s.text[begin:s.scalarEnd(key, begin, -1, false)]
		}
		if value.Kind == yaml.ScalarNode && value.Value == "" && value.Style == 0 {
			e.value = &node{kind: yaml.ScalarNode, tag: "!!null", line: s.lineOf(value)}
		} else {
			e.value, _ = s.inline(value, s.offset(value.Line, value.Column), -1)
		}
		if e.first = e.value; s.expand && value.Kind == yaml.AliasNode {
			e.first = nil
		}
		out.entries = append(out.entries, e)
	}
	out.was = append([]*entry(nil), out.entries...)
	s.merge(out)
}
