package yamldoc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Text is a source after the substitution of variables. Values may contain newlines, so
// each line has the number of its line in the source.
type Text struct {
	File  string
	Lines []string
	From  []int // from[i] is the source line of lines[i], counted from 1
}

// Variables substitutes ${NAME} as clusterctl does, and records variables without a value
// and where they are used.
type Variables struct {
	options  *input.LoadOptions
	missing  map[string]*missing
	Order    []string // names in missing, in order of first use
	Problems []manifest.Problem
	Warnings []manifest.Problem
	depth    int // of defaults in defaults
	size     int // of the expanded text, in bytes

	fields map[string]bool   // names of variables that a template has in a field
	Values map[string]string // that were used; "" for a default

	template bool  // the source is a template
	uses     []Use // of the variables of the source that are still to come
	use      Use   // of the current one
}

// missing is a variable without a value.
type missing struct {
	places []manifest.Position
	use    Use // the one with the most meaning
}

// Limits of the substitution.
const (
	maxDefaults = 20                // nesting of defaults
	maxExpanded = 2 * input.MaxSize // bytes of all sources, with the values of variables
)

// NewVariables finds out which sources are templates.
func NewVariables(o *input.LoadOptions, sources []input.Source) (*Variables, []Template) {
	v := &Variables{options: o, missing: map[string]*missing{}, fields: map[string]bool{}, Values: map[string]string{}}
	templates := make([]Template, 0, len(sources))
	for _, s := range sources {
		t := recogniseTemplate(s)
		switch o.Substitute {
		case input.SubstituteAll:
			t.is = true
		case input.SubstituteNone:
			t.is = false
		case input.SubstituteAuto:
		}
		for i, name := range t.names {
			v.fields[name] = v.fields[name] || t.is && t.uses[i] >= useSetting
		}
		templates = append(templates, t)
	}
	return v, templates
}

// Expand substitutes the variables in a source, except in comments.
func (v *Variables) Expand(t Template) Text {
	s := t.source
	v.template, v.uses = t.is, t.uses
	out := Text{File: s.Name}
	var scan Scanner
	for i, line := range strings.Split(string(s.Data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		at := manifest.Position{File: s.Name, Line: i + 1}
		end := scan.Comment(line)
		expanded := v.line(line[:end], at) + line[end:]
		if v.size += len(expanded); v.size > maxExpanded {
			v.report(at, fmt.Sprintf("the input is larger than %d MiB with the values of its variables", maxExpanded>>20), "use shorter values")
			return Text{File: s.Name}
		}
		for part := range strings.SplitSeq(expanded, "\n") {
			out.Lines = append(out.Lines, part)
			out.From = append(out.From, i+1)
		}
	}
	return out
}

// line expands one line. In a template, "$${" is the escape for a literal "${".
func (v *Variables) line(line string, at manifest.Position) string {
	return v.each(line, at, func() Use {
		if len(v.uses) == 0 {
			return useNone
		}
		next := v.uses[0]
		v.uses = v.uses[1:]
		return next
	})
}

// each expands the variables of a text. next returns what the next one is for.
func (v *Variables) each(line string, at manifest.Position, next func() Use) string {
	var b strings.Builder
	for {
		x, ok := nextVariable(line)
		if !ok {
			b.WriteString(line)
			return b.String()
		}
		b.WriteString(x.before)
		v.use = next()
		if v.options.Substitute == input.SubstituteNone && v.use == UseField && !x.escaped {
			v.report(at, fmt.Sprintf("the field contains %s, and no variable is replaced", x.text), "write its value, or omit --substitute=none")
		}
		switch {
		case !v.replaces(x):
			v.leave(x, at)
			b.WriteString(x.text)
		case x.escaped:
			b.WriteString("${")
		case x.open:
			v.report(at, fmt.Sprintf("%q has no closing brace", x.text), "close it with }, or write $${ for a literal ${")
			b.WriteString(x.expression)
		default:
			b.WriteString(v.expression(x.expression, at))
		}
		if x.open {
			return b.String()
		}
		line = x.after
	}
}

// leave keeps the value of a variable that is not replaced but was named by --set, and warns about an escape without effect.
func (v *Variables) leave(x Variable, at manifest.Position) {
	if value, named := v.named(nameIn(x.expression)); named && !x.escaped {
		v.Values[nameIn(x.expression)] = value // the manifest has it, in an object that stays as it is
	}
	if x.escaped && v.use == useCommand && v.options.Substitute == input.SubstituteAuto {
		v.Warnings = append(v.Warnings, manifest.Problem{
			Position: at, What: "$${ stays as it is: the file is no template, so ${ needs no escape", Fix: "write ${, or pass --substitute=all",
		})
	}
}

// replaces reports whether a ${…} is one of this program, and not of a shell, of systemd or of
// another program that reads the text later.
func (v *Variables) replaces(x Variable) bool {
	name := nameIn(x.expression)
	_, named := v.named(name)
	_, known := v.find(name)
	switch {
	case v.use == useNone, v.options.Substitute == input.SubstituteNone:
		return false
	case v.use == useForeign:
		return known
	default:
		return v.template || named
	}
}

// closing finds the brace that ends an expression; defaults may be nested.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch {
		case s[i] == '{' && i > 0 && s[i-1] == '$':
			depth++
		case s[i] == '}' && depth == 0:
			return i
		case s[i] == '}':
			depth--
		}
	}
	return -1
}

