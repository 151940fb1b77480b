package gotmpl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// missing is the value of a name that does not exist. It differs from nil: a field of a
// missing value is missing, a field of nil is an error.
type missing struct{}

// variable is a template variable.
type variable struct {
	name  string
	value any
}

// state is the state of one evaluation.
type state struct {
	template *Template
	out      strings.Builder
	scope    []variable
	node     parse.Node // being evaluated, for errors
	work     int
	budget   *Budget
	depth    int
	strict   bool
}

// flow says how the body of a loop ended.
type flow int

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

// spend adds to the work and checks the limit.
func (s *state) spend(n int) {
	if n < 0 || n > maxWork-s.work || s.budget.Take(n) != nil {
		s.failf("%v", errTooMuch)
	}
	s.work += n
}

func (s *state) write(text string) {
	s.spend(len(text))
	if s.out.Len()+len(text) > maxText {
		s.failf("%v", errTooMuch)
	}
	s.out.WriteString(text)
}

func (s *state) list(dot any, l *parse.ListNode) flow {
	if l == nil {
		return flowOn
	}
	for _, n := range l.Nodes {
		if f := s.walk(dot, n); f != flowOn {
			return f
		}
	}
	return flowOn
}

func (s *state) walk(dot any, n parse.Node) flow {
	s.spend(1)
	s.node = n
	switch n := n.(type) {
	case *parse.TextNode:
		s.write(string(n.Text))
	case *parse.ActionNode:
		value := s.pipeline(dot, n.Pipe)
		if len(n.Pipe.Decl) == 0 {
			s.node = n
			s.write(s.printed(value))
		}
	case *parse.IfNode:
		return s.branch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		return s.branch(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		return s.loop(dot, n)
	case *parse.TemplateNode:
		s.call(dot, n)
	case *parse.BreakNode:
		return flowBreak
	case *parse.ContinueNode:
		return flowContinue
	case *parse.CommentNode:
	default:
		s.failf("%s cannot be evaluated", n)
	}
	return flowOn
}

// printed returns the text of a value in the output of a template.
func (s *state) printed(value any) string {
	if isMissing(value) || value == nil {
		return "<no value>"
	}
	s.spend(s.weigh(value))
	return fmt.Sprint(value)
}

// branch evaluates "if", and "with", in which the value becomes the dot.
func (s *state) branch(dot any, n *parse.BranchNode, with bool) flow {
	mark := len(s.scope)
	defer func() { s.scope = s.scope[:mark] }()
	value := s.pipeline(dot, n.Pipe)
	if !truth(value) {
		return s.list(dot, n.ElseList)
	}
	if with {
		dot = value
	}
	return s.list(dot, n.List)
}

// element is one iteration of a loop.
type element struct{ key, value any }

func (s *state) loop(dot any, n *parse.RangeNode) flow {
	mark := len(s.scope)
	defer func() { s.scope = s.scope[:mark] }()
	elements := s.elements(s.pipeline(dot, n.Pipe), len(n.Pipe.Decl))
	if len(elements) == 0 {
		return s.list(dot, n.ElseList)
	}
	inner := len(s.scope)
	for _, e := range elements {
		s.spend(1)
		s.bind(n.Pipe, e)
		f := s.list(e.value, n.List)
		s.scope = s.scope[:inner]
		if f == flowBreak {
			break
		}
	}
	return flowOn
}

// bind sets the variables of a loop. One variable is the element; two are the key and the
// element.
func (s *state) bind(p *parse.PipeNode, e element) {
	values := []any{e.value}
	if len(p.Decl) > 1 {
		values = []any{e.key, e.value}
	}
	for i, d := range p.Decl {
		if p.IsAssign {
			s.assign(d.Ident[0], values[i])
		} else {
			s.scope[len(s.scope)-len(p.Decl)+i].value = values[i]
		}
	}
}

// elements lists the elements of a loop.
func (s *state) elements(value any, variables int) []element {
	switch v := value.(type) {
	case nil, missing:
		return nil
	case map[string]any:
		var found []element
		for _, k := range slices.Sorted(maps.Keys(v)) {
			found = append(found, element{k, v[k]})
		}
		return found
	case map[string]string:
		var found []element
		for _, k := range slices.Sorted(maps.Keys(v)) {
			found = append(found, element{k, v[k]})
		}
		return found
	}
	if items, ok := asList(value); ok {
		found := make([]element, 0, len(items))
		for i, item := range items {
			found = append(found, element{i, item})
		}
		return found
	}
	if n, ok := asWhole(value); ok {
		if variables > 1 {
			s.failf("can't use %v to iterate over more than one variable", value)
		}
		return s.count(value, n)
	}
	s.failf("range can't iterate over %v", value)
	return nil
}

// count lists the elements of a loop over a number.
func (s *state) count(like any, n int64) []element {
	if n <= 0 {
		return nil
	}
	if n > maxText/8 { // as for "until"
		s.failf("%v", errTooMuch)
	}
	s.spend(int(n))
	found := make([]element, 0, n)
	for i := range n {
		var value any = int(i)
		if _, ok := like.(int64); ok {
			value = i
		}
		found = append(found, element{nil, value})
	}
	return found
}

// call evaluates {{template "name" pipeline}}.
func (s *state) call(dot any, n *parse.TemplateNode) {
	tree := s.template.trees[n.Name]
	if tree == nil {
		s.failf("there is no template %q", n.Name)
	}
	s.depth++
	if s.depth > maxDepth {
		s.failf("templates call each other too deeply")
	}
	var argument any
	if n.Pipe != nil {
		argument = s.pipeline(dot, n.Pipe)
	}
	outer := s.scope
	s.scope = []variable{{"$", argument}}
	s.list(argument, tree.Root)
	s.scope = outer
	s.depth--
}

func (s *state) assign(name string, value any) {
	for i := len(s.scope) - 1; i >= 0; i-- {
		if s.scope[i].name == name {
			s.scope[i].value = value
			return
		}
	}
	s.failf("undefined variable: %s", name)
}

func (s *state) variable(name string) any {
	for i := len(s.scope) - 1; i >= 0; i-- {
		if s.scope[i].name == name {
			return s.scope[i].value
		}
	}
	s.failf("undefined variable: %s", name)
	return nil
}
