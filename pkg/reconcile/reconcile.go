// Package reconcile creates, changes, shows and deletes the AWS side of Cluster API clusters. It is
// the library of clusterawsadm: the commands of "clusterawsadm cluster" use the engine through this
// package alone.
//
//	m, err := reconcile.LoadFile("demo.yaml", input.LoadOptions{})
//	…
//	c := reconcile.Open(m, cluster.Target{Config: cfg})
//	planned, err := c.Plan(ctx)                 // what Apply would do
//	_, err = c.Apply(ctx, cluster.Options{})    // create or change the cluster
//	status, err := c.Status(ctx)                // what there is
//	_, err = c.Delete(ctx, cluster.Options{})   // delete it
//
// All state is in the AWS account, in tags. A run can be stopped at any time, by its context or with
// its process, and the next one goes on, on any machine. A lock in the account keeps two runs on one
// cluster apart.
//
// What a run is told and what it returns about a cluster is in package cluster; what a plan, a step,
// an event and an error are is in package plan. Errors tell what happened: *input.InvalidError for a
// wrong manifest, *plan.RefusedError when nothing was written, *plan.HalfwayError when something was,
// *plan.LeftoverError when a deletion left resources behind. *plan.ResourceError inside of them names
// the resource, *plan.TimeoutError the possible reasons of a wait that took too long.
//
// # Logs
//
// The package writes nothing. Options.Observe is called for each event of a resource, Target.Warn for
// each message to the user, and Target.Log for each call to AWS, which is enough for any logger:
//
//	target.Log = func(c plan.Call) {
//		slog.Debug("call", "service", c.Service, "operation", c.Operation, "took", c.Took, "err", c.Err)
//	}
//
// # Compatibility
//
// The exported names of this package and of packages cluster, plan and input change only with the
// major version of the module. Resources, fields and kinds of errors are added with minor versions.
package reconcile

