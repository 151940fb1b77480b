package yamldoc

import "strings"

// Scanner reads YAML line by line to find comments. A # inside a block scalar or a quoted
// string is not a comment.
type Scanner struct {
	Quote byte // ' or " if a quoted string continues on the next line
	Block bool // inside a block scalar
	Depth int  // indentation of the node that owns the block scalar
}

// Comment returns the index at which the comment of a line begins, or the length of the
// line. Lines must be passed in order.
func (s *Scanner) Comment(line string) int {
	if s.Block {
		if strings.TrimSpace(line) == "" || Indentation(line) > s.Depth {
			return len(line)
		}
		s.Block = false
	}
	end := s.content(line)
	s.openBlock(line[:end])
	return end
}

// content reads the quoted and plain text of one line.
func (s *Scanner) content(line string) int {
	before := byte(' ') // the last character that was not a blank
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case s.Quote != 0:
			i += s.inQuote(line, i)
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return i
		case (c == '"' || c == '\'') && opensScalar(before, line[:i]):
			s.Quote = c
		}
		if c != ' ' && c != '\t' {
			before = c
		}
	}
	return len(line)
}

// inQuote handles one character of a quoted string, and returns how many more characters
// to skip.
func (s *Scanner) inQuote(line string, i int) int {
	next := byte(0)
	if i+1 < len(line) {
		next = line[i+1]
	}
	switch {
	case s.Quote == '"' && line[i] == '\\' && next != 0:
		return 1
	case line[i] != s.Quote:
		return 0
	case s.Quote == '\'' && next == '\'':
		return 1
	default:
		s.Quote = 0
		return 0
	}
}

// opensScalar reports whether a quote after this text begins a quoted string. In the
// middle of a plain scalar, a quote is an ordinary character. JSON has no blank between a
// quoted key and its value.
func opensScalar(before byte, text string) bool {
	if strings.HasSuffix(text, `":`) || strings.HasSuffix(text, `':`) {
		return true
	}
	if text != "" && strings.IndexByte(" \t[{,", text[len(text)-1]) < 0 {
		return false
	}
	return strings.IndexByte(" :-[{,?", before) >= 0
}

// openBlock records that a block scalar follows.
func (s *Scanner) openBlock(content string) {
	if s.Quote != 0 || !isBlockHeader(content) {
		return
	}
	s.Block = true
	s.Depth = Indentation(content)
	rest := content[s.Depth:]
	for strings.HasPrefix(rest, "- ") {
		trimmed := strings.TrimLeft(rest[1:], " ")
		if !strings.Contains(trimmed, ":") && !strings.HasPrefix(trimmed, "- ") {
			break
		}
		s.Depth += len(rest) - len(trimmed)
		rest = trimmed
	}
	if strings.HasPrefix(content, "---") {
		s.Depth = -1
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

// Indentation returns the number of spaces at the beginning of a line.
func Indentation(line string) int {
	return len(line) - len(strings.TrimLeft(line, " "))
}
