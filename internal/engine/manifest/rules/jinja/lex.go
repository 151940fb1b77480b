// Package jinja reads a template as jinja2 does, with which cloud-init renders the bootstrap data of Cluster API before it does anything else. It
// says where a text is no template, and which variables it reads. The grammar is that of lexer.py and parser.py of jinja2 3.1
// (https://github.com/pallets/jinja/tree/3.1.6/src/jinja2), with the settings of cloudinit/templater.py: the usual delimiters, and the
// statement "do".
package jinja

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Error is why a text is not a template.
type Error struct {
	At   int    // position in the text, in bytes
	What string // "{# begins a comment that does not end"
	Open bool   // a tag is not closed
}

func (e *Error) Error() string { return e.What }

// kind is a kind of a token.
type kind int

const (
	eof kind = iota
	output
	outputEnd
	block
	blockEnd
	name
	str
	number
	integer
	operator
)

// token is a part of an expression or a statement, or one of their delimiters.
type token struct {
	kind kind
	text string // of an operator, a name, an integer, or the text in a string
	at   int
}

// is reports whether a token is this operator or name.
func (t token) is(k kind, text string) bool { return t.kind == k && t.text == text }

// words describes a token in an error.
func (t token) words() string {
	switch t.kind {
	case eof:
		return "the end of the text"
	case outputEnd:
		return "}}"
	case blockEnd:
		return "%}"
	case str:
		return "a text in quotes"
	case output, block, name, number, integer, operator:
	}
	return t.text
}

// lexer splits a text into tokens. The text around the tags is left out.
type lexer struct {
	text   string
	pos    int
	tokens []token
}

func tokens(text string) ([]token, *Error) {
	l := &lexer{text: text}
	for {
		at := l.next()
		if at < 0 {
			break
		}
		if err := l.tag(at); err != nil {
			return nil, err
		}
	}
	l.add(eof, "", len(text))
	return l.tokens, nil
}

func (l *lexer) add(k kind, text string, at int) { l.tokens = append(l.tokens, token{k, text, at}) }

// next returns the position of the next tag, or -1 if there is none.
func (l *lexer) next() int {
	for i := l.pos; i+1 < len(l.text); i++ {
		if l.text[i] == '{' && strings.IndexByte("{%#", l.text[i+1]) >= 0 {
			return i
		}
	}
	return -1
}

// tag reads a comment, a raw block, an expression or a statement.
func (l *lexer) tag(at int) *Error {
	rest := l.text[at:]
	if rest[1] == '#' {
		end := strings.Index(rest[2:], "#}")
		if end < 0 {
			return &Error{at, "{# begins a comment that does not end", true}
		}
		l.pos = at + 2 + end + 2
		return nil
	}
	if begin := regex.Of(`^\{%[-+]?\s*raw\s*-?%\}`).FindString(rest); begin != "" {
		end := regex.Of(`\{%[-+]?\s*endraw\s*[-+]?%\}`).FindStringIndex(rest[len(begin):])
		if end == nil {
			return &Error{At: at, What: "{% raw %} has no {% endraw %}"}
		}
		l.pos = at + len(begin) + end[1]
		return nil
	}
	opens, closes := output, regex.Of(`^-?\}\}`)
	if rest[1] == '%' {
		opens, closes = block, regex.Of(`^[-+]?%\}`)
	}
	l.add(opens, rest[:2], at)
	l.pos = at + 2
	if sign := l.text[l.pos:]; strings.HasPrefix(sign, "-") || strings.HasPrefix(sign, "+") {
		l.pos++
	}
	var open []byte
	for {
		rest := l.text[l.pos:]
		if rest == "" {
			return &Error{at, l.text[at:at+2] + " is not closed", true}
		}
		if end := closes.FindString(rest); end != "" && len(open) == 0 {
			l.add(opens+1, end, l.pos)
			l.pos += len(end)
			return nil
		}
		if err := l.part(at, &open); err != nil {
			return err
		}
	}
}

// part reads one token in a tag that begins at a position. open are the brackets that are to be closed.
func (l *lexer) part(tag int, open *[]byte) *Error {
	rest := l.text[l.pos:]
	first, _ := utf8.DecodeRuneInString(rest)
	numeral := func(k kind, expression string) bool {
		found := regex.Of(expression).FindString(rest)
		if found != "" {
			l.add(k, found, l.pos)
			l.pos += len(found)
		}
		return found != ""
	}
	switch {
	case unicode.IsSpace(first):
		l.pos += len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	case l.text[l.pos-1] != '.' && numeral(number, `^(?i)(\d+_)*\d+((\.(\d+_)*\d+)?e[+-]?(\d+_)*\d+|\.(\d+_)*\d+)`):
	case numeral(integer, `^(?i)(0b(_?[0-1])+|0o(_?[0-7])+|0x(_?[\da-f])+|[1-9](_?\d)*|0(_?0)*)`):
	case numeral(name, `^[\pL\pN\pM_]+`):
		if unicode.IsDigit(first) {
			return &Error{At: l.pos, What: fmt.Sprintf("%q is not a name", l.tokens[len(l.tokens)-1].text)}
		}
	case first == '\'' || first == '"':
		return l.quoted()
	default:
		return l.operator(tag, open)
	}
	return nil
}

// quoted reads a text in quotes.
func (l *lexer) quoted() *Error {
	found := regex.Of(`^(?s)('([^'\\]*(?:\\.[^'\\]*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)")`).FindString(l.text[l.pos:])
	if found == "" {
		return &Error{l.pos, "a text in quotes does not end", true}
	}
	inner := found[1 : len(found)-1]
	if escapes := regex.Of(`\\(x([^0-9a-fA-F]|.?$|.[^0-9a-fA-F])|u.{0,3}$|U.{0,7}$)`); escapes.MatchString(strings.ReplaceAll(inner, `\\`, "")) {
		return &Error{At: l.pos, What: found + " has a wrong escape"}
	}
	l.add(str, inner, l.pos)
	l.pos += len(found)
	return nil
}

// operator reads an operator.
func (l *lexer) operator(tag int, open *[]byte) *Error {
	found := regex.Of(`^(//|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}><=.:|,;])`).FindString(l.text[l.pos:])
	if found == "" {
		first, _ := utf8.DecodeRuneInString(l.text[l.pos:])
		return &Error{At: l.pos, What: fmt.Sprintf("jinja knows no %q in %s", first, tagOf(l.text, tag))}
	}
	switch pair := strings.IndexByte("([{)]}", found[0]); {
	case pair >= 3 && (len(*open) == 0 || (*open)[len(*open)-1] != found[0]):
		return &Error{At: l.pos, What: fmt.Sprintf("%s closes nothing in %s", found, tagOf(l.text, tag))}
	case pair >= 3:
		*open = (*open)[:len(*open)-1]
	case pair >= 0:
		*open = append(*open, ")]}"[pair])
	}
	l.add(operator, found, l.pos)
	l.pos += len(found)
	return nil
}

// tagOf returns the tag that begins at a position, for an error.
func tagOf(text string, at int) string {
	rest, _, _ := strings.Cut(text[at:], "\n")
	closes := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[text[at+1]]
	if end := strings.Index(rest, closes); end >= 0 {
		rest = rest[:end+len(closes)]
	}
	const longest = 60
	if utf8.RuneCountInString(rest) > longest {
		rest = string([]rune(rest)[:longest]) + "…"
	}
	return rest
}
