// Package reconcile makes, shows and removes the AWS side of one cluster: the
// facade over manifest, topology, resource and graph.
package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// Target is where and how a run talks to AWS.
type Target struct {
	Config   aws.Config       // region and credentials; AWS, an emulator or the simulation
	Clock    *clock.Clock     // nil: the machine's own
	Parallel int              // calls under way at once; 0: cloud.DefaultParallel
	Patience time.Duration    // how long one node may take; 0: as long as its kind usually needs, and then some
	Settle   time.Duration    // how long a dead run's lock is honoured; 0: a minute
	Who      string           // "ada@laptop pid 4711", for the lock
	StateDir string           // folder for the lock where SSM is denied
	Log      func(cloud.Call) // told of every call when it has ended; may be nil
	Wait     topology.Wait    // how far Apply waits for what becomes of the machines
	// Drain says that machines leave a living cluster in good order: what runs
	// on them is moved, and etcd told. Without they are only terminated.
	Drain bool
	// AskCluster says that a cluster that is to go is asked first to give up
	// what controllers in it made in AWS.
	AskCluster bool
	// Kubernetes carries requests to the API server of the cluster; nil: the
	// network.
	Kubernetes kube.Transport
	Warn       func(string) // told of what the user should know and can do nothing wrong about; may be nil
}

// Options say how one command runs.
type Options struct {
	Observe func(graph.Event) // called for every event, never concurrently; may be nil
	// Confirm is shown the plan before the first write, and says whether to go
	// on; nil goes on. It is not asked when there is nothing to do.
	Confirm func(graph.Plan) (bool, error)
	// KeepVolumes has a deletion keep the volumes that were made in the
	// cluster, as its plan says.
	KeepVolumes bool
}

// Result is what a run has done.
type Result struct {
	Plan   graph.Plan // what there was to do
	Reads  int64      // calls that only looked; the lock's are not counted
	Writes int64      // calls that could change something
	Took   time.Duration
	// Endpoint is host and port of the API server, once they are known.
	Endpoint string
}

// Cluster is one cluster in one account and region.
type Cluster struct {
	Name, Region string

	manifest *manifest.Cluster // nil: opened by name
	target   Target
}

// Open prepares work on the cluster of a manifest. It makes no call.
func Open(m *manifest.Cluster, t Target) *Cluster {
	return &Cluster{Name: m.Name, Region: m.Region, manifest: m, target: t}
}

// Managed reports whether EKS runs the control plane, as far as a manifest
// says.
func (c *Cluster) Managed() bool { return c.manifest != nil && c.manifest.EKS != nil }

// OpenByName prepares work on a cluster of which only the name is known, in
// the region of the target. Only Delete and Status work on it.
func OpenByName(name string, t Target) *Cluster {
	return &Cluster{Name: name, Region: t.Config.Region, target: t}
}

// Summary is one cluster of an account, as its tags tell.
type Summary struct {
	Name   string         `json:"name"`
	Region string         `json:"region"`
	Kinds  map[string]int `json:"resources"` // how many of each kind carry its tag
}

// Status is what can be seen of a cluster.
type Status struct {
	Name      string           `json:"name"`
	Region    string           `json:"region"`
	Version   string           `json:"version,omitempty"`
	Endpoint  string           `json:"endpoint,omitempty"` // host:port of the API server
	Resources []ResourceStatus `json:"nodes"`
}

// ResourceStatus is one thing of a cluster with its live state.
type ResourceStatus struct {
	Resource graph.ID   `json:"node"`
	CloudID  string     `json:"cloudID,omitempty"` // "" when it does not exist
	State    string     `json:"state"`             // "ok", "missing", "pending", "differs", "foreign" (somebody else's), "conflict", "extra" (no longer wanted), "unknown" (the API server does not answer)
	Detail   string     `json:"detail,omitempty"`  // an address, a DNS name, a type: what a reader looks for
	Origin   string     `json:"origin,omitempty"`
	Changes  graph.Diff `json:"changes,omitempty"`
}

// RefusedError says that nothing was written, and why: conflicts, a missing
// permission, a quota, a lock that another run holds.
type RefusedError struct{ Reasons []error }

func (e *RefusedError) Error() string { return errors.Join(e.Reasons...).Error() }

// Unwrap returns the reasons.
func (e *RefusedError) Unwrap() []error { return e.Reasons }

// HalfwayError says that a run stopped after it had written something. To run
// it again is all it takes to go on.
type HalfwayError struct{ Err error }

func (e *HalfwayError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *HalfwayError) Unwrap() error { return e.Err }

// LeftoverError says what a deletion has left behind.
type LeftoverError struct{ Left []string }

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%d things are still there: %s", len(e.Left), strings.Join(e.Left, ", "))
}

// ErrDeclined says that the user did not want the plan carried out.
var ErrDeclined = errors.New("not confirmed; nothing was changed")
