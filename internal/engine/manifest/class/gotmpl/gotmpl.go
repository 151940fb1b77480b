// Package gotmpl evaluates the Go templates of ClusterClass patches over JSON
// values, with the functions of the sprig library that such templates use.
//
// It parses with text/template/parse and evaluates the tree itself, because
// text/template finds methods by name at run time: a binary that links it
// keeps every exported method there is. What is left out is what JSON values
// cannot have: methods, functions as values, channels, complex numbers.
//
// A template cannot hurt: steps, depth and sizes are bounded, and nothing
// reads the environment, the clock or chance.
package gotmpl

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

// Bounds of one evaluation.
const (
	maxText  = 1 << 20 // bytes of a template, of a text made in it, and of the result
	maxWork  = 1 << 23 // steps, and bytes and elements handed to functions
	maxDepth = 100     // templates that call templates, and lists in lists
)

// Error is a template that cannot be parsed or evaluated.
type Error struct {
	Line int // of the template, from 1
	What string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d of the template: %s", e.Line, e.What)
}

// Template is a parsed template.
type Template struct {
	source string
	trees  map[string]*parse.Tree
	funcs  map[string]any
}

// mainName is the template itself among those that it defines.
const mainName = "template"

// Parse reads a template. The error is an *Error.
func Parse(text string) (*Template, error) {
	if len(text) > maxText {
		return nil, &Error{Line: 1, What: "the template is too long"}
	}
	t := &Template{source: text, funcs: functions()}
	trees, err := parse.Parse(mainName, text, "", "", t.funcs)
	if err != nil {
		return nil, parseError(err)
	}
	t.trees = trees
	return t, nil
}

// parseError takes the line out of the parser's message.
func parseError(err error) error {
	m := regexp.MustCompile(`(?s)^template: [^:]*:(\d+):(?:\d+:)? ?(.*)$`).FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Line: 1, What: err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	what := m[2]
	if f := regexp.MustCompile(`^function ("[^"]*") not defined`).FindStringSubmatch(what); f != nil {
		what = "there is no function " + f[1] + " here"
	}
	return &Error{Line: line, What: what}
}

// Execute evaluates the template with data as its dot: nil, bool, float64,
// string, []any and map[string]any, as encoding/json decodes them. The error
// is an *Error.
func (t *Template) Execute(data any) (string, error) { return t.execute(data, false) }

// ExecuteStrict is Execute, but a name that is not in data is an error.
func (t *Template) ExecuteStrict(data any) (string, error) { return t.execute(data, true) }

func (t *Template) execute(data any, strict bool) (out string, err error) {
	s := &state{template: t, strict: strict}
	defer func() {
		if r := recover(); r != nil {
			out, err = "", s.recovered(r)
		}
	}()
	main := t.trees[mainName]
	if main == nil || main.Root == nil {
		return "", nil
	}
	s.scope = []variable{{"$", data}}
	s.list(data, main.Root)
	return s.out.String(), nil
}

// Render parses and executes.
func Render(text string, data any) (string, error) {
	t, err := Parse(text)
	if err != nil {
		return "", err
	}
	return t.Execute(data)
}

// stop is how an error leaves the walk.
type stop struct{ err *Error }

// recovered makes an error of whatever ended a walk.
func (s *state) recovered(r any) error {
	switch r := r.(type) {
	case stop:
		return r.err
	case error:
		return &Error{Line: s.line(), What: strings.TrimPrefix(r.Error(), "runtime error: ")}
	default:
		return &Error{Line: s.line(), What: fmt.Sprint(r)}
	}
}

// line is the line of the node that is being evaluated.
func (s *state) line() int {
	if s.node == nil {
		return 1
	}
	text := s.template.source
	return 1 + strings.Count(text[:min(max(int(s.node.Position()), 0), len(text))], "\n")
}

func (s *state) failf(format string, arguments ...any) {
	panic(stop{&Error{Line: s.line(), What: fmt.Sprintf(format, arguments...)}})
}

// errTooMuch is an evaluation over its bounds.
var errTooMuch = errors.New("the template makes too much: more work or text than is allowed")
