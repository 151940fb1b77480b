// Package reconcile creates, changes, shows and deletes the AWS side of Cluster
// API clusters. It is the whole engine of clusterawsadm: the commands of
// "clusterawsadm cluster" use it through this package alone.
//
//	m, err := reconcile.LoadFile("demo.yaml", reconcile.LoadOptions{})
//	…
//	c := reconcile.Open(m, reconcile.Target{Config: cfg})
//	plan, err := c.Plan(ctx)                      // what Apply would do
//	_, err = c.Apply(ctx, reconcile.Options{})    // create or change the cluster
//	status, err := c.Status(ctx)                  // what there is
//	_, err = c.Delete(ctx, reconcile.Options{})   // delete it
//
// All state is in the AWS account, in tags. A run can be stopped at any time, by
// its context or with its process, and the next one goes on, on any machine. A
// lock in the account keeps two runs on one cluster apart.
//
// What a plan, a step, an event and an error are is in package plan. Errors tell what happened:
// *input.InvalidError for a wrong manifest, *plan.RefusedError when nothing was written,
// *plan.HalfwayError when something was, *plan.LeftoverError when a deletion left resources behind.
// *plan.ResourceError inside of them names the resource, *plan.TimeoutError the possible reasons of a
// wait that took too long.
//
// # Logs
//
// The package writes nothing. Options.Observe is called for each event of a resource, Target.Warn for
// each message to the user, and Target.Log for each call to AWS, which is enough for any logger:
//
//	target.Log = func(c reconcile.Call) {
//		slog.Debug("call", "service", c.Service, "operation", c.Operation, "took", c.Took, "err", c.Err)
//	}
//
// # Compatibility
//
// The exported names of this package, of package plan and of package input change only with the major
// version of the module. Resources, fields and kinds of errors are added with minor versions.
package reconcile

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// Target is the account of a cluster and the settings of its runs. Only Config is
// required.
type Target struct {
	Config   aws.Config    // credentials and, for OpenByName and List, the region
	Wait     Wait          // what Apply waits for; "" is Infrastructure
	Parallel int           // calls to AWS at the same time; 0 is 32
	Timeout  time.Duration // how long one resource may take; 0: a multiple of what its kind usually takes

	// Drain drains Nodes before their machines are terminated, and removes members
	// of etcd. Without it machines are only terminated.
	Drain bool
	// NetworkFirst launches machines after their routes to the internet exist. Otherwise
	// those that fetch their boot data from a secret or parameter are launched beside the
	// NAT gateways, and wait for them by themselves.
	NetworkFirst bool
	// NewEtcd permits Apply to begin a new, empty etcd if no machine of the control plane exists any
	// more; otherwise, Apply and Plan are refused. It has to be the name of the cluster.
	NewEtcd string
	// AskCluster makes Delete first delete the Services, Ingresses and volume claims of
	// the cluster, so that its controllers delete what they created in AWS. Otherwise, or
	// if the cluster does not respond, those resources are found by their tags. It makes
	// Status read the Nodes.
	AskCluster bool

	// KMSKey is the KMS key for the cluster's keys and join token, which Apply stores in SSM
	// Parameter Store: an ID, ARN or alias. "" is the AWS managed key aws/ssm, with which
	// every role of the account that can read the parameters can decrypt them.
	KMSKey string

	// CheckPermissions makes Plan ask IAM what the caller lacks of what the plan needs. Apply
	// asks always, unless IgnorePermissions is set, and goes on if IAM does not answer.
	CheckPermissions bool
	// IgnorePermissions makes Apply not ask IAM: its answer may be wrong, because it does not
	// know session policies and conditions of service control policies.
	IgnorePermissions bool

	// Restore is the backup with which Apply makes a new control plane, after all machines of
	// the one before are gone; nil for none.
	Restore *Restore
	// Backup makes Apply back up the cluster before it replaces or removes machines of the control
	// plane, as in an upgrade; nil: no backup.
	Backup *BackupFirst

	Owner    string        // the user of the run, for the lock: "ada@laptop pid 4711"
	LockTTL  time.Duration // when the lock of a dead run expires; 0 is a minute
	StateDir string        // folder for the lock where SSM Parameter Store is denied; "" for none

	// Cost adds to plans what the cluster costs, by the price list of AWS. That needs the IAM
	// action pricing:GetProducts, and ec2:DescribeSpotPriceHistory for the price of spot
	// instances. A plan waits three seconds at most for prices.
	Cost     bool
	CacheDir string // folder in which prices are kept for a day; "" for none

	Log  func(Call)   // called after every call to AWS, also concurrently; may be nil
	Warn func(string) // called with messages for the user; may be nil

	// Clock replaces the system clock where time runs faster: with an emulator of AWS, or
	// in tests. Nil is the system clock.
	Clock Clock
	// Transport carries requests to the API servers of clusters; nil: the network.
	Transport Transport
}

// Wait is the state of a cluster that Apply waits for.
type Wait string

