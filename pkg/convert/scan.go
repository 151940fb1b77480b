package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Where a value ends: the parser says only where it begins.

// scalarEnd returns the offset after a scalar.
func (s *source) scalarEnd(n *yaml.Node, start, column int, isValue bool) int {
	at := s.properties(start)
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return s.quotedEnd(at, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return s.quotedEnd(at, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return s.literalEnd(at, column)
	case strings.HasPrefix(s.masked[at:], n.Value):
		return at + len(n.Value)
	case isValue:
		return s.plainEnd(at, n.Value)
	}
	s.odd = true
	return at
}

// properties skips an anchor and a tag.
func (s *source) properties(at int) int {
	for at < len(s.masked) && (s.masked[at] == '&' || s.masked[at] == '!') {
		i := strings.IndexAny(s.masked[at:], " \t\n")
		if i < 0 {
			return len(s.masked)
		}
		at += i
		at += len(s.masked[at:]) - len(strings.TrimLeft(s.masked[at:], " \t"))
	}
	return at
}

func (s *source) quotedEnd(at int, quote byte) int {
	for i := at + 1; i < len(s.masked); i++ {
		switch {
		case quote == '"' && s.masked[i] == '\\':
			i++
		case s.masked[i] != quote:
		case quote == '\'' && i+1 < len(s.masked) && s.masked[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	s.odd = true
	return len(s.masked)
}

// plainEnd returns the end of a plain scalar of several lines.
func (s *source) plainEnd(at int, value string) int {
	want := strings.Join(strings.Fields(value), "")
	got := 0
	for i := at; i < len(s.masked); i++ {
		c := s.masked[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		if got >= len(want) || want[got] != c {
			break
		}
		if got++; got == len(want) {
			return i + 1
		}
	}
	s.odd = true
	return at
}

// literalEnd returns the offset of the line after a block scalar. Empty lines after it belong to
// what follows, unless it keeps them.
func (s *source) literalEnd(at, column int) int {
	stop, next := s.lineEnd(at)
	keep := strings.Contains(strings.SplitN(s.masked[at:stop], "#", 2)[0], "+")
	end := next
	for next < len(s.masked) {
		begin := next
		stop, next = s.lineEnd(begin)
		line := s.masked[begin:stop]
		text := strings.TrimLeft(line, " ")
		switch {
		case text == "":
			if keep {
				end = next
			}
			continue
		case len(line)-len(text) <= column:
			return end
		}
		end = next
	}
	return end
}

// flowEnd returns the offset after a value in braces or brackets.
func (s *source) flowEnd(start int) int {
	depth, at := 0, s.properties(start)
	for at < len(s.masked) {
		switch c := s.masked[at]; c {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		case '"', '\'':
			if before := strings.TrimRight(s.masked[start:at], " \t\r\n"); strings.ContainsAny(before[max(len(before)-1, 0):], "{[,:") || c == '"' {
				at = s.quotedEnd(at, c)
				continue
			}
		case '#':
			if at > 0 && strings.IndexByte(" \t\n", s.masked[at-1]) >= 0 {
				at, _ = s.lineEnd(at)
				continue
			}
		}
		at++
	}
	s.odd = true
	return len(s.masked)
}
