package convert

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Object is an object in the text of a file.
type Object struct {
	Kind, APIVersion string
	Name             string // with the ${VARIABLES} of a template
	Line             int    // of its first field, in the file
}

// Title is the kind and the name.
func (o Object) Title() string { return o.Kind + "/" + o.Name }

// Objects lists the objects of a file in order, also those of Lists. Documents that cannot be read are left out.
func Objects(data []byte) (all []Object) {
	for _, in := range split(string(data)) {
		if t := parsed(in); t != nil {
			for _, n := range objectsIn(t.root) {
				all = append(all, objectOf(n))
			}
		}
	}
	return all
}

func objectOf(n *node) Object {
	return Object{Kind: n.scalarAt("kind"), APIVersion: n.scalarAt("apiVersion"), Name: n.scalarAt("metadata.name"), Line: n.line}
}

// parsed returns the tree of a part with its aliases, or nil.
func parsed(in part) *tree {
	_, body, masked := prepared(in.text)
	root, err := document(masked)
	if err != nil || root == nil {
		return nil
	}
	s := newSource(body, masked, in.first)
	t := &tree{source: s}
	t.prefix, t.root, t.rest = s.root(root)
	if s.odd || t.root == nil {
		return nil
	}
	s.link(root, t.root)
	s.indentation(t.root)
	s.flush = isFlush(t.root)
	return t
}

// objectsIn returns the objects of a document.
func objectsIn(n *node) (all []*node) {
	if items := n.at("items"); items != nil && items.kind == yaml.SequenceNode {
		for _, item := range items.items() {
			all = append(all, objectsIn(item)...)
		}
		return all
	}
	if n.scalarAt("kind") != "" {
		all = append(all, n)
	}
	return all
}

// Change is a new value of a field.
type Change struct {
	Object Object // of [Objects]
	// Path are the names of fields; that of an item of a list is its index.
	Path   []string
	Value  string // YAML on one line: 3, gp3, "10", [a, b]
	Remove bool   // the field is removed
	// Tag is the tag of an image in a text of several lines, such as an object of an add-on: Value takes its place there, and
	// the rest of the text stays. It has no effect on other values.
	Tag string
	// Variables are the values of ${VARIABLES} that are not their defaults.
	Variables map[string]string
}

// Set makes changes in the text of a file. It returns the text and, for each change, what the field had before: ""
// if it was not set. The rest of the text stays as it is, also comments and the form of values. If a change cannot be
// made at one place that is about this field only, the error is an *input.InvalidError that says where the value comes
// from, and nothing is changed.
func Set(file string, data []byte, changes []Change) (text []byte, was []string, err error) {
	was = make([]string, len(changes))
	var problems []input.Problem
	var out strings.Builder
	done := make([]bool, len(changes))
	for _, in := range split(string(data)) {
		edited, wrong := setIn(in, changes, was, done)
		for _, p := range wrong {
			p.File = file
			problems = append(problems, p)
		}
		out.WriteString(edited)
	}
	for i, c := range changes {
		if !done[i] && len(problems) == 0 {
			problems = append(problems, input.Problem{
				Position: input.Position{File: file, Line: c.Object.Line}, Object: c.Object.Title(), Path: Path(c.Path),
				What: "the document has a form of YAML that is not edited", Fix: "edit it by hand",
			})
		}
	}
	if len(problems) > 0 {
		return nil, nil, &input.InvalidError{Problems: problems}
	}
	return []byte(out.String()), was, nil
}

// setIn makes those changes that are about an object of a part.
func setIn(in part, changes []Change, was []string, done []bool) (text string, problems []input.Problem) {
	t := parsed(in)
	if t == nil {
		return in.text, nil
	}
	mark, _, _ := prepared(in.text)
	some := false
	for _, n := range objectsIn(t.root) {
		for i, c := range changes {
			if objectOf(n) != c.Object {
				continue
			}
			old, p := n.change(c.Path, c, t.root.isJSON() && t.root.flow)
			if p != nil {
				p.Object, p.Path = c.Object.Title(), Path(c.Path)
				problems = append(problems, *p)
			}
			was[i], done[i], some = old, true, true
		}
	}
	if !some || len(problems) > 0 {
		return in.text, problems
	}
	edited := t.print()
	if !means(edited, t.root) {
		return in.text, []input.Problem{{Position: input.Position{Line: in.first + 1}, What: "the document cannot be edited as text", Fix: "edit it by hand"}}
	}
	return mark + edited, nil
}

