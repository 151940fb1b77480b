package render

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// replace is the action that a plan shows for a resource that is deleted while another one takes
// its place. In the plan they are two steps.
const replace plan.Action = "replace"

// actionOf returns the action that is shown for a step.
func actionOf(s plan.Step) plan.Action {
	if s.Action == plan.Remove && s.ReplacedBy != "" {
		return replace
	}
	return s.Action
}

// parts are the steps that are a part of the deletion or replacement of a resource, in the eyes of a
// reader: what drains its Node, what removes its member of etcd, and the machine in its place.
type parts struct {
	of     map[plan.ID][]plan.Step // that do something, by the resource that is deleted
	delete map[plan.ID]bool        // the resources that the plan deletes
}

func partsOf(p plan.Plan) parts {
	all := parts{map[plan.ID][]plan.Step{}, map[plan.ID]bool{}}
	for _, s := range p.Steps {
		if s.PartOf != "" && s.Does() {
			all.of[s.PartOf] = append(all.of[s.PartOf], s)
		}
		all.delete[s.Resource] = s.Action == plan.Remove
	}
	return all
}

// contain reports whether a step is a part of another one.
func (all parts) contain(s plan.Step) bool { return all.delete[s.PartOf] && s.Does() }

// lines lists the parts of a step.
func (all parts) lines(s plan.Step) (out []line) {
	var steps []string
	for _, part := range all.of[s.Resource] {
		if part.Resource != s.ReplacedBy && !slices.Contains(steps, part.Resource.Kind()) {
			steps = append(steps, part.Resource.Kind())
		}
	}
	if len(steps) > 0 {
		out = append(out, line{field: "with", want: strings.Join(steps, ", "), plain: true})
	}
	if s.ReplacedBy != "" {
		out = append(out, line{field: "new", want: string(s.ReplacedBy), plain: true})
	}
	return out
}

// counts are the numbers of resources that a person would count.
func counts(p plan.Plan) Counts {
	c, within := Summarize(p), partsOf(p)
	for _, s := range p.Steps {
		switch {
		case actionOf(s) == replace:
			c.Delete--
		case within.contain(s) && s.Action == plan.Create:
			c.Create--
		case within.contain(s) && s.Action == plan.Remove:
			c.Delete--
		case within.contain(s) && s.Action == plan.Update: // it is deregistered
			c.Update--
		}
	}
	return c
}

// replaced returns how many resources a plan replaces.
func replaced(p plan.Plan) (n int) {
	for _, s := range p.Steps {
		if actionOf(s) == replace {
			n++
		}
	}
	return n
}

// marks explains the marks of a plan, if it has several.
func marks(all []section, s Style) string {
	var out []string
	for _, a := range []plan.Action{plan.Create, plan.Update, replace, plan.Remove, plan.Await, plan.Conflict} {
		code, mark := symbol(a)
		if slices.ContainsFunc(all, func(x section) bool {
			return slices.ContainsFunc(x.blocks, func(k block) bool {
				_, used := symbol(k.action)
				return used == mark
			})
		}) {
			name := map[plan.Action]string{plan.Update: "change", plan.Await: "wait"}[a]
			if name == "" {
				name = string(a)
			}
			out = append(out, s.paint(code, mark)+" "+name)
		}
	}
	if len(out) < 2 {
		return ""
	}
	return strings.Join(out, "   ") + "\n\n"
}
