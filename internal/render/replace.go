package render

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// replace is the action that a plan shows for a resource that is deleted while another one takes
// its place. In the plan they are two steps.
const replace plan.Action = "replace"

// retired is the prefix of the IDs of machines that are terminated.
const retired = "retired/"

// actionOf returns the action that is shown for a step.
func actionOf(s plan.Step) plan.Action {
	if s.Action == plan.Remove && s.ReplacedBy != "" {
		return replace
	}
	return s.Action
}

// titleOf returns the name that is shown for the resource of a step: "machine/md-0/1" for
// "retired/machine/md-0/1/i-0123".
func titleOf(s plan.Step) string {
	id, ok := strings.CutPrefix(string(s.Resource), retired)
	if end := "/" + s.CloudID; ok && s.CloudID != "" {
		id = strings.TrimSuffix(id, end)
	}
	return id
}

// belongs reports whether a step is part of the termination of a machine: it drains its Node,
// or removes its member of etcd.
func belongs(s, termination plan.Step) bool {
	return s.Does() && s.Resource != termination.Resource && strings.HasPrefix(string(termination.Resource), retired) &&
		termination.CloudID != "" && strings.HasSuffix(string(s.Resource), "/"+termination.CloudID)
}

// included lists the resources whose steps are part of other steps, in the eyes of a reader:
// new machines that take the place of others, and what belongs to a termination.
func included(p plan.Plan) map[plan.ID]bool {
	out, created := map[plan.ID]bool{}, map[plan.ID]bool{}
	for _, s := range p.Steps {
		created[s.Resource] = s.Action == plan.Create
	}
	ends := map[string]plan.Step{} // by ID in AWS
	for _, s := range p.Steps {
		if s.Action == plan.Remove && strings.HasPrefix(string(s.Resource), retired) {
			ends[s.CloudID] = s
			out[s.ReplacedBy] = created[s.ReplacedBy]
		}
	}
	for _, s := range p.Steps {
		if end, ok := ends[string(s.Resource)[strings.LastIndexByte(string(s.Resource), '/')+1:]]; ok && belongs(s, end) {
			out[s.Resource] = true
		}
	}
	return out
}

// parts lists what belongs to the termination of a machine, and the machine that takes its
// place.
func parts(p plan.Plan, s plan.Step) (out []line) {
	var steps []string
	for _, other := range p.Steps {
		if belongs(other, s) && !slices.Contains(steps, other.Resource.Kind()) {
			steps = append(steps, other.Resource.Kind())
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
	c := Summarize(p)
	within := included(p)
	for _, s := range p.Steps {
		switch {
		case actionOf(s) == replace:
			c.Delete--
		case within[s.Resource] && s.Action == plan.Create:
			c.Create--
		case within[s.Resource] && s.Action == plan.Remove:
			c.Delete--
		case within[s.Resource] && s.Action == plan.Update: // it is deregistered
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