import (
	"context"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/upgrade"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Cluster is one cluster in one account and region.
type Cluster struct {
	Name, Region string

	run  *run.Cluster
	text *upgrade.Text // of the manifest; nil: opened by name
}

// Open prepares work on the cluster of a manifest. It makes no call.
func Open(m *Manifest, t cluster.Target) *Cluster { return open(run.Open(m.cluster, t), m.text) }

// OpenByName prepares work on a cluster without its manifest, in the region of
// the target's Config. Only Status, AwaitCondition, Logs, Consoles, Exec, StartSession, Reach, Upgrades, Caller, Kubeconfig,
// PlanDelete and Delete work on it. A deletion is refused if CheckName returns an error.
func OpenByName(name string, t cluster.Target) *Cluster { return open(run.OpenByName(name, t), nil) }

func open(c *run.Cluster, text *upgrade.Text) *Cluster { return &Cluster{c.Name, c.Region, c, text} }

// CheckName returns an error if no cluster can have the name: Kubernetes requires the name of
// a Cluster object to be a DNS subdomain, and Cluster API uses it as the value of a label.
func CheckName(name string) error { return run.CheckName(name) }

// Plan returns what Apply would do. It changes nothing. If Apply would be refused, the
// error is a RefusedError, and the plan is returned with it.
func (c *Cluster) Plan(ctx context.Context) (plan.Plan, error) { return c.run.Plan(ctx) }

// Apply creates the cluster of the manifest, or updates it. It can be stopped at any
// time, and run again.
func (c *Cluster) Apply(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return c.run.Apply(ctx, o)
}

// PlanDelete returns what Delete would do. It changes nothing. Kept volumes are in the
// plan, with the action Keep.
func (c *Cluster) PlanDelete(ctx context.Context, o cluster.Options) (plan.Plan, error) {
	return c.run.PlanDelete(ctx, o)
}

// Delete deletes all resources of the cluster, and then looks for all of them again; those
// that still exist are a LeftoverError.
func (c *Cluster) Delete(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return c.run.Delete(ctx, o)
}

// Graph returns the graph of the manifest, as it is built on an empty account
// with three zones. It makes no call.
func (c *Cluster) Graph() (plan.Graph, error) { return c.run.PublicGraph() }

// Caller asks AWS who calls it for the cluster: the identity that the manifest names, or else
// that of the target's Config.
func (c *Cluster) Caller(ctx context.Context) (cluster.Caller, error) { return c.run.Caller(ctx) }

// Status reads the state of the cluster: of the resources of the manifest, or, without
// one, of those with the tag of the cluster.
func (c *Cluster) Status(ctx context.Context) (cluster.Status, error) { return look.Status(ctx, c.run) }

// LastRun returns the last run on the cluster, if it works on it or has not finished; nil otherwise, and if the
// caller may not read the lock.
func (c *Cluster) LastRun(ctx context.Context) *cluster.LastRun { return look.LastRun(ctx, c.run) }

// AwaitCondition waits for a cluster that another process creates, changes or deletes. It only
// reads, and takes no lock. It calls tell, if it is not nil, with what is missing whenever that
// changes. If the deadline of the context passes, the error is a TimeoutError with the likely
// reasons.
func (c *Cluster) AwaitCondition(ctx context.Context, condition cluster.Condition, tell func(missing string)) error {
	return look.AwaitCondition(ctx, c.run, condition, tell)
}

// Logs collects the state of the cluster, the console output of its machines, their kubelet and
// cloud-init logs if Systems Manager reaches them, and, if the API server answers, the pods and
// events. Secrets are removed. What the caller may not read is in Missing.
func (c *Cluster) Logs(ctx context.Context) (cluster.Logs, error) { return look.Logs(ctx, c.run) }

// Consoles reads the console output of the machines of the cluster, without secrets: of all, or of those that nodes
// names, as in Exec. If the cluster has no machines, the error is cluster.ErrNotFound.
func (c *Cluster) Consoles(ctx context.Context, nodes ...string) ([]cluster.Console, error) {
	return look.Consoles(ctx, c.run, nodes...)
}

// Exec runs a command as root on a machine of the cluster, with SSM Run Command, and waits until it ends.
// Systems Manager stops the command after limit, which may be at most cluster.MostExecution. node is the ID
// of the machine, the name of its Node, its private address, its tag Name, or its name in a Status.
func (c *Cluster) Exec(ctx context.Context, node string, command []string, limit time.Duration) (cluster.Execution, error) {
	return look.Exec(ctx, c.run, node, command, limit)
}

// StartSession starts a session of Session Manager with a machine of the cluster. node is as in Exec. If the
// machine is not connected to Systems Manager, the error is cluster.ErrNotConnected.
func (c *Cluster) StartSession(ctx context.Context, node string) (cluster.Session, error) {
	return look.StartSession(ctx, c.run, node)
}

// Reach returns the addresses and the key pair that a connection with SSH to a machine of the cluster needs.
// node is as in Exec.
func (c *Cluster) Reach(ctx context.Context, node string) (cluster.Reach, error) {
	return look.ReachOf(ctx, c.run, node)
}

// Kubeconfig returns the kubeconfig of an administrator. That of a self-managed
// cluster is made with the key of the cluster CA, which is in the account. That of an
// EKS cluster has no secret.
func (c *Cluster) Kubeconfig(ctx context.Context, o cluster.KubeconfigOptions) ([]byte, error) {
	return look.Kubeconfig(ctx, c.run, o)
}

// List finds the clusters of the region of the target by their tags.
func List(ctx context.Context, t cluster.Target) ([]cluster.Summary, error) { return look.List(ctx, t) }

// Regions lists the regions that the account can use.
func Regions(ctx context.Context, t cluster.Target) ([]string, error) { return look.Regions(ctx, t) }

// Upgrades returns the versions that the cluster can be upgraded to. With a manifest, it also
// returns how to upgrade to one of them: to is "v1.34.2" or "v1.34"; "" is the newest patch of
// the next minor version, or else of the current one. It changes nothing. If the cluster cannot
// be upgraded to that version, the error is a RefusedError.
func (c *Cluster) Upgrades(ctx context.Context, to string) (cluster.Upgrades, error) {
	return upgrade.Find(ctx, c.run, c.text, to)
}

// CallerRefusalOf returns why AWS has refused the caller, from an error and those that it
// wraps.
func CallerRefusalOf(err error) cluster.CallerRefusal { return run.CallerRefusalOf(err) }

// Repeats says what it helps to repeat a run that has failed with an error: that alone, only if it helps for
// all causes.
func Repeats(err error) plan.Repeat { return run.Repeats(err) }

// AreaOf returns the area of a resource, which its kind declares. The area of a machine
// follows from its origin or, if that is "", from the name of its group.
func AreaOf(id plan.ID, origin string) plan.Area { return run.AreaOf(id, origin) }

// CertificateExpiry returns until when the certificate of an administrator's kubeconfig
// is valid, and why it should be renewed now; the reason is "" for a certificate of this
// cluster's CA that is valid for more than half a year. All are PEM.
func CertificateExpiry(certificate, key, ca []byte, now time.Time) (until time.Time, reason string) {
	return boot.Due(certificate, key, ca, now)
}
