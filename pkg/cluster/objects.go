package cluster

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// HandoverOptions connect a handover to a management cluster.
type HandoverOptions struct {
	To plan.Manager
	// Create creates the objects there, in such a way that controllers do not work on them
	// yet.
	Create func(ctx context.Context, all []Object) error
	// Release lets the controllers work on the cluster. From its first request on, no run may
	// change the cluster.
	Release func(ctx context.Context) error
}

// Object is a Cluster API object of a cluster that exists, for a management cluster. Its
// content has no status, which controllers fill in, and no owner references, which need the
// UIDs of a management cluster.
type Object struct {
	Content map[string]any
	Owner   *ObjectOwner   // nil if it has none
	Status  map[string]any // the part of the status that controllers cannot find out; nil for most objects
}

// ObjectOwner is the object that owns another one. It comes before that in a list.
type ObjectOwner struct {
	APIVersion, Kind, Name string
	Controller             bool
}

// Objects is the result of Cluster.Objects.
type Objects struct {
	// Items are the objects, each after its owner: those of the manifest, with the IDs of what
	// exists, and those that controllers make: Machines, MachineSets, AWSMachines, bootstrap
	// configurations and Secrets. The Secrets contain the keys of the cluster.
	Items []Object
	// Plan is the plan of Apply. If it is not empty, controllers would change the same.
	Plan plan.Plan
}
