package convert

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A document is parsed into a tree that keeps its text: printed without a change, it is the
// document byte for byte. A rule moves, renames and removes entries; their comments, quotes and
// line ends stay with them.

// node is a value of a document.
type node struct {
	kind   yaml.Kind
	tag    string
	value  string // of a scalar, as the parser decodes it
	props  string // anchor and tag of a value in braces
	raw    string // text of a scalar, an alias, or a value in braces; "" of a block and of a new node
	quoted bool   // the scalar is quoted, or a block scalar
	block  bool   // the scalar is a literal or folded block
	flow   bool   // a mapping or list in braces or brackets
	column int    // of the entries of a block; -1 of a new node
	line   int    // in the file, from 1; 0 of a new node

	entries []*entry // of a mapping or a list
	was     []*entry // the same, as parsed
	target  *node    // of an alias
}

// entry is an entry of a mapping, or an item of a list.
type entry struct {
	key    string // "" of an item
	name   string // text of the key, as parsed; it is replaced if the key is another one
	was    string // the key as parsed
	head   string // lines before it: comments and empty lines
	sep    string // text between key and value; of an item, the dash and what follows it
	value  *node
	first  *node // the value as parsed; nil if it is a copy of the target of an alias
	copied bool
	trail  string // rest of the line after the value, without line end
	tail   string // lines of comments after it that are deeper than the entry
	column int    // as parsed; -1 of a new entry
	line   int
}

// source is the text of one document.
type source struct {
	text   string // as written
	masked string // the same length, with variables replaced by words
	starts []int  // offset of each line of the document
	first  int    // line of the file before that of the document
	end    string // line end
	step   int    // indentation
	flush  bool   // lists are not indented below their key
	nodes  int
	odd    bool // the document has a construct that is not parsed, such as "? key"
	expand bool // aliases are replaced by copies
}

const maxNodes = 200_000

func newSource(text, masked string, first int) *source {
	s := &source{text: text, masked: masked, first: first, end: "\n", step: 2, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		s.end = "\r\n"
	}
	return s
}

// offset converts a position of the parser, which counts characters.
func (s *source) offset(line, column int) int {
	if line < 1 || line > len(s.starts) {
		s.odd = true
		return len(s.masked)
	}
	at := s.starts[line-1]
	for range column - 1 {
		if at >= len(s.masked) {
			break
		}
		_, size := utf8.DecodeRuneInString(s.masked[at:])
		at += size
	}
	return at
}

// lineStart returns the offset of the first byte of the line.
func (s *source) lineStart(at int) int { return strings.LastIndexByte(s.masked[:at], '\n') + 1 }

// lineEnd returns the offset of the end of the line, before "\n" or "\r\n", and of the next line.
func (s *source) lineEnd(at int) (end, next int) {
	i := strings.IndexByte(s.masked[at:], '\n')
	if i < 0 {
		return len(s.masked), len(s.masked)
	}
	end, next = at+i, at+i+1
	if end > at && s.masked[end-1] == '\r' {
		end--
	}
	return end, next
}

// column returns the number of bytes before a position on its line.
func (s *source) columnOf(at int) int { return at - s.lineStart(at) }

// root parses the document.
func (s *source) root(n *yaml.Node) (prefix string, root *node, rest string) {
	start := s.start(n)
	if n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		return s.text, nil, ""
	}
	if isFlow(n) {
		root, end := s.inline(n, start, -1)
		return s.text[:start], root, s.text[end:]
	}
	begin := s.lineStart(start)
	root, end := s.blockOf(n, begin, s.columnOf(start), false)
	return s.text[:begin], root, s.text[end:]
}

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// start returns the offset of a node. That of a block with an anchor is the anchor.
func (s *source) start(n *yaml.Node) int {
	if n.Kind == yaml.MappingNode && !isFlow(n) && len(n.Content) > 0 {
		return s.start(n.Content[0])
	}
	return s.offset(n.Line, n.Column)
}

// count limits the size of the tree: aliases can multiply it.
func (s *source) count() bool {
	if s.nodes++; s.nodes > maxNodes {
		s.odd = true
	}
	return s.nodes <= maxNodes
}

func (s *source) lineOf(n *yaml.Node) int { return s.first + n.Line }