// The values of Wait.
const (
	Infrastructure = Wait(topology.Infrastructure) // AWS runs the machines
	APIServer      = Wait(topology.APIServer)      // the API server answers, and all machines of the control plane have joined
	NodesJoined    = Wait(topology.NodesJoined)    // all machines are Nodes, ready or not
	NodesReady     = Wait(topology.NodesReady)     // all machines are Nodes, and ready
)

// Clock returns the time and waits.
type Clock interface {
	Now() time.Time
	// Sleep waits for d. If the context ends before, it returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// Transport returns what carries requests to an API server.
type Transport func(Access) http.RoundTripper

// Access is the address of an API server and the credentials for it.
type Access struct {
	Server           string // "https://host:port"
	CA               []byte // PEM
	Certificate, Key []byte // PEM, of a client; or
	Token            func(context.Context) (string, error)
}

// options converts the target to options for the clients.
func (t Target) options() cloud.Options {
	o := cloud.Options{Clock: clock.Of(t.Clock), Parallel: t.Parallel, KMSKey: t.KMSKey}
	if t.Log != nil {
		o.Log = func(c cloud.Call) { t.Log(Call(c)) }
	}
	if t.Transport != nil {
		o.Kubernetes = func(a kube.Access) http.RoundTripper { return t.Transport(Access(a)) }
	}
	return o
}

// Options configure one run.
type Options struct {
	Observe func(plan.Event) // called for every event, one at a time; may be nil
	// Confirm is called with the plan before the first write, and returns whether to
	// continue; nil continues. It is not called if there is nothing to do.
	Confirm func(plan.Plan) (bool, error)
	// Volumes says what a deletion does with the volumes of volume claims.
	Volumes Volumes
	// VPCs are the IDs of the VPCs whose resources a deletion deletes. If it is empty, the
	// deletion finds out which VPC is the cluster's, and keeps what has the cluster's tag
	// in others.
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

// Result is the result of a run.
type Result struct {
	Plan   plan.Plan
	Reads  int64 // calls to AWS that only read; those of the lock are not counted
	Writes int64 // calls to AWS that may change something
	Took   time.Duration
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

// Cluster is one cluster in one account and region.
type Cluster struct {
	Name, Region string

	manifest *manifest.Cluster // nil: opened by name
	loaded   *Manifest         // that manifest with its text; nil as above
	target   Target
	adopts   bool // it may exist without tags of ours, as a cluster that is imported
}

// Open prepares work on the cluster of a manifest. It makes no call.
func Open(m *Manifest, t Target) *Cluster {
	return &Cluster{Name: m.Name(), Region: m.Region(), manifest: m.cluster, loaded: m, target: t}
}

// managed reports whether EKS runs the control plane, as far as a manifest says.
func (c *Cluster) managed() bool { return c.manifest != nil && c.manifest.EKS != nil }

// OpenByName prepares work on a cluster without its manifest, in the region of
// the target's Config. Only Status, AwaitCondition, Logs, Upgrades, Caller, Kubeconfig,
// PlanDelete and Delete work on it. A deletion is refused if CheckName returns an error.
func OpenByName(name string, t Target) *Cluster {
	return &Cluster{Name: name, Region: t.Config.Region, target: t}
}

// CheckName returns an error if no cluster can have the name: Kubernetes requires the name of
// a Cluster object to be a DNS subdomain, and Cluster API uses it as the value of a label.
func CheckName(name string) error {
	switch what := validation.IsValidLabelValue(name); {
	case len(what) > 0 && len(name) > validation.LabelValueMaxLength:
		return fmt.Errorf("%q cannot be the name of a cluster: %s", name, what[0])
	case len(what) > 0, len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("%q cannot be the name of a cluster: it must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or a digit", name)
	}
	return nil
}

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

	API   *APIStatus   `json:"apiServer,omitempty"` // nil: it was not asked
	Nodes []NodeStatus `json:"nodes,omitempty"`     // empty if the API server has not answered
}

// Healthy reports whether all resources exist and are as they should be, and the API server
// answers, if it was asked.
func (s Status) Healthy() bool {
	return (s.API == nil || s.API.State == APIReady) && !slices.ContainsFunc(s.Resources, func(r ResourceStatus) bool { return r.State != "ok" && r.State != "existing" })
}

// ResourceStatus is one resource with its live state.
type ResourceStatus struct {
	Resource plan.ID `json:"resource"`
	CloudID  string  `json:"cloudID,omitempty"` // "" if it does not exist
	// State is "ok", "missing", "pending", "differs", "existing" (somebody else owns it),
	// "conflict" (it differs and cannot be changed), "extra" (not desired any more) or
	// "unknown" (the API server does not respond).
	State   string    `json:"state"`
	Detail  string    `json:"detail,omitempty"` // such as an address, a DNS name, a type
	Origin  string    `json:"origin,omitempty"` // the part of the manifest that it comes from
	Changes plan.Diff `json:"changes,omitempty"`
	// Node is the state of a machine's Node; "" for other resources, and if the API server
	// was not asked.
	Node NodeState `json:"node,omitempty"`
}
