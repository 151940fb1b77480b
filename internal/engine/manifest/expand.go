package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// text is a source after the substitution of variables. Values may contain newlines, so
// each line has the number of its line in the source.
type text struct {
	file  string
	lines []string
	from  []int // from[i] is the source line of lines[i], counted from 1
}

// variables substitutes ${NAME} as clusterctl does, and records variables without a value
// and where they are used.
type variables struct {
	lookup   func(name string) (string, bool)
	missing  map[string][]Position
	order    []string // names in missing, in order of first use
	problems []Problem
	depth    int // of defaults in defaults
	size     int // of the expanded text, in bytes
}

// Limits of the substitution.
const (
	maxDefaults = 20                // nesting of defaults
	maxExpanded = 2 * input.MaxSize // bytes of all sources, with the values of variables
)

// expand substitutes the variables in a source, except in comments.
func (v *variables) expand(s Source) text {
	out := text{file: s.Name}
	var scan scanner
	for i, line := range strings.Split(string(s.Data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		at := Position{File: s.Name, Line: i + 1}
		end := scan.comment(line)
		expanded := v.line(line[:end], at) + line[end:]
		if v.size += len(expanded); v.size > maxExpanded {
			v.report(at, fmt.Sprintf("the input is larger than %d MiB with the values of its variables", maxExpanded>>20), "use shorter values")
			return text{file: s.Name}
		}
		for part := range strings.SplitSeq(expanded, "\n") {
			out.lines = append(out.lines, part)
			out.from = append(out.from, i+1)
		}
	}
	return out
}

// line expands one line. "$${" is the escape for a literal "${".
func (v *variables) line(line string, at Position) string {
	var b strings.Builder
	for {
		i := strings.Index(line, "${")
		if i < 0 {
			b.WriteString(line)
			return b.String()
		}
		if i > 0 && line[i-1] == '$' {
			b.WriteString(line[:i-1])
			b.WriteString("${")
			line = line[i+2:]
			continue
		}
		b.WriteString(line[:i])
		n := closing(line[i+2:])
		if n < 0 {
			v.report(at, fmt.Sprintf("%q has no closing brace", line[i:]), "close it with }, or write $${ for a literal ${")
			b.WriteString(line[i+2:])
			return b.String()
		}
		b.WriteString(v.expression(line[i+2:i+2+n], at))
		line = line[i+2+n+1:]
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
func (v *variables) expression(expr string, at Position) string {
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
func (v *variables) changeCase(name, op, expr string, at Position) string {
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
func (v *variables) value(name string, at Position) string {
	if value, ok := v.find(name); ok {
		return value
	}
	if _, seen := v.missing[name]; !seen {
		v.order = append(v.order, name)
	}
	if places := v.missing[name]; len(places) == 0 || places[len(places)-1] != at { // lines are expanded in order
		v.missing[name] = append(places, at)
	}
	return name
}

// fallback returns the value, or the expanded default if the value is unset or empty.
func (v *variables) fallback(name, def string, at Position) string {
	if value, ok := v.find(name); ok && value != "" {
		return value
	}
	if v.depth++; v.depth > maxDefaults {
		v.report(at, fmt.Sprintf("the default of %s is nested too deeply", name), fmt.Sprintf("nest at most %d defaults", maxDefaults))
		def = ""
	}
	defer func() { v.depth-- }()
	return v.line(def, at)
}

func (v *variables) find(name string) (string, bool) {
	if v.lookup == nil {
		return "", false
	}
	return v.lookup(name)
}

func (v *variables) unsupported(expr string, at Position) string {
	v.report(at, fmt.Sprintf("the variable expression ${%s} is not supported", expr),
		fmt.Sprintf("use ${NAME}, ${NAME:-default} or ${NAME:offset:length}, or write $${%s} for a literal ${…} on the node", expr))
	return ""
}

func (v *variables) report(at Position, what, fix string) {
	v.problems = append(v.problems, Problem{Position: at, What: what, Fix: fix})
}

// unset returns one problem for each variable without a value, with all places that use
// it.
func (v *variables) unset() []Problem {
	var problems []Problem
	for _, name := range v.order {
		places := v.missing[name]
		what := fmt.Sprintf("the variable %s is not set", name)
		if len(places) > 1 {
			what += "; it is also used in " + alsoIn(places[0].File, places[1:])
		}
		problems = append(problems, Problem{
			Position: places[0],
			What:     what,
			Fix:      fmt.Sprintf("set it in the environment or with --set %s=VALUE", name),
		})
	}
	return problems
}

// alsoIn lists more positions: those in the given file by line only.
func alsoIn(file string, places []Position) string {
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
