package render

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// replace is the action that a plan shows for a resource that is deleted while another one takes
// its place. In the plan they are two steps.
const replace reconcile.Action = "replace"

// retired is the prefix of the IDs of machines that are terminated.
const retired = "retired/"

// actionOf returns the action that is shown for a step.
func actionOf(s reconcile.Step) reconcile.Action {
	if s.Action == reconcile.Remove && s.ReplacedBy != "" {
		return replace
	}
	return s.Action
}

// titleOf returns the name that is shown for the resource of a step: "machine/md-0/1" for
// "retired/machine/md-0/1/i-0123".
func titleOf(s reconcile.Step) string {
	id, ok := strings.CutPrefix(string(s.Resource), retired)
	if end := "/" + s.CloudID; ok && s.CloudID != "" {
		id = strings.TrimSuffix(id, end)
	}
	return id
}

// belongs reports whether a step is part of the termination of a machine: it drains its Node,
// or removes its member of etcd.
func belongs(s, termination reconcile.Step) bool {
	return s.Does() && s.Resource != termination.Resource && strings.HasPrefix(string(termination.Resource), retired) &&
		termination.CloudID != "" && strings.HasSuffix(string(s.Resource), "/"+termination.CloudID)
}

// included lists the resources whose steps are part of other steps, in the eyes of a reader:
// new machines that take the place of others, and what belongs to a termination.
func included(p reconcile.Plan) map[reconcile.ID]bool {
	out, created := map[reconcile.ID]bool{}, map[reconcile.ID]bool{}
	for _, s := range p.Steps {
		created[s.Resource] = s.Action == reconcile.Create
	}
	ends := map[string]reconcile.Step{} // by ID in AWS
	for _, s := range p.Steps {
		if s.Action == reconcile.Remove && strings.HasPrefix(string(s.Resource), retired) {
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
func parts(p reconcile.Plan, s reconcile.Step) (out []line) {
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
func counts(p reconcile.Plan) Counts {
	c := Summarize(p)
	within := included(p)
	for _, s := range p.Steps {
		switch {
		case actionOf(s) == replace:
			c.Delete--
		case within[s.Resource] && s.Action == reconcile.Create:
			c.Create--
		case within[s.Resource] && s.Action == reconcile.Remove:
			c.Delete--
		case within[s.Resource] && s.Action == reconcile.Update: // it is deregistered
			c.Update--
		}
	}
	return c
}

// replaced returns how many resources a plan replaces.
func replaced(p reconcile.Plan) (n int) {
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
	for _, a := range []reconcile.Action{reconcile.Create, reconcile.Update, replace, reconcile.Remove, reconcile.Await, reconcile.Conflict} {
		code, mark := symbol(a)
		if slices.ContainsFunc(all, func(x section) bool {
			return slices.ContainsFunc(x.blocks, func(k block) bool {
				_, used := symbol(k.action)
				return used == mark
			})
		}) {
			name := map[reconcile.Action]string{reconcile.Update: "change", reconcile.Await: "wait"}[a]
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