// Path writes the path of a [Change] as in messages: spec.list[0].name.
func Path(steps []string) string {
	var b strings.Builder
	for _, s := range steps {
		if _, err := strconv.Atoi(s); err == nil && b.Len() > 0 {
			b.WriteString("[" + s + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s)
	}
	return b.String()
}

// change changes a field below a mapping or list, and returns what it had before.
func (n *node) change(path []string, c Change, isJSON bool) (was string, problem *input.Problem) {
	e, problem := n.entryAt(path[0])
	if problem != nil {
		return "", problem
	}
	if e == nil {
		if c.Remove {
			return "", nil
		}
		return "", n.add(path, c, isJSON)
	}
	if shared := e.shared(); shared != "" {
		return "", at(e, "the value is "+shared+", which stands for other places, too", "edit it by hand")
	}
	switch last := len(path) == 1; {
	case last && c.Remove:
		was = e.value.written()
		n.remove(e)
	case last && e.value.block && c.Tag != "":
		was, problem = c.Tag, e.retag(c)
	case last:
		was = e.value.written()
		problem = e.assign(c, isJSON)
	case e.value.isEmpty():
		if c.Remove {
			return "", nil
		}
		e.value = newMapping(n.flow)
		return "", e.value.add(path[1:], c, isJSON)
	case e.value.kind == yaml.ScalarNode:
		return "", at(e, fmt.Sprintf("the value is %s, which has no fields", e.value.plain()), "edit it by hand")
	default:
		return e.value.change(path[1:], c, isJSON)
	}
	return was, problem
}

func at(e *entry, what, fix string) *input.Problem {
	return &input.Problem{Position: input.Position{Line: e.line}, What: what, Fix: fix}
}

// entryAt returns an entry by its key or index; nil if a mapping does not have it.
func (n *node) entryAt(step string) (*entry, *input.Problem) {
	if n.kind != yaml.SequenceNode {
		for _, e := range n.entries {
			if e.key == "<<" && e.value.kind != yaml.ScalarNode && n.entry(step) == nil {
				return nil, at(e, "the fields here come from the merge key <<", "edit it by hand")
			}
		}
		return n.entry(step), nil
	}
	i, err := strconv.Atoi(step)
	if err != nil || i < 0 || i >= len(n.entries) {
		return nil, &input.Problem{
			Position: input.Position{Line: n.line},
			What:     fmt.Sprintf("the list has no item %s: it has %d", step, len(n.entries)), Fix: "count from 0",
		}
	}
	return n.entries[i], nil
}

// shared returns the alias of a value, or its anchor; "" if it is about one field.
func (e *entry) shared() string {
	if e.value.kind == yaml.AliasNode {
		return "the alias " + e.value.raw
	}
	for _, text := range []string{e.sep, e.value.props, e.value.raw} {
		text = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, ": \t-"), ":"), " ")
		if strings.HasPrefix(text, "&") {
			return "the anchor " + strings.Fields(text)[0]
		}
	}
	return ""
}

// written returns a value as it is written; a mapping or list as JSON.
func (n *node) written() string {
	if n.kind == yaml.ScalarNode {
		return n.plain()
	}
	text, err := json.Marshal(plainValue(n))
	if err != nil {
		return ""
	}
	return string(text)
}

