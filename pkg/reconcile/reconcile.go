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
	"fmt"
	"net/http"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// clientOptions converts a target to options for the clients.
func clientOptions(t cluster.Target) cloud.Options {
	o := cloud.Options{Clock: clock.Of(t.Clock), Parallel: t.Parallel, KMSKey: t.KMSKey, Log: t.Log}
	if t.Transport != nil {
		o.Kubernetes = func(a kube.Access) http.RoundTripper { return t.Transport(cluster.Access(a)) }
	}
	return o
}

// Cluster is one cluster in one account and region.
type Cluster struct {
	Name, Region string

	manifest *manifest.Cluster // nil: opened by name
	loaded   *Manifest         // that manifest with its text; nil as above
	target   cluster.Target
	adopts   bool // it may exist without tags of ours, as a cluster that is imported
}

// Open prepares work on the cluster of a manifest. It makes no call.
func Open(m *Manifest, t cluster.Target) *Cluster {
	return &Cluster{Name: m.Name(), Region: m.Region(), manifest: m.cluster, loaded: m, target: t}
}

// managed reports whether EKS runs the control plane, as far as a manifest says.
func (c *Cluster) managed() bool { return c.manifest != nil && c.manifest.EKS != nil }

// OpenByName prepares work on a cluster without its manifest, in the region of
// the target's Config. Only Status, AwaitCondition, Logs, Upgrades, Caller, Kubeconfig,
// PlanDelete and Delete work on it. A deletion is refused if CheckName returns an error.
func OpenByName(name string, t cluster.Target) *Cluster {
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
