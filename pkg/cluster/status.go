package cluster

import (
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Condition is a state of a cluster that AwaitCondition waits for. The values of plan.Wait have the same words.
type Condition string

// The conditions.
const (
	ConditionInfrastructure Condition = "infrastructure" // AWS runs the machines

	ConditionAPI     Condition = "api"    // the API server answers
	ConditionJoined  Condition = "joined" // and all machines have joined
	ConditionReady   Condition = "ready"  // and all Nodes are ready
	ConditionDeleted Condition = "delete" // the cluster has no resources any more
)

// LogFile is one file that Logs has collected.
type LogFile struct {
	Name string // "console/machine-demo-md-0-0.txt"
	Text string // without secrets
}

// Console is the console output of a machine, without secrets.
type Console struct {
	Name    string   // of the machine, as in a Status: "demo-md-0/0"
	Machine string   // ID of its instance
	Lines   []string // complete lines; AWS keeps the last 64 KiB
}

// Logs has the state and the logs of a cluster, for a bug report.
type Logs struct {
	Status  Status
	Files   []LogFile
	Missing []string // what could not be read, and why
}

// Nodes are numbers of Nodes of a cluster.
type Nodes struct {
	Joined int `json:"joined"`
	Ready  int `json:"ready"` // of those that have joined
}

// APIStatus is the status of the API server of a cluster.
type APIStatus struct {
	State   APIState `json:"state"`
	Detail  string   `json:"detail,omitempty"`     // why it is not ready
	Version string   `json:"kubernetes,omitempty"` // of Kubernetes: "v1.34.2"
}

// APIState is the state of an API server.
type APIState string

// The values of APIState.
const (
	APIReady       APIState = "ready"
	APIUnavailable APIState = "unavailable"
	APINone        APIState = "none" // no control plane runs
)

// NodeStatus is a Node of a cluster.
type NodeStatus struct {
	Name    string    `json:"name"`
	Machine string    `json:"machine,omitempty"` // ID of its instance; "" if it is not known
	Roles   []string  `json:"roles,omitempty"`   // "control-plane"
	Version string    `json:"kubernetes"`        // of its kubelet: "v1.34.2"
	Ready   bool      `json:"ready"`
	Detail  string    `json:"detail,omitempty"` // why it is not ready
	Cordon  bool      `json:"unschedulable,omitempty"`
	Since   time.Time `json:"since"` // when it joined
}

// NodeState is the state of the Node of a machine.
type NodeState string

// The values of NodeState; "" if it is not known.
const (
	NodeNotJoined NodeState = "not joined"
	NodeNotReady  NodeState = "not ready"
	NodeReady     NodeState = "ready"
)

// LastRun is a run that works on a cluster, or that has not finished its work.
type LastRun struct {
	Command string    `json:"command"` // "create"
	Who     string    `json:"who"`     // "ada@laptop pid 4711"
	Since   time.Time `json:"since"`
	State   RunState  `json:"state"`
}

// RunState is the state of the last run on a cluster.
type RunState string

// The values of RunState.
const (
	RunActive      RunState = "active"
	RunInterrupted RunState = "interrupted" // it was killed, or lost its connection
	RunUnfinished  RunState = "unfinished"  // a deletion that has ended, and left resources
)

// Deletes reports whether a deletion was begun and has not finished, so that parts of the cluster may be gone.
func (r *LastRun) Deletes() bool { return r != nil && r.Command == "delete" }

// Status is the state of a cluster.
type Status struct {
	Name      string           `json:"name"`
	Region    string           `json:"region"`
	Version   string           `json:"kubernetes,omitempty"` // of Kubernetes
	Endpoint  string           `json:"endpoint,omitempty"`   // host:port of the API server
	Resources []ResourceStatus `json:"resources"`
	// Since is the time at which the EKS cluster was created, or the oldest machine of the control plane
	// launched.
	Since *time.Time `json:"since,omitempty"`

	// LastRun is the last run, if it works on the cluster or has not finished; nil otherwise, and if the caller
	// may not read the lock.
	LastRun *LastRun `json:"lastRun,omitempty"`

	// Stopped says since when the machines of the cluster are stopped; nil if they are not, and if the caller may not read the
	// lock.
	Stopped *time.Time `json:"stopped,omitempty"`

	API   *APIStatus   `json:"apiServer,omitempty"` // nil: it was not asked
	Nodes []NodeStatus `json:"nodes,omitempty"`     // empty if the API server has not answered
}

// Healthy reports whether all resources exist and are as they should be, no deletion is unfinished, and the API
// server answers, if it was asked.
func (s Status) Healthy() bool {
	return (s.API == nil || s.API.State == APIReady) && !s.LastRun.Deletes() &&
		!slices.ContainsFunc(s.Resources, func(r ResourceStatus) bool { return r.State != "ok" && r.State != "existing" })
}

// ResourceStatus is one resource with its live state.
type ResourceStatus struct {
	Resource plan.ID `json:"resource"`
	CloudID  string  `json:"cloudID,omitempty"` // "" if it does not exist
	// State is "ok", "missing", "pending", "differs", "existing" (somebody else owns it),
	// "stopped" (with the cluster), "conflict" (it differs and cannot be changed), "extra" (not desired any more) or
	// "unknown" (the API server does not respond).
	State   string    `json:"state"`
	Detail  string    `json:"detail,omitempty"` // such as an address, a DNS name, a type
	Origin  string    `json:"origin,omitempty"` // the part of the manifest that it comes from
	Changes plan.Diff `json:"changes,omitempty"`
	// Node is the state of a machine's Node; "" for other resources, and if the API server
	// was not asked.
	Node NodeState `json:"node,omitempty"`
}
