package cluster

import "github.com/clusterawsadm/clusterawsadm/pkg/plan"

// Options configure one run.
type Options struct {
	Observe func(plan.Event) // called for every event, one at a time; may be nil
	// Confirm is called with the plan before the first write, and returns whether to
	// continue; nil continues. It is not called if there is nothing to do.
	Confirm func(plan.Plan) (bool, error)
	// Planned is the digest of a saved plan, with which Confirm compares the plan. If an earlier run has begun it and not
	// ended it, Plan.Continues is true.
	Planned string
	// Volumes says what a deletion does with the volumes of volume claims.
	Volumes Volumes
	// VPCs are the IDs of the VPCs whose resources a deletion deletes. If it is empty, the
	// deletion finds the VPC of the cluster itself. Resources in other VPCs are kept, even if they
	// have the tag of the cluster.
	VPCs []string
}

// Volumes says what a deletion does with the volumes of volume claims.
type Volumes string

// The values of Volumes.
const (
	// ReclaimVolumes deletes the volumes whose reclaim policy is Delete. If the cluster
	// does not answer, the policy is unknown, and the volumes are kept.
	ReclaimVolumes Volumes = ""
	KeepVolumes    Volumes = "keep"
	DeleteVolumes  Volumes = "delete" // whatever the reclaim policy
)
