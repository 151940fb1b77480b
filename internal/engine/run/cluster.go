// Package run is one run on a cluster: it takes the lock, looks at the account, plans, and creates,
// changes or deletes.
//
// Each phase is a type with what the phase needs, and has the one before it. Session is the
// connection with the account; Looking reads what there is and plans; planning finds what would stop
// the run half way; applying carries out the plan. Deleting is the other way.
package run

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Cluster is one cluster in one account and region.
type Cluster struct {
	Name, Region string
	Manifest     *manifest.Cluster // nil: opened by name
	Target       cluster.Target
	Adopts       bool // it may exist without tags of ours, as a cluster that is imported
}

// Open returns the cluster of a manifest.
func Open(m *manifest.Cluster, t cluster.Target) *Cluster {
	return &Cluster{Name: m.Name, Region: m.Region, Manifest: m, Target: t}
}

// OpenByName returns a cluster without its manifest, in the region of the target's Config.
func OpenByName(name string, t cluster.Target) *Cluster {
	return &Cluster{Name: name, Region: t.Config.Region, Target: t}
}

// IsEKS reports whether EKS runs the control plane, as far as a manifest says.
func (c *Cluster) IsEKS() bool { return c.Manifest != nil && c.Manifest.EKS != nil }

// CheckName returns an error if no cluster can have the name: Kubernetes requires the name of
// a Cluster object to be a DNS subdomain, and Cluster API uses it as the value of a label.
func CheckName(name string) error {
	switch what := validation.IsValidLabelValue(name); {
	case len(what) > 0 && len(name) > validation.LabelValueMaxLength:
		return fmt.Errorf("%q cannot be the name of a cluster: %s", name, what[0])
	case len(what) > 0, len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf(
			"%q cannot be the name of a cluster: it must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or a digit",
			name,
		)
	}
	return nil
}

// ClientOptions converts a target to options for the clients.
func ClientOptions(t cluster.Target) cloud.Options {
	o := cloud.Options{Clock: clock.Of(t.Clock), Parallel: t.Parallel, KMSKey: t.KMSKey, Log: t.Log}
	if t.Helm != nil {
		o.Helm = t.Helm
	}
	if t.Transport != nil {
		o.Kubernetes = func(a kube.Access) http.RoundTripper { return t.Transport(cluster.Access(a)) }
	}
	return o
}

// budget returns the budget of calls that the cluster shares with others in its account and region; nil: none.
func (c *Cluster) budget(o cloud.Options) *cloud.Budget {
	if c.Target.Budget == nil {
		return nil
	}
	shared, _ := c.Target.Budget.Of(c.Region+"/"+accountKey(c.Manifest), func() any { return cloud.NewBudget(o.Clock, o.Parallel) }).(*cloud.Budget)
	return shared
}

// accountKey tells the accounts of identities apart; "" is the account of the caller.
func accountKey(m *manifest.Cluster) string {
	if m == nil || len(m.Identity) == 0 {
		return ""
	}
	last := m.Identity[len(m.Identity)-1]
	if last.Static != nil {
		return last.Static.AccessKeyID
	}
	role, err := arn.Parse(last.Role.RoleArn)
	if err != nil {
		return last.Role.RoleArn
	}
	return role.AccountID
}

// Graph returns the graph of the manifest, as it is built on an empty account with three zones.
// It makes no call.
func (c *Cluster) Graph() (*graph.Graph, error) {
	if c.Manifest == nil {
		return nil, errors.New("a graph needs a manifest")
	}
	inv := topology.Inventory{}
	for _, z := range "abc" {
		inv.Zones = append(inv.Zones, c.Region+string(z))
	}
	built, err := topology.Build(c.Manifest, inv, topology.Options{Wait: c.Target.Wait})
	return built.Graph, err
}

// PublicGraph returns the graph of the manifest as plans show it.
func (c *Cluster) PublicGraph() (plan.Graph, error) {
	g, err := c.Graph()
	if err != nil {
		return nil, err
	}
	return publicGraph(g), nil
}

// publicGraph returns the resources of a graph and what they need.
func publicGraph(g *graph.Graph) (out plan.Graph) {
	for _, n := range g.Resources() {
		r := plan.GraphResource{ID: n.ID(), Origin: n.Origin()}
		for _, e := range n.Needs() {
			r.Needs = append(r.Needs, plan.Need{Resource: e.Resource.ID(), Existing: e.Existing, Loose: e.Loose && !e.Outlives, Outlives: e.Outlives})
		}
		out = append(out, r)
	}
	return out
}
