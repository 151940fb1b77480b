package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// resolved returns the value that an alias stands for. Aliases have targets only in a tree that
// keeps them.
func (n *node) resolved() *node {
	for n != nil && n.kind == yaml.AliasNode && n.target != nil {
		n = n.target
	}
	return n
}

// entry returns an entry of a mapping, or nil.
func (n *node) entry(key string) *entry {
	if n = n.resolved(); n == nil || n.kind != yaml.MappingNode {
		return nil
	}
	for _, e := range n.entries {
		if e.key == key {
			return e
		}
	}
	return nil
}

// at returns the value at a path of keys, or nil.
func (n *node) at(path string) *node {
	n = n.resolved()
	if path == "" {
		return n
	}
	for key := range strings.SplitSeq(path, ".") {
		e := n.entry(key)
		if e == nil {
			return nil
		}
		n = e.value.resolved()
	}
	return n
}

// items returns the items of a list.
func (n *node) items() (all []*node) {
	if n = n.resolved(); n == nil || n.kind != yaml.SequenceNode {
		return nil
	}
	for _, e := range n.entries {
		all = append(all, e.value.resolved())
	}
	return all
}

// text of a scalar at a path, or "".
func (n *node) scalarAt(path string) string {
	if v := n.at(path); v != nil && v.kind == yaml.ScalarNode {
		return v.plain()
	}
	return ""
}

// plain returns the value of a scalar, with variables as they are written.
func (n *node) plain() string {
	if !strings.Contains(n.raw, "${") {
		return n.value
	}
	if n.quoted && len(n.raw) > 1 && !n.block {
		return n.raw[1 : len(n.raw)-1]
	}
	return n.raw
}

// isEmpty reports whether a mapping or list has no entries, or a scalar is null or "".
func (n *node) isEmpty() bool {
	switch n = n.resolved(); n.kind { //nolint:exhaustive // all others are scalars
	case yaml.MappingNode, yaml.SequenceNode:
		return len(n.entries) == 0
	default:
		return n.tag == "!!null" || n.value == "" && n.quoted
	}
}

// remove removes an entry.
func (n *node) remove(e *entry) {
	n = n.resolved()
	i := slices.Index(n.entries, e)
	if i < 0 {
		return
	}
	n.entries = slices.Delete(n.entries, i, i+1)
	// Empty lines before it stay; the comments of a field that does not exist any more go.
	if blank := blankLines(e.head); blank != "" && i < len(n.entries) && blankLines(n.entries[i].head) == "" {
		n.entries[i].head = blank + n.entries[i].head
	}
}

// blankLines returns the empty lines at the beginning of a head.
func blankLines(head string) string {
	end := 0
	for line := range strings.Lines(head) {
		if strings.TrimSpace(line) != "" {
			break
		}
		end += len(line)
	}
	return head[:end]
}

// newMapping returns an empty mapping, in braces if its parent is.
func newMapping(flow bool) *node {
	return &node{kind: yaml.MappingNode, tag: "!!map", column: -1, flow: flow}
}

func newList(flow bool) *node {
	return &node{kind: yaml.SequenceNode, tag: "!!seq", column: -1, flow: flow}
}

// put adds an entry below a path of keys, and creates the mappings of the path. They are created
// at the given index. It returns false if there is an entry already.
func (n *node) put(path string, e *entry, index int) bool {
	n = n.resolved()
	first, rest, deeper := strings.Cut(path, ".")
	existing := n.entry(first)
	if !deeper {
		if existing != nil && !existing.value.isEmpty() {
			return false
		}
		if existing != nil {
			index = slices.Index(n.entries, existing)
			n.remove(existing)
		}
		e.key = first
		n.entries = slices.Insert(n.entries, min(index, len(n.entries)), e)
		return true
	}
	if existing == nil {
		existing = &entry{key: first, column: -1, value: newMapping(n.flow), line: e.line}
		if blank := blankLines(e.head); blank != "" {
			existing.head, e.head = blank, e.head[len(blank):]
		}
		n.entries = slices.Insert(n.entries, min(index, len(n.entries)), existing)
	}
	below := existing.value.resolved()
	if below.kind != yaml.MappingNode {
		if !below.isEmpty() {
			return false
		}
		existing.value = newMapping(n.flow)
		below = existing.value
	}
	if below.flow && len(below.entries) == 0 && !n.flow { // "{}"
		existing.value = newMapping(false)
		below = existing.value
	}
	return below.put(rest, e, len(below.entries))
}

// take removes the entry at a path of keys and returns it with its index, or nil. Mappings that
// become empty by that are removed, too.
func (n *node) take(path string) (*entry, int) {
	n = n.resolved()
	first, rest, deeper := strings.Cut(path, ".")
	e := n.entry(first)
	if e == nil {
		return nil, 0
	}
	index := slices.Index(n.entries, e)
	if deeper {
		below := e.value.resolved()
		taken, _ := below.take(rest)
		if taken != nil && len(below.entries) == 0 {
			if e.head != "" && index < len(n.entries) {
				taken.head = e.head + taken.head
			}
			n.entries = slices.Delete(n.entries, index, index+1)
		}
		return taken, index
	}
	n.entries = slices.Delete(n.entries, index, index+1)
	return e, index
}

// set replaces the value of an entry by a scalar.
func (e *entry) set(v *node) { e.value = v }

// replaceText replaces a part of the text of a scalar; quotes and comments stay.
func (e *entry) replaceText(change func(string) string) {
	v := *e.value
	v.raw, v.value = change(v.raw), change(v.value)
	e.value = &v
}
