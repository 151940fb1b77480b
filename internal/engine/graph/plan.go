package graph

import "slices"

// Action names what Apply or Delete would do with a resource.
type Action string

// The actions.
const (
	Keep     Action = "keep"     // it is as desired
	Existing Action = "existing" // somebody else owns it: it is only looked up
	Create   Action = "create"   // it is missing
	Update   Action = "update"   // it differs
	Settle   Action = "settle"   // AWS is still working on it
	Conflict Action = "conflict" // it differs in a way that cannot be changed
	Remove   Action = "delete"   // it exists, and should not
	Leave    Action = "leave"    // it exists, and only Delete has to do with it
	Await    Action = "await"    // it is created or changed by others
)

// Step is the plan for one resource.
type Step struct {
	Resource ID
	Action   Action
	CloudID  string
	Origin   string // the part of the manifest it comes from
	Diff     Diff
	// ReplacedBy is the resource that takes the place of one that is deleted; "": none. Diff
	// then contains the settings that have changed.
	ReplacedBy ID
}

// Does reports whether the step does anything, if only wait.
func (s Step) Does() bool {
	return !slices.Contains([]Action{Keep, Existing, Leave}, s.Action)
}

// Plan lists the steps that Apply or Delete would take, in an order that works.
type Plan struct {
	Steps []Step
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return !slices.ContainsFunc(p.Steps, Step.Does) }

// Count returns how many steps have one of the actions.
func (p Plan) Count(actions ...Action) (n int) {
	for _, s := range p.Steps {
		if slices.Contains(actions, s.Action) {
			n++
		}
	}
	return n
}

// CountKind returns how many steps of a kind of resource have the action.
func (p Plan) CountKind(kind string, action Action) (n int) {
	for _, s := range p.Steps {
		if s.Resource.Kind() == kind && s.Action == action {
			n++
		}
	}
	return n
}

// Conflicts lists the steps that a run is refused for.
func (p Plan) Conflicts() (out []Step) {
	for _, s := range p.Steps {
		if s.Action == Conflict {
			out = append(out, s)
		}
	}
	return out
}