// expression evaluates the text between the braces.
func (v *Variables) expression(expr string, at manifest.Position) string {
	expr = strings.TrimSpace(expr)
	if name, ok := strings.CutPrefix(expr, "#"); ok && isName(name) {
		return strconv.Itoa(len(v.value(name, at)))
	}
	n := strings.IndexFunc(expr, func(r rune) bool { return !isNameRune(r) })
	if n < 0 {
		n = len(expr)
	}
	name, op := expr[:n], expr[n:]
	if !isName(name) {
		return v.unsupported(expr, at)
	}
	switch {
	case op == "":
		return v.value(name, at)
	case strings.HasPrefix(op, ":-"), strings.HasPrefix(op, ":="):
		return v.fallback(name, op[2:], at)
	case strings.HasPrefix(op, "="):
		return v.fallback(name, op[1:], at)
	case strings.HasPrefix(op, ":"):
		s, ok := substring(v.value(name, at), op[1:])
		if !ok {
			return v.unsupported(expr, at)
		}
		return s
	default:
		return v.changeCase(name, op, expr, at)
	}
}

// changeCase evaluates ${NAME^}, ${NAME^^}, ${NAME,} and ${NAME,,}.
func (v *Variables) changeCase(name, op, expr string, at manifest.Position) string {
	switch op {
	case "^^":
		return strings.ToUpper(v.value(name, at))
	case ",,":
		return strings.ToLower(v.value(name, at))
	case "^":
		return mapFirst(v.value(name, at), unicode.ToUpper)
	case ",":
		return mapFirst(v.value(name, at), unicode.ToLower)
	default:
		return v.unsupported(expr, at)
	}
}

// value returns the value of a variable. If it has none, value returns the name, which is
// valid YAML wherever a variable is.
func (v *Variables) value(name string, at manifest.Position) string {
	if value, ok := v.find(name); ok {
		v.Values[name] = value
		return value
	}
	m := v.missing[name]
	if m == nil {
		m = &missing{}
		v.missing[name] = m
		v.Order = append(v.Order, name)
	}
	m.use = max(m.use, v.use)
	if len(m.places) == 0 || m.places[len(m.places)-1] != at { // lines are expanded in order
		m.places = append(m.places, at)
	}
	return name
}

// fallback returns the value, or the expanded default if the value is unset or empty.
func (v *Variables) fallback(name, def string, at manifest.Position) string {
	value, ok := v.find(name)
	v.Values[name] = value
	if ok && value != "" {
		return value
	}
	if why := v.withheld(name, v.use); !ok && why != "" {
		fix := fmt.Sprintf("pass --set %s to take the value in the environment", name)
		if !isCredential(name) { // which does not belong among the arguments of a process
			fix += fmt.Sprintf(", or --set %s=VALUE", name)
		}
		v.Warnings = append(v.Warnings, manifest.Problem{
			Position: at, What: fmt.Sprintf("the variable %s has its default, not the value in the environment: %s", name, why), Fix: fix,
		})
	}
	if v.depth++; v.depth > maxDefaults {
		v.report(at, fmt.Sprintf("the default of %s is nested too deeply", name), fmt.Sprintf("nest at most %d defaults", maxDefaults))
		def = ""
	}
	outer := v.use
	defer func() { v.depth, v.use = v.depth-1, outer }()
	return v.each(def, at, func() Use { return outer })
}

