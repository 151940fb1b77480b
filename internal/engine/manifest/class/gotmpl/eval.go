package gotmpl

import (
	"fmt"
	"reflect"
	"strings"
	"text/template/parse"
)

// absent marks that a command gets no value from the left of the pipeline.
type absent struct{}

// pipeline evaluates commands from left to right, and assigns the result to the variables
// before them.
func (s *state) pipeline(dot any, p *parse.PipeNode) any {
	s.spend(1)
	s.depth++
	if s.depth > maxDepth {
		s.failf("the expression is nested too deeply")
	}
	var value any = absent{}
	for _, c := range p.Cmds {
		value = s.command(dot, c, value)
	}
	for _, d := range p.Decl {
		if p.IsAssign {
			s.assign(d.Ident[0], value)
		} else {
			s.scope = append(s.scope, variable{d.Ident[0], value})
		}
	}
	s.depth--
	return value
}

func (s *state) command(dot any, c *parse.CommandNode, final any) any {
	s.node = c
	first := c.Args[0]
	if n, ok := first.(*parse.IdentifierNode); ok {
		return s.function(dot, n, c.Args[1:], final)
	}
	if _, piped := final.(absent); len(c.Args) > 1 || !piped {
		s.failf("can't give argument to non-function %s", first)
	}
	if _, ok := first.(*parse.NilNode); ok {
		s.failf("nil is not a command")
	}
	return s.operand(dot, first)
}

// operand evaluates a node that has a value.
func (s *state) operand(dot any, n parse.Node) any {
	s.spend(1)
	switch n := n.(type) {
	case *parse.FieldNode:
		return s.fields(n, dot, n.Ident)
	case *parse.ChainNode:
		if _, ok := n.Node.(*parse.NilNode); ok {
			s.failf("indirection through explicit nil in %s", n)
		}
		return s.fields(n, s.operand(dot, n.Node), n.Field)
	case *parse.VariableNode:
		return s.fields(n, s.variable(n.Ident[0]), n.Ident[1:])
	case *parse.PipeNode:
		return s.pipeline(dot, n)
	case *parse.IdentifierNode:
		return s.function(dot, n, nil, absent{})
	case *parse.DotNode:
		return dot
	default:
		return s.constant(n)
	}
}

func (s *state) constant(n parse.Node) any {
	switch n := n.(type) {
	case *parse.NilNode:
		return nil
	case *parse.BoolNode:
		return n.True
	case *parse.StringNode:
		return n.Text
	case *parse.NumberNode:
		return s.number(n)
	default:
		s.failf("%s cannot be evaluated", n)
		return nil
	}
}

// number returns a constant; its type depends on its spelling only.
func (s *state) number(n *parse.NumberNode) any {
	lower := strings.ToLower(n.Text)
	whole := strings.HasPrefix(lower, "'") || strings.HasPrefix(lower, "0x") && !strings.Contains(lower, "p")
	switch {
	case strings.HasSuffix(lower, "i") && !strings.HasPrefix(lower, "'"):
		s.failf("complex numbers such as %s are not supported", n.Text)
	case n.IsFloat && !whole && strings.ContainsAny(lower, ".ep"):
		return n.Float64
	case n.IsInt:
		return int(n.Int64)
	}
	s.failf("%s overflows int", n.Text)
	return nil
}

// fields evaluates a chain of field names.
func (s *state) fields(n parse.Node, value any, names []string) any {
	s.node = n
	for _, name := range names {
		value = s.field(value, name)
	}
	return value
}

func (s *state) field(value any, name string) any {
	s.spend(1)
	var found any
	ok := false
	switch v := value.(type) {
	case missing:
	case nil:
		s.failf("the value is null and has no field .%s", name)
	case map[string]any:
		found, ok = v[name]
	case map[string]string:
		found, ok = v[name]
	default:
		s.failf("can't evaluate field %s in a %s", name, kindOf(value))
	}
	if ok {
		return found
	}
	if s.strict {
		s.failf(".%s is not defined", name)
	}
	return missing{}
}

