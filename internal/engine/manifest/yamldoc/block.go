package yamldoc

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// block returns the source line of each line of a literal or folded block of text; nil for another value, and if the lines are not certain.
func (d Document) block(n *yaml.Node) []int {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 || n.Line < 1 || n.Line >= len(d.lines) {
		return nil
	}
	text := strings.Split(strings.TrimRight(n.Value, "\n"), "\n")
	raw := d.lines[n.Line:] // after the line with | or >
	if n.Style&yaml.FoldedStyle != 0 {
		return d.folded(n.Line, text, raw)
	}
	if len(text) > len(raw) {
		return nil
	}
	source := make([]int, len(text))
	for i := range text {
		if !strings.HasSuffix(strings.TrimSuffix(raw[i], "\r"), text[i]) {
			return nil
		}
		source[i] = d.At(n.Line + 1 + i).Line
	}
	return source
}

// folded returns the source lines of a folded block: neighbours that are not indented more are one line of the text, and one break less is
// between such lines than there is in the source.
func (d Document) folded(begin int, text, raw []string) (source []int) {
	indent, empty, prose := -1, 0, false
	for i, line := range raw {
		start := strings.IndexFunc(line, func(r rune) bool { return r != ' ' && r != '\r' })
		if start < 0 {
			empty++
			continue
		}
		breaks, first := empty+1, indent < 0
		if first {
			indent = start - strings.IndexFunc(strings.Join(text[min(empty, len(text)-1):], " "), func(r rune) bool { return r != ' ' })
		}
		if start < indent || len(source) == len(text) {
			break // after the block
		}
		is := start == indent && line[start] != '\t'
		if prose && is && !first {
			breaks = empty
		}
		for range breaks {
			source = append(source, d.At(begin+1+i).Line)
		}
		empty, prose = 0, is
	}
	if len(source) != len(text) {
		return nil
	}
	return source
}
