package plan

import (
	"slices"
	"time"
)

// Action names what a run does with a resource.
type Action string

// The actions.
const (
	Create   Action = "create"   // it is missing
	Update   Action = "update"   // it differs
	Remove   Action = "delete"   // it exists, and should not
	Settle   Action = "settle"   // AWS is still working on it: the run waits
	Await    Action = "await"    // it is created by others, such as a Node by its machine: the run waits
	Conflict Action = "conflict" // it differs in a way that cannot be changed: the run is refused
	Keep     Action = "keep"     // it is up to date
	Existing Action = "existing" // somebody else owns it: it is only looked up
	Leave    Action = "leave"    // controllers in the cluster create and delete it: only a deletion removes it
)

// Step is the plan for one resource.
type Step struct {
	Resource ID     `json:"resource"`
	Action   Action `json:"action"`
	CloudID  string `json:"cloudID,omitempty"` // what AWS calls it: an ID, an ARN or a name; "" before it exists
	Origin   string `json:"origin,omitempty"`  // the part of the manifest it comes from: "demo.yaml:31 AWSCluster/demo spec.network"
	Diff     Diff   `json:"changes,omitempty"`
	// After is what AWS calls the resource of this name that it is still deleting, when another one is to be created: the run waits until
	// it is gone. It is "" for others.
	After string `json:"after,omitempty"`
	// ReplacedBy is the resource that takes the place of one that is deleted. Diff then
	// contains the settings that have changed, as far as they are known.
	ReplacedBy ID `json:"replacedBy,omitempty"`
	// PartOf is the resource whose deletion or replacement the step is a part of: a step that drains the
	// Node of a machine, or that launches the machine in its place; "" for a step of its own.
	PartOf ID `json:"partOf,omitempty"`

	Area  Area   `json:"area,omitempty"`  // the part of the cluster that the resource belongs to
	Group string `json:"group,omitempty"` // ID.Group of the resource: "machine/md-0"
	// Label is the ID that a deleted resource had before: "machine/md-0/1" of "retired/machine/md-0/1/i-0123";
	// "" if it is Resource.
	Label ID `json:"label,omitempty"`
}

// Does reports whether the step does anything, even if it only waits.
func (s Step) Does() bool { return !slices.Contains([]Action{Keep, Existing, Leave}, s.Action) }

// Plan lists the steps of a run, in an order that works.
type Plan struct {
	Steps []Step
	// Expected is how long AWS usually takes to carry it out; 0 where that is
	// unknown.
	Expected time.Duration
	// Quotas are the quotas of the account that the plan needs some of. Those that could
	// not be read are not among them.
	Quotas []Quota
	// Permissions says what the caller may not do; nil if that was not asked for.
	Permissions *Permissions
	// Cost has the costs of the cluster; nil if they are not asked for, or not known.
	Cost *Cost
	// Graph has the resources of the cluster, and for each those that it needs.
	Graph Graph
	// ReplacesControlPlane says that machines of the control plane are replaced or removed.
	ReplacesControlPlane bool
	// Continues says that an earlier run has begun the saved plan of cluster.Options.Planned, and has not ended it.
	Continues bool
}

// Quota is a limit of the account in Service Quotas.
type Quota struct {
	Name    string `json:"name"`    // what it limits: "NAT gateways in us-east-1a"
	Service string `json:"service"` // "vpc"
	Code    string `json:"code"`    // "L-FE5A380F"
	Limit   int    `json:"limit"`
	Used    int    `json:"used"`   // whoever owns it
	Needed  int    `json:"needed"` // by the plan, in addition
}

// Exceeded reports whether the quota is too small for the plan.
func (q Quota) Exceeded() bool { return q.Used+q.Needed > q.Limit }

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
