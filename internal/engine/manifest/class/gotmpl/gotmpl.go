// Package gotmpl evaluates the Go templates of ClusterClass patches with JSON values, and
// with the functions of the sprig library that such templates use.
//
// It uses the parser text/template/parse, but evaluates the tree itself, because
// text/template finds methods by name at run time: a binary that links it contains every
// exported method of all packages. Features that JSON values cannot use are missing:
// methods, function values, channels and complex numbers.
//
// Templates are safe to evaluate: steps, depth and sizes are limited, and no function
// reads the environment, the clock or random numbers.
package gotmpl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Limits of one evaluation.
const (
	maxText  = 1 << 20 // bytes of a template, of a text in it, and of the result
	maxWork  = 1 << 23 // steps, and bytes and elements passed to functions
	maxDepth = 100     // nesting of template calls and of lists
)

// Error is an error of parsing or evaluating a template.
type Error struct {
	Line int // line of the template, counted from 1
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
	costs  map[string]func([]any) int
	budget *Budget
}

// mainName is the name of the main template; templates defined in it have other names.
const mainName = "template"

// Parse parses a template. The error is an *Error.
func Parse(text string) (*Template, error) {
	if len(text) > maxText {
		return nil, &Error{Line: 1, What: "the template is too long"}
	}
	t := &Template{source: text, funcs: functions(), costs: costs(), budget: NewBudget()}
	trees, err := parse.Parse(mainName, text, "", "", t.funcs)
	if err != nil {
		return nil, parseError(err)
	}
	t.trees = trees
	return t, nil
}

// parseError extracts the line from the message of the parser.
func parseError(err error) error {
	m := regex.Of(`(?s)^template: [^:]*:(\d+):(?:\d+:)? ?(.*)$`).FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Line: 1, What: err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	what := m[2]
	if f := regex.Of(`^function ("[^"]*") not defined`).FindStringSubmatch(what); f != nil {
		what = "the function " + f[1] + " is not supported"
	}
	return &Error{Line: line, What: what}
}

// Within makes the template take its work from a budget.
func (t *Template) Within(b *Budget) *Template {
	t.budget = b
	return t
}

// Execute evaluates the template with data: nil, bool, float64, string, []any and
// map[string]any, as encoding/json decodes them. The error is an *Error.
func (t *Template) Execute(data any) (string, error) { return t.execute(data, false) }

// ExecuteStrict is Execute, but a name that is not in data is an error.
func (t *Template) ExecuteStrict(data any) (string, error) { return t.execute(data, true) }

func (t *Template) execute(data any, strict bool) (out string, err error) {
	s := &state{template: t, strict: strict, budget: t.budget}
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

// Render parses and executes a template, with a budget of its own.
func Render(text string, data any) (string, error) { return NewBudget().Render(text, data) }

// stop is the panic value with which an error ends the evaluation.
type stop struct{ err *Error }

// recovered returns the error for a recovered panic.
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

// line returns the line of the node that is being evaluated.
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

// errTooMuch is returned when an evaluation exceeds a limit.
var errTooMuch = errors.New("the template exceeds the limits for work or size")