// find returns the value of a variable that the user names, or that a template takes from the
// environment.
func (v *Variables) find(name string) (string, bool) {
	if value, ok := v.named(name); ok {
		return value, true
	}
	if v.options.Lookup == nil || name == "" || !v.template && v.use != useForeign || v.private(name, v.use) != "" {
		return "", false
	}
	return v.options.Lookup(name)
}

// named returns the value of a variable that the user names.
func (v *Variables) named(name string) (string, bool) {
	if v.options.Set == nil || name == "" {
		return "", false
	}
	return v.options.Set(name)
}

// private says why the value of a variable in the environment is not for the manifest; "" if it is.
func (v *Variables) private(name string, of Use) string {
	switch {
	case isCredential(name):
		return "its name is that of a credential"
	case v.options.Substitute == input.SubstituteAll, of == UseField:
		return ""
	case isOfShell(name):
		return "every shell has one of this name"
	case of < useSetting && !v.fields[name]:
		return "only text that is passed on uses it, such as labels, files and commands, and it could be a secret"
	}
	return ""
}

// withheld says why the value that a variable has in the environment is not used; "" if it has none.
func (v *Variables) withheld(name string, of Use) string {
	why := v.private(name, of)
	if why == "" || v.options.Lookup == nil {
		return ""
	}
	if _, ok := v.options.Lookup(name); !ok {
		return ""
	}
	return why
}

func (v *Variables) unsupported(expr string, at manifest.Position) string {
	v.report(at, fmt.Sprintf("the variable expression ${%s} is not supported", expr),
		fmt.Sprintf("use ${NAME}, ${NAME:-default} or ${NAME:offset:length}, or write $${%s} for a literal ${…} on the node", expr))
	return ""
}

func (v *Variables) report(at manifest.Position, what, fix string) {
	v.Problems = append(v.Problems, manifest.Problem{Position: at, What: what, Fix: fix})
}

// Unset returns one problem for each variable without a value, with all places that use
// it.
func (v *Variables) Unset() []manifest.Problem {
	var problems []manifest.Problem
	for _, name := range v.Order {
		m := v.missing[name]
		what := fmt.Sprintf("the variable %s is not set", name)
		fix := fmt.Sprintf("set it in the environment or with --set %s=VALUE", name)
		if v.private(name, m.use) != "" {
			fix = fmt.Sprintf("set it with --set %s=VALUE", name)
		}
		if why := v.withheld(name, m.use); why != "" {
			what = fmt.Sprintf("the variable %s is not taken from the environment: %s", name, why)
			fix = fmt.Sprintf("pass --set %s to take it, or --set %[1]s=VALUE", name)
		}
		if isCredential(name) { // which does not belong among the arguments of a process
			fix = fmt.Sprintf("set it in the environment, and pass --set %s to take it", name)
		}
		if len(m.places) > 1 {
			what += "; it is also used in " + alsoIn(m.places[0].File, m.places[1:])
		}
		problems = append(problems, manifest.Problem{Position: m.places[0], What: what, Fix: fmt.Sprintf("%s, or write $${%s} to keep ${%[2]s}", fix, name)})
	}
	return problems
}

// alsoIn lists more positions: those in the given file by line only.
func alsoIn(file string, places []manifest.Position) string {
	var here, elsewhere []string
	for _, p := range places {
		if p.File == file {
			here = append(here, strconv.Itoa(p.Line))
		} else {
			elsewhere = append(elsewhere, p.String())
		}
	}
	switch len(here) {
	case 0:
	case 1:
		elsewhere = append([]string{"line " + here[0]}, elsewhere...)
	default:
		elsewhere = append([]string{"lines " + strings.Join(here, ", ")}, elsewhere...)
	}
	return strings.Join(elsewhere, ", ")
}

// substring evaluates "offset" or "offset:length".
func substring(value, arguments string) (string, bool) {
	first, second, ranged := strings.Cut(arguments, ":")
	offset, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || offset < 0 {
		return "", false
	}
	runes := []rune(value)
	runes = runes[min(offset, len(runes)):]
	if !ranged {
		return string(runes), true
	}
	length, err := strconv.Atoi(strings.TrimSpace(second))
	if err != nil || length < 0 {
		return "", false
	}
	return string(runes[:min(length, len(runes))]), true
}

func mapFirst(s string, change func(rune) rune) string {
	for i, r := range s {
		return string(change(r)) + s[i+len(string(r)):]
	}
	return s
}

func isName(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) }) < 0
}

func isNameRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
