package cluster

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Absence is the observation, at the end of a deletion, that a resource that it has
// deleted does not exist: AWS was asked for its name or tags and for the ID that it had.
type Absence struct {
	Resource plan.ID
	CloudID  string
	Asked    []string // IAM actions of the calls of its kind, such as "ec2:DescribeVpcs"
	At       time.Time
}

// Result is the result of a run.
type Result struct {
	Plan   plan.Plan
	Reads  int64 // calls to AWS that only read; those of the lock are not counted
	Writes int64 // calls to AWS that may change something
	// Throttled is how many attempts AWS has refused because all programs of the account together call it too
	// often. They were repeated.
	Throttled   int64
	ThrottledBy []string      // the services that have, such as "EC2"
	Late        time.Duration // for how long at least one call waited for that reason
	Took        time.Duration
	// Endpoint is host and port of the API server; "" if unknown.
	Endpoint string
	// Nodes are those of the machines that Apply has waited for.
	Nodes Nodes
	// Absent lists what Delete has deleted, and has looked for again at the end.
	Absent []Absence
	// NotFound says that Delete has found nothing of the cluster: no resource, and no record of
	// an earlier run.
	NotFound bool
}
