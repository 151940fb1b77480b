package jinja

import (
	"fmt"
	"slices"
)

// tuple reads one or more expressions with commas between them.
func (p *parser) tuple(conditional bool, ends []string) { p.list(conditional, ends, false) }

// list is tuple; between parentheses, it may be empty.
func (p *parser) list(conditional bool, ends []string, parentheses bool) (of node) {
	ended := func() bool {
		t := p.current()
		return t.kind == outputEnd || t.kind == blockEnd || t.is(operator, ")") || t.kind == name && slices.Contains(ends, t.text)
	}
	for count := 0; ; count++ {
		if ended() {
			if count == 0 && !parentheses {
				p.unexpected(p.current(), "an expression")
			}
			return tupleNode
		}
		if of = p.choice(conditional); !p.skip(operator, ",") {
			if count > 0 {
				return tupleNode
			}
			return of
		}
		p.computes = true
	}
}

func (p *parser) expression() node { return p.choice(true) }

// choice reads "a if b else c", which is optional.
func (p *parser) choice(conditional bool) (of node) {
	p.within(new(int), func() {
		first := len(p.reads)
		of = p.or()
		for conditional && p.skip(name, "if") {
			of, p.computes = otherNode, true
			for i := first; i < len(p.reads); i++ {
				p.reads[i].Maybe = true
			}
			p.within(&p.soft, func() {
				p.within(&p.maybe, func() {
					p.or()
					if p.skip(name, "else") {
						p.choice(true)
					}
				})
			})
		}
	})
	return of
}

func (p *parser) or() node  { return p.joined("or", p.and) }
func (p *parser) and() node { return p.joined("and", p.not) }

// joined reads operands with a word between them. All but the first may not be evaluated.
func (p *parser) joined(word string, operand func() node) node {
	of := operand()
	for p.skip(name, word) {
		of, p.computes = otherNode, true
		p.within(&p.maybe, func() { operand() })
	}
	return of
}

func (p *parser) not() (of node) {
	if !p.skip(name, "not") {
		return p.compare()
	}
	p.computes = true
	p.within(new(int), func() { p.not() })
	return otherNode
}

func (p *parser) compare() node {
	of := p.sum()
	for {
		switch t := p.current(); {
		case t.kind == operator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text), t.is(name, "in"):
			p.take()
		case t.is(name, "not") && p.look().is(name, "in"):
			p.take()
			p.take()
		default:
			return of
		}
		of, p.computes = otherNode, true
		p.sum()
	}
}

func (p *parser) sum() node     { return p.infix(p.joint, "+", "-") }
func (p *parser) joint() node   { return p.infix(p.product, "~") }
func (p *parser) product() node { return p.infix(p.power, "*", "/", "//", "%") }
func (p *parser) power() node   { return p.infix(func() node { return p.unary(true) }, "**") }

// infix reads operands with operators between them.
func (p *parser) infix(operand func() node, operators ...string) node {
	first := len(p.reads)
	of := operand()
	for p.current().kind == operator && slices.Contains(operators, p.current().text) {
		arithmetic := p.take().text != "~"
		of, p.computes = otherNode, true
		operand()
		for i := first; i < len(p.reads) && arithmetic; i++ {
			p.reads[i].Operand = !p.reads[i].filtered
		}
	}
	return of
}

// unary reads a value with its signs, attributes, calls and filters.
func (p *parser) unary(filtered bool) (of node) {
	var path []string
	at := p.current()
	if p.skip(operator, "-") || p.skip(operator, "+") {
		p.computes = true
		p.within(new(int), func() { p.unary(false) })
	} else if of = p.primary(); of == nameNode {
		path = []string{at.text}
	}
	of, path = p.postfix(of, path)
	read := -1
	if path != nil {
		read, p.reads = len(p.reads), append(p.reads, Read{Path: path, At: at.at, Maybe: p.maybe > 0})
	}
	for filtered {
		switch t := p.current(); {
		case t.is(operator, "|"):
			if next := p.look(); read >= 0 {
				p.reads[read].filtered, p.reads[read].Default = true, next.text == "default" || next.text == "d"
			}
			p.filters(false)
			of = otherNode
		case t.is(name, "is"):
			if read >= 0 {
				p.reads[read].filtered, p.reads[read].Default = true, true
			}
			p.test()
			of = otherNode
		case t.is(operator, "("):
			p.arguments()
			of = callNode
		default:
			return of
		}
		p.computes, read = true, -1
	}
	return of
}

// primary reads a name, a constant, or something in brackets.
func (p *parser) primary() (of node) {
	t := p.take()
	switch {
	case t.kind == name:
		if slices.Contains([]string{"true", "false", "True", "False", "none", "None"}, t.text) {
			return otherNode
		}
		return nameNode
	case t.kind == str:
		for p.current().kind == str {
			p.take()
		}
	case t.kind == number, t.kind == integer:
	case t.is(operator, "("):
		p.within(new(int), func() { of = p.list(true, nil, true) })
		p.expectOperator(")")
		if of == nameNode {
			of = otherNode // its attributes are not followed
		}
		return of
	case t.is(operator, "["):
		p.items("]", func() { p.expression() })
	case t.is(operator, "{"):
		p.items("}", func() {
			p.expression()
			p.expectOperator(":")
			p.expression()
		})
	default:
		p.fail(t.at, "%s is no expression of jinja", describe(p, t))
	}
	return otherNode
}

