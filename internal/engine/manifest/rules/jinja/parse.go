package jinja

import (
	"fmt"
	"slices"
	"strings"
)

// Read is a variable that a template reads, with its attributes.
type Read struct {
	Path    []string // ds, meta_data, local_hostname
	At      int      // position in the text
	Default bool     // the filter "default" follows, or a test such as "is defined"
	Maybe   bool     // it is read under a condition only
	Operand bool     // it is an operand of arithmetic, which fails without it

	filtered bool // a filter or a test follows
}

// Template is what is known of a text that is a template.
type Template struct {
	Reads    []Read // variables that the template does not set itself
	Computes bool   // it has more than text and variables: filters, operators, calls, statements
}

// Parse reads a text as a template.
func Parse(text string) (*Template, *Error) {
	all, err := tokens(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: all, set: map[string]bool{}}
	func() {
		defer func() {
			switch e := recover().(type) {
			case nil:
			case *Error:
				err = e
			default:
				panic(e)
			}
		}()
		p.body(token{}, nil)
	}()
	if err != nil {
		return nil, err
	}
	t := &Template{Computes: p.computes}
	for _, r := range p.reads {
		if !p.set[r.Path[0]] && !slices.Contains(functions(), r.Path[0]) {
			t.Reads = append(t.Reads, r)
		}
	}
	return t, nil
}

// functions are what a template has beside the variables: DEFAULT_NAMESPACE in defaults.py, and what statements make.
func functions() []string {
	return strings.Fields("range dict lipsum cycler joiner namespace loop caller self super varargs kwargs")
}

// Filters are the filters of jinja2: FILTERS in filters.py, of all versions from 2.7 on.
func Filters() []string {
	return strings.Fields(`abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby indent
		int items join last length list lower map max min pprint random reject rejectattr replace reverse round safe select selectattr slice sort string
		striptags sum title tojson trim truncate unique upper urlencode urlize wordcount wordwrap xmlattr`)
}

// Tests are the tests of jinja2: TESTS in tests.py, of all versions from 2.7 on.
func Tests() []string {
	return strings.Fields(`boolean callable defined divisibleby eq equalto escaped even false filter float ge greaterthan gt in integer iterable le lessthan
		lower lt mapping ne none number odd sameas sequence string test true undefined upper`)
}

// node is a part of an expression.
type node int

const (
	otherNode node = iota
	nameNode
	tupleNode
	callNode
)

// longestNesting limits how deeply expressions and statements are nested. The compiler of Python, which jinja2 uses, permits less.
const longestNesting = 200

type parser struct {
	text     string
	tokens   []token
	pos      int
	depth    int
	soft     int // in how many conditions the parser is: jinja2 3 finds unknown filters there only when it renders them
	maybe    int // in how many parts the parser is that may not be rendered
	tag      int // position of the innermost tag
	reads    []Read
	set      map[string]bool // names that the template sets itself
	computes bool
}

func (p *parser) fail(at int, format string, args ...any) {
	panic(&Error{At: at, What: fmt.Sprintf(format, args...)})
}

func (p *parser) current() token { return p.tokens[p.pos] }
func (p *parser) look() token    { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) take() token {
	t := p.tokens[p.pos]
	p.pos = min(p.pos+1, len(p.tokens)-1)
	return t
}

func (p *parser) skip(k kind, text string) bool {
	if p.current().is(k, text) {
		p.take()
		return true
	}
	return false
}

func (p *parser) expectOperator(text string) {
	if t := p.take(); !t.is(operator, text) {
		p.unexpected(t, text)
	}
}

func (p *parser) expect(k kind, what string) token {
	t := p.take()
	if t.kind != k {
		p.unexpected(t, what)
	}
	return t
}

func (p *parser) unexpected(t token, wanted string) {
	p.fail(t.at, "jinja expects %s, not %s, in %s", wanted, t.words(), tagOf(p.text, p.tag))
}

// within runs a function one level deeper.
func (p *parser) within(counter *int, run func()) {
	if p.depth++; p.depth > longestNesting {
		p.fail(p.current().at, "the template is nested too deeply")
	}
	*counter++
	run()
	*counter--
	p.depth--
}

// body reads text and tags up to one of the given end tags, and returns the name of that tag. Without end tags, it reads to the end of the text.
func (p *parser) body(opened token, ends []string) string {
	for {
		t := p.take()
		switch t.kind {
		case eof:
			if len(ends) > 0 {
				p.fail(opened.at, "{%% %s %%} has no {%% %s %%}", opened.text, ends[len(ends)-1])
			}
			return ""
		case output:
			p.tag = t.at
			p.tuple(true, nil)
			p.expect(outputEnd, "}}")
		case block:
			p.tag, p.computes = t.at, true
			if t := p.current(); t.kind == name && slices.Contains(ends, t.text) {
				p.take()
				return t.text
			}
			p.statement()
			p.expect(blockEnd, "%}")
		case outputEnd, blockEnd, name, str, number, integer, operator:
			p.unexpected(t, "text")
		}
	}
}