func plainValue(n *node) any {
	switch n = n.resolved(); n.kind { //nolint:exhaustive // all others are scalars
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range n.entries {
			out[e.key] = plainValue(e.value)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, e := range n.entries {
			out = append(out, plainValue(e.value))
		}
		return out
	}
	return n.plain()
}

// withDefault matches a variable that is all of a value, with its default.
const withDefault = `^\$\{(\w+):?[=-]([^${}]*)\}$`

// assign gives an entry its new value. That of a variable is its default, unless the variable is set.
func (e *entry) assign(c Change, isJSON bool) *input.Problem {
	old := e.value
	if old.kind == yaml.ScalarNode && strings.Contains(old.raw, "${") {
		m := regex.Of(withDefault).FindStringSubmatch(old.plain())
		switch {
		case m == nil:
			return at(e, fmt.Sprintf("the value is %s", old.plain()), "change the variable, with --set or in the environment, or edit the template by hand")
		case c.Variables[m[1]] != "":
			return at(e, fmt.Sprintf("the value is %s, and the variable is set to %s", old.plain(), c.Variables[m[1]]), "change the variable")
		}
		value, err := scalarOf(c.Value)
		if err != nil || value == nil {
			return at(e, fmt.Sprintf("the value is %s", old.plain()), "edit the template by hand")
		}
		v := *old
		v.raw = strings.Replace(old.raw, m[2]+"}", value.Value+"}", 1)
		_, _, masked := prepared(v.raw)
		v.value = strings.Trim(masked, `"'`)
		e.value = &v
		return nil
	}
	v, err := valueOf(c.Value, old, isJSON)
	if err != nil {
		return at(e, err.Error(), "write it as YAML on one line")
	}
	e.value = v
	return nil
}

// retag replaces the tag of an image in a text, where it is first, as upgrade-plan does.
func (e *entry) retag(c Change) *input.Problem {
	tagged := regexp.MustCompile(`(:[ \t]*["']?)` + regexp.QuoteMeta(c.Tag) + `(["'\s,}]|$)`)
	if !tagged.MatchString(e.value.raw) {
		return at(e, "the text has no image with the tag "+c.Tag, "edit it by hand")
	}
	e.replaceText(func(text string) string {
		first := true
		return tagged.ReplaceAllStringFunc(text, func(found string) string {
			if !first {
				return found
			}
			first = false
			return strings.Replace(found, c.Tag, c.Value, 1)
		})
	})
	return nil
}

// scalarOf parses a scalar; nil if the text is something else.
func scalarOf(text string) (*yaml.Node, error) {
	var d yaml.Node
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		return nil, err
	}
	if len(d.Content) != 1 || d.Content[0].Kind != yaml.ScalarNode {
		return nil, nil
	}
	return d.Content[0], nil
}

// valueOf makes a value from YAML on one line. A text keeps the quotes of the old value.
func valueOf(text string, old *node, isJSON bool) (*node, error) {
	scalar, err := scalarOf(mask(text))
	if err != nil {
		return nil, err
	}
	if scalar == nil {
		return bracesOf(text, isJSON)
	}
	v := &node{kind: yaml.ScalarNode, tag: scalar.ShortTag(), value: scalar.Value, raw: text, quoted: scalar.Style != 0, column: -1}
	quote := old.quote()
	plain := v.tag == "!!str" && !v.quoted && !strings.Contains(text, "${")
	switch {
	case plain && (isJSON || quote == `"`):
		encoded, err := json.Marshal(scalar.Value)
		if err != nil {
			return nil, err
		}
		v.raw, v.quoted = string(encoded), true
	case plain && quote == "'" && !strings.Contains(text, "'"):
		v.raw, v.quoted = "'"+text+"'", true
	}
	return v, nil
}

// bracesOf makes a mapping or list from YAML on one line.
func bracesOf(text string, isJSON bool) (*node, error) {
	s := newSource(text, mask(text), 0)
	root, err := document(s.masked)
	if err != nil || root == nil || !isFlow(root) {
		return nil, fmt.Errorf("%q is not a value on one line", text)
	}
	v, _ := s.inline(root, s.start(root), -1)
	if !isJSON {
		return v, nil
	}
	encoded, err := json.Marshal(plainValue(v))
	if err != nil {
		return nil, err
	}
	return bracesOf(string(encoded), false)
}

// quote returns the quote that a text is in; "" if there is none.
func (n *node) quote() string {
	if n == nil || !n.quoted || n.block || n.kind != yaml.ScalarNode || n.raw == "" {
		return ""
	}
	return n.raw[:1]
}

// add adds a field, and the mappings that it is in, at the end of a mapping.
func (n *node) add(path []string, c Change, isJSON bool) *input.Problem {
	if n.kind != yaml.MappingNode {
		return &input.Problem{Position: input.Position{Line: n.line}, What: "items are not added to a list", Fix: "set the whole list, or edit it by hand"}
	}
	e := &entry{key: path[0], column: -1}
	if len(path) > 1 {
		e.value = newMapping(n.flow)
		if problem := e.value.add(path[1:], c, isJSON); problem != nil {
			return problem
		}
	} else {
		v, err := valueOf(c.Value, nil, isJSON)
		if err != nil {
			return &input.Problem{Position: input.Position{Line: n.line}, What: err.Error(), Fix: "write it as YAML on one line"}
		}
		e.value = v
	}
	if isJSON || strings.ContainsAny(e.key, ":#{}[],&*?|<>=!%@\\ ") {
		e.name, e.was = strconv.Quote(e.key), e.key
	}
	n.entries = append(n.entries, e)
	return nil
}
