package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// FewMachines is the largest group of equal machines of which each is shown.
const FewMachines = 1

// fewValues is the largest number of values of a field that a folded block lists.
const fewValues = 3

// block is a step of a plan for one resource, or for many that differ only in name.
type block struct {
	area   plan.Area
	action plan.Action
	title  string // the ID, or "machine/md-0/…"
	id     string // cloud ID
	origin string
	count  int
	lines  []line
}

// blocks converts the steps that change something to blocks, in the same order.
func blocks(p plan.Plan, full bool) (out []block) {
	many, within := map[string][]plan.Step{}, partsOf(p)
	for _, s := range p.Steps {
		if s.Does() {
			many[fold(s)] = append(many[fold(s)], s)
		}
	}
	done := map[string]bool{}
	for _, s := range p.Steps {
		switch alike := many[fold(s)]; {
		case !s.Does() || done[fold(s)] || !full && within.contain(s):
		case full:
			out = append(out, single(s))
		case fold(s) == "" || len(alike) <= FewMachines:
			out = append(out, single(s).shortened(within.lines(s)))
		default:
			done[fold(s)] = true
			out = append(out, folded(alike, within))
		}
	}
	return out
}

// fold is the key of steps that are shown as one; "" for a step that is shown by itself.
func fold(s plan.Step) string {
	if s.Group == "" || s.Action == plan.Conflict || s.After != "" {
		return ""
	}
	fields := []string{s.Group, string(s.Action), s.Origin}
	for _, c := range s.Diff {
		fields = append(fields, c.Field)
	}
	return strings.Join(fields, "\n")
}

// single shows one step with all its lines.
func single(s plan.Step) block {
	k := block{area: cmp.Or(s.Area, plan.AreaOther), action: actionOf(s), title: string(cmp.Or(s.Label, s.Resource)), id: s.CloudID, origin: s.Origin, count: 1}
	if s.After != "" {
		k.lines = append(k.lines, line{field: "after", want: "the deletion of " + brief(s.After), plain: true})
	}
	for _, c := range s.Diff {
		k.lines = append(k.lines, lineOf(c))
	}
	k.lines = recorded(k.lines, k.action)
	return k
}

// shortened adds the lines of the parts of a block, and puts the tags of a new resource on one line.
func (k block) shortened(parts []line) block {
	k.lines = append(k.lines, parts...)
	if k.action == plan.Create {
		k.lines = briefTags(k.lines)
	}
	return k
}

// folded shows many steps as one: a field with one value keeps it, any other field lists
// a few values.
func folded(steps []plan.Step, all parts) block {
	first := steps[0]
	title := string(plan.ID(first.Group).Unretired()) + "/…"
	k := block{area: cmp.Or(first.Area, plan.AreaOther), action: actionOf(first), title: title, origin: first.Origin, count: len(steps)}
	for i, c := range first.Diff {
		have, want := make([]string, len(steps)), make([]string, len(steps))
		for n, s := range steps {
			name := string(s.Resource)[strings.LastIndexByte(string(s.Resource), '/')+1:]
			have[n], want[n] = nameless(s.Diff[i].Have, name), nameless(s.Diff[i].Want, name)
		}
		c.Have, c.Want = several(have), several(want)
		k.lines = append(k.lines, lineOf(c))
	}
	k.lines = recorded(k.lines, k.action)
	if first.ReplacedBy != "" {
		return k.shortened(nil)
	}
	return k.shortened(all.lines(first))
}

// nameless removes the name of the machine from the end of a value. Elsewhere in the
// value it may be a coincidence: a name may be as short as "3".
func nameless(value, name string) string {
	for _, before := range []string{"-", "/"} {
		if rest, ok := strings.CutSuffix(value, before+name); ok {
			return rest + before + "…"
		}
	}
	return value
}

// several formats the different values of a list.
func several(values []string) string {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	if len(values) > fewValues {
		return fmt.Sprintf("%s | … (%d different values)", values[0], len(values))
	}
	return strings.Join(values, " | ")
}

// recorded replaces the tags in which an existing machine has a digest of its template by one
// line.
func recorded(lines []line, a plan.Action) (out []line) {
	if a == plan.Create {
		return lines // briefTags shortens them
	}
	for _, l := range lines {
		if !slices.Contains([]string{"tag clusterawsadm/template", "tag clusterawsadm/template-fields"}, l.field) {
			out = append(out, l)
			continue
		}
		l.field, l.want = "recorded template", "that of the manifest"
		if l.have != "" {
			l.have = "another one"
		}
		if !slices.ContainsFunc(out, func(other line) bool { return other.field == l.field }) {
			out = append(out, l)
		}
	}
	return out
}

// briefTags puts the tags of a new resource on one line: its name, and the number
// of the others.
func briefTags(lines []line) []line {
	var out []line
	var name string
	n := 0
	for _, l := range lines {
		key, isTag := strings.CutPrefix(l.field, "tag ")
		switch {
		case !isTag:
			out = append(out, l)
			continue
		case key == "Name":
			name = "Name=" + l.want
		}
		n++
	}
	switch {
	case n == 0:
		return lines
	case name == "":
		name = fmt.Sprintf("%d of them", n)
	case n > 1:
		name += fmt.Sprintf(" and %d more", n-1)
	}
	return append(out, line{field: "tags", want: name, remedy: plan.InPlace})
}
