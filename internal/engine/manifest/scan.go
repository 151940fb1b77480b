package manifest

import "strings"

// scanner reads YAML line by line to find comments. A # inside a block scalar or a quoted
// string is not a comment.
type scanner struct {
	quote byte // ' or " if a quoted string continues on the next line
	block bool // inside a block scalar
	depth int  // indentation of the node that owns the block scalar
}

// comment returns the index at which the comment of a line begins, or the length of the
// line. Lines must be passed in order.
func (s *scanner) comment(line string) int {
	if s.block {
		if strings.TrimSpace(line) == "" || indentation(line) > s.depth {
			return len(line)
		}
		s.block = false
	}
	end := s.content(line)
	s.openBlock(line[:end])
	return end
}

// content reads the quoted and plain text of one line.
func (s *scanner) content(line string) int {
	before := byte(' ') // the last character that was not a blank
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case s.quote != 0:
			i += s.inQuote(line, i)
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return i
		case (c == '"' || c == '\'') && opensScalar(before, line[:i]):
			s.quote = c
		}
		if c != ' ' && c != '\t' {
			before = c
		}
	}
	return len(line)
}

// inQuote handles one character of a quoted string, and returns how many more characters
// to skip.
func (s *scanner) inQuote(line string, i int) int {
	next := byte(0)
	if i+1 < len(line) {
		next = line[i+1]
	}
	switch {
	case s.quote == '"' && line[i] == '\\' && next != 0:
		return 1
	case line[i] != s.quote:
		return 0
	case s.quote == '\'' && next == '\'':
		return 1
	default:
		s.quote = 0
		return 0
	}
}

// opensScalar reports whether a quote after this text begins a quoted string. In the
// middle of a plain scalar, a quote is an ordinary character.
func opensScalar(before byte, text string) bool {
	if text != "" && strings.IndexByte(" \t[{,", text[len(text)-1]) < 0 {
		return false
	}
	return strings.IndexByte(" :-[{,?", before) >= 0
}

// openBlock records that a block scalar follows.
func (s *scanner) openBlock(content string) {
	if s.quote != 0 || !isBlockHeader(content) {
		return
	}
	s.block = true
	s.depth = indentation(content)
	rest := content[s.depth:]
	for strings.HasPrefix(rest, "- ") {
		trimmed := strings.TrimLeft(rest[1:], " ")
		if !strings.Contains(trimmed, ":") && !strings.HasPrefix(trimmed, "- ") {
			break
		}
		s.depth += len(rest) - len(trimmed)
		rest = trimmed
	}
	if strings.HasPrefix(content, "---") {
		s.depth = -1
	}
}

// isBlockHeader reports whether a line ends with the header of a block scalar: | or >
// with indicators, after a colon, a dash, a tag or an anchor.
func isBlockHeader(content string) bool {
	s := strings.TrimRight(content, " \t")
	s = strings.TrimRight(s, "-+0123456789")
	if !strings.HasSuffix(s, "|") && !strings.HasSuffix(s, ">") {
		return false
	}
	words := strings.Fields(s[:len(s)-1])
	if len(words) == 0 {
		return true
	}
	last := words[len(words)-1]
	return strings.HasSuffix(s[:len(s)-1], " ") &&
		(strings.HasSuffix(last, ":") || last == "-" || last == "---" || strings.ContainsRune("!&", rune(last[0])))
}

func indentation(line string) int {
	return len(line) - len(strings.TrimLeft(line, " "))
}