// describe says where a tag has no valid expression.
func describe(p *parser, t token) string {
	return fmt.Sprintf("%s, with %s where a value is expected,", tagOf(p.text, p.tag), t.words())
}

// items reads what is in brackets, with commas between.
func (p *parser) items(end string, item func()) {
	p.computes = true
	for first := true; !p.current().is(operator, end); first = false {
		if !first {
			p.expectOperator(",")
			if p.current().is(operator, end) {
				break
			}
		}
		p.within(new(int), item)
	}
	p.expectOperator(end)
}

// postfix reads attributes and calls after a value. It returns the path of the variable; nil if it is none.
func (p *parser) postfix(of node, path []string) (node, []string) {
	for {
		switch {
		case p.skip(operator, "."):
			t := p.take()
			if t.kind != name && t.kind != integer {
				p.unexpected(t, "a name or a number")
			}
			if of = otherNode; path != nil {
				path = append(slices.Clone(path), t.text)
			}
		case p.skip(operator, "["):
			t, next := p.current(), p.look()
			p.subscripts()
			of = otherNode
			switch {
			case path == nil:
			case (t.kind == str || t.kind == integer) && next.is(operator, "]"):
				path = append(slices.Clone(path), t.text)
			default:
				p.note(path)
				path, p.computes = nil, true
			}
		case p.current().is(operator, "("):
			if path != nil {
				p.note(path[:max(1, len(path)-1)]) // the last one may be a function of Python
			}
			p.arguments()
			of, path, p.computes = callNode, nil, true
		default:
			return of, path
		}
	}
}

// note adds a variable that is read.
func (p *parser) note(path []string) {
	p.reads = append(p.reads, Read{Path: path, At: p.tag, Maybe: p.maybe > 0})
}

// subscripts reads what is between [ and ].
func (p *parser) subscripts() {
	for first := true; !p.current().is(operator, "]"); first = false {
		if !first {
			p.expectOperator(",")
		}
		if !p.current().is(operator, ":") {
			p.expression()
		}
		for range 2 { // of a slice
			if p.skip(operator, ":") && !p.current().is(operator, "]") && !p.current().is(operator, ",") && !p.current().is(operator, ":") {
				p.expression()
			}
		}
	}
	p.expectOperator("]")
}

// arguments reads the arguments of a call.
func (p *parser) arguments() {
	opened := p.current()
	p.expectOperator("(")
	named, list, mapping := false, false, false
	for first := true; !p.current().is(operator, ")"); first = false {
		if !first {
			p.expectOperator(",")
			if p.current().is(operator, ")") {
				break
			}
		}
		wrong := false
		switch t := p.current(); {
		case t.is(operator, "*"):
			wrong, list = list || mapping, true
			p.take()
		case t.is(operator, "**"):
			wrong, mapping = mapping, true
			p.take()
		case t.kind == name && p.look().is(operator, "="):
			wrong, named = mapping, true
			p.take()
			p.take()
		default:
			wrong = named || list || mapping
		}
		if wrong {
			p.fail(opened.at, "the arguments of a call are in the wrong order, in %s", tagOf(p.text, p.tag))
		}
		p.expression()
	}
	p.expectOperator(")")
}

// filters reads filters; the first one without "|" if inline is set.
func (p *parser) filters(inline bool) {
	for inline || p.skip(operator, "|") {
		p.known(Filters(), "filter")
		if p.current().is(operator, "(") {
			p.arguments()
		}
		inline, p.computes = false, true
	}
}

// known reads the name of a filter or a test, which jinja has to know.
func (p *parser) known(names []string, what string) {
	t := p.expect(name, "the name of a "+what)
	full := t.text
	for p.skip(operator, ".") {
		full += "." + p.expect(name, "a name").text
	}
	if p.soft == 0 && !slices.Contains(names, full) {
		p.fail(t.at, "jinja has no %s %s, in %s", what, full, tagOf(p.text, p.tag))
	}
}

// test reads "is" and a test.
func (p *parser) test() {
	p.take()
	p.skip(name, "not")
	p.known(Tests(), "test")
	switch t := p.current(); {
	case t.is(operator, "("):
		p.arguments()
	case t.is(name, "is"):
		p.fail(t.at, "jinja permits one test after another with \"and\" only, in %s", tagOf(p.text, p.tag))
	case t.kind == name && (t.text == "else" || t.text == "or" || t.text == "and"):
	case t.kind == name, t.kind == str, t.kind == number, t.kind == integer, t.is(operator, "["), t.is(operator, "{"):
		p.postfix(p.primary(), nil)
	}
}