// until reads the end of a tag, and the body up to the tag that ends it.
func (p *parser) until(opened token, ends ...string) (end string) {
	p.skip(operator, ":")
	p.expect(blockEnd, "%}")
	p.within(&p.maybe, func() { end = p.body(opened, ends) })
	return end
}

// statement reads a statement, without its delimiters.
func (p *parser) statement() {
	t := p.take()
	if t.kind != name {
		p.unexpected(t, "the name of a statement")
	}
	switch t.text {
	case "if":
		p.within(&p.soft, func() { p.conditional(t) })
	case "for":
		p.loop(t)
	case "set":
		p.assign(t)
	case "macro":
		p.set[p.expect(name, "a name").text] = true
		p.signature()
		p.until(t, "endmacro")
	case "call":
		p.call(t)
	case "filter":
		p.filters(true)
		p.until(t, "endfilter")
	case "do": // jinja2.ext.do
		p.tuple(true, nil)
	case "autoescape":
		p.expression()
		p.until(t, "endautoescape")
	default:
		p.rare(t)
	}
}

// rare reads the other statements.
func (p *parser) rare(t token) {
	switch t.text {
	case "with":
		p.separated(func() {
			p.target(nil, false)
			p.expectOperator("=")
			p.expression()
		})
		p.until(t, "endwith")
	case "block":
		named := p.expect(name, "a name").text
		_, _ = p.skip(name, "scoped"), p.skip(name, "required")
		p.until(t, "endblock")
		p.skip(name, named)
	case "print":
		p.separated(func() { p.expression() })
	default:
		p.unusual(t)
	}
}

// separated reads parts with commas between them, up to the end of the tag.
func (p *parser) separated(part func()) {
	for first := true; p.current().kind != blockEnd && !p.current().is(operator, ":"); first = false {
		if !first {
			p.expectOperator(",")
		}
		part()
	}
}

func (p *parser) call(t token) {
	if p.current().is(operator, "(") {
		p.signature()
	}
	if p.expression() != callNode {
		p.fail(t.at, "{%% call %%} calls no macro")
	}
	p.until(t, "endcall")
}

// unusual reads a statement that needs other templates, of which cloud-init has none ("no loader for this environment specified"), or
// refuses one that jinja does not have.
func (p *parser) unusual(t token) {
	if !slices.Contains([]string{"include", "import", "from", "extends"}, t.text) {
		p.fail(t.at, "jinja has no statement %s, in %s", t.text, tagOf(p.text, p.tag))
	}
	if p.maybe == 0 {
		p.fail(t.at, "{%% %s %%} needs another template, and cloud-init has none", t.text)
	}
	for p.current().kind != blockEnd && p.current().kind != eof { // such a statement is not rendered
		p.set[p.current().text] = true
		p.take()
	}
}

func (p *parser) conditional(t token) {
	for {
		p.tuple(false, nil)
		switch p.until(t, "elif", "else", "endif") {
		case "elif":
			continue
		case "else":
			p.until(t, "endif")
		}
		return
	}
}

func (p *parser) loop(t token) {
	p.target([]string{"in"}, false)
	if !p.skip(name, "in") {
		p.unexpected(p.current(), "in")
	}
	p.tuple(false, []string{"recursive"})
	if p.skip(name, "if") {
		p.expression()
	}
	p.skip(name, "recursive")
	if p.until(t, "endfor", "else") == "else" {
		p.until(t, "endfor")
	}
}

func (p *parser) assign(t token) {
	p.target(nil, true)
	if p.skip(operator, "=") {
		p.tuple(true, nil)
		return
	}
	p.filters(false)
	p.until(t, "endset")
}

// target reads the names that a statement sets.
func (p *parser) target(ends []string, namespace bool) {
	for first, at := true, p.current(); ; first = false {
		t := p.current()
		if !first && (t.kind == blockEnd || t.kind == name && slices.Contains(ends, t.text)) {
			return
		}
		switch {
		case t.is(operator, "("):
			p.take()
			p.target([]string{")"}, namespace)
			p.expectOperator(")")
		case t.kind != name || slices.Contains(strings.Fields("true false none True False None"), t.text):
			p.fail(at.at, "jinja cannot set %s, in %s", t.words(), tagOf(p.text, p.tag))
		default:
			p.set[p.take().text] = true
			if namespace && p.skip(operator, ".") {
				p.expect(name, "a name")
			}
		}
		if !p.skip(operator, ",") {
			return
		}
		if p.current().is(operator, ")") {
			return
		}
	}
}

func (p *parser) signature() {
	p.expectOperator("(")
	defaults := false
	for first := true; !p.current().is(operator, ")"); first = false {
		if !first {
			p.expectOperator(",")
		}
		t := p.expect(name, "a name")
		p.set[t.text] = true
		switch given := p.skip(operator, "="); {
		case given:
			defaults = true
			p.expression()
		case defaults:
			p.fail(t.at, "%s has no default, and an argument before it has one", t.text)
		}
	}
	p.expectOperator(")")
}