// function calls a function by name.
func (s *state) function(dot any, n *parse.IdentifierNode, arguments []parse.Node, final any) any {
	f, known := s.template.funcs[n.Ident]
	if !known {
		s.failf("the function %q is not supported", n.Ident)
	}
	if n.Ident == "and" || n.Ident == "or" {
		return s.logic(dot, n.Ident == "or", arguments, final)
	}
	call := reflect.ValueOf(f)
	in := s.arguments(dot, n.Ident, call.Type(), arguments, final)
	s.node = n
	values := make([]any, len(in))
	for i, v := range in {
		values[i] = v.Interface()
		s.spend(s.weigh(values[i]))
	}
	s.estimate(n.Ident, values)
	out, err := safely(call, in)
	if err != nil {
		s.failf("%s: %v", n.Ident, err)
	}
	s.spend(s.weigh(out))
	return out
}

// estimate checks the cost of a function before it is called.
func (s *state) estimate(name string, arguments []any) {
	cost := s.template.costs[name]
	if cost == nil {
		return
	}
	if n := cost(arguments); n <= maxWork-s.work {
		s.spend(n)
		return
	}
	s.failf("%s: %v", name, errTooMuch)
}

// logic evaluates "and" and "or", which stop at the argument that decides.
func (s *state) logic(dot any, or bool, arguments []parse.Node, final any) any {
	var value any = missing{}
	for _, a := range arguments {
		value = s.argument(dot, reflect.TypeFor[any](), a)
		if truth(value) == or {
			return value
		}
	}
	if _, none := final.(absent); !none {
		return final
	}
	if len(arguments) == 0 {
		s.failf("wrong number of args for and or or: want at least 1 got 0")
	}
	return value
}

// arguments evaluates the arguments of a function. The value of the pipeline comes last.
func (s *state) arguments(dot any, name string, t reflect.Type, nodes []parse.Node, final any) []reflect.Value {
	_, none := final.(absent)
	n := len(nodes)
	if !none {
		n++
	}
	fixed := t.NumIn()
	if t.IsVariadic() {
		fixed--
	}
	if n < fixed || n > fixed && !t.IsVariadic() {
		s.failf("wrong number of args for %s: want %d got %d", name, fixed, n)
	}
	at := func(i int) reflect.Type {
		if i >= fixed {
			return t.In(fixed).Elem()
		}
		return t.In(i)
	}
	in := make([]reflect.Value, 0, n)
	for i, node := range nodes {
		in = append(in, s.fit(s.argument(dot, at(i), node), at(i)))
	}
	if !none {
		in = append(in, s.fit(final, at(len(nodes))))
	}
	return in
}

// argument evaluates one argument. A constant is converted to the wanted type.
func (s *state) argument(dot any, want reflect.Type, n parse.Node) any {
	s.node = n
	number, ok := n.(*parse.NumberNode)
	if !ok {
		return s.operand(dot, n)
	}
	switch want.Kind() { //nolint:exhaustive // the kinds of parameters
	case reflect.Int:
		if !number.IsInt {
			s.failf("expected integer; found %s", n)
		}
		return int(number.Int64)
	case reflect.Float64:
		if !number.IsFloat {
			s.failf("expected float; found %s", n)
		}
		return number.Float64
	default:
		return s.number(number)
	}
}

// fit returns a value as an argument of a type, without conversion.
func (s *state) fit(value any, want reflect.Type) reflect.Value {
	if isMissing(value) || value == nil {
		if want.Kind() != reflect.Interface {
			s.failf("no value given; expected %s", want)
		}
		return reflect.Zero(want)
	}
	v := reflect.ValueOf(value)
	if !v.Type().AssignableTo(want) {
		s.failf("wrong type: expected %s; got %s", want, kindOf(value))
	}
	return v
}

// safely calls a function and turns a panic, such as an index out of range, into an
// error.
func safely(f reflect.Value, in []reflect.Value) (out any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	results := f.Call(in)
	if len(results) > 1 && !results[1].IsNil() {
		failure, _ := results[1].Interface().(error)
		return nil, failure
	}
	return results[0].Interface(), nil
}
