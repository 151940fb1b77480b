package graph

import "slices"

// Action is what Apply or Delete would do with a node.
type Action string

// The actions.
const (
	Keep     Action = "keep"     // it is as wanted
	Existing Action = "borrow"   // somebody else owns it
	Create   Action = "create"   // it is missing
	Update   Action = "update"   // it differs
	Settle   Action = "settle"   // it is on its way
	Conflict Action = "conflict" // it differs in a way we cannot mend
	Remove   Action = "delete"   // it exists, and should not
	Leave    Action = "leave"    // it exists, and Apply has nothing to do with it
	Await    Action = "await"    // it comes by itself, or comes to be as wanted
)

// Step is the plan for one node.
type Step struct {
	Resource ID     `json:"node"`
	Action   Action `json:"action"`
	CloudID  string `json:"cloudID,omitempty"`
	Origin   string `json:"origin,omitempty"` // the part of the manifest it comes from
	Diff     Diff   `json:"changes,omitempty"`
}

// Does reports whether the step has anything to do.
func (s Step) Does() bool {
	return !slices.Contains([]Action{Keep, Existing, Leave}, s.Action)
}

// Plan is what Apply or Delete would do, in an order that works.
type Plan struct {
	Steps []Step `json:"steps"`
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

// CountKind returns how many steps of a kind of node have the action.
func (p Plan) CountKind(kind string, action Action) (n int) {
	for _, s := range p.Steps {
		if s.Resource.Kind() == kind && s.Action == action {
			n++
		}
	}
	return n
}

// Conflicts lists the steps that no apply can take.
func (p Plan) Conflicts() (out []Step) {
	for _, s := range p.Steps {
		if s.Action == Conflict {
			out = append(out, s)
		}
	}
	return out
}
