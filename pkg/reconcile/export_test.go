package reconcile

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
)

// OpenModel is Open for a test that changes the loaded manifest.
func OpenModel(m *manifest.Cluster, t cluster.Target) *Cluster { return Open(&Manifest{cluster: m}, t) }

// PolicyOf is Manifest.Policy for a test that changes the loaded manifest.
func PolicyOf(m *manifest.Cluster) plan.PolicyDocument { return (&Manifest{cluster: m}).Policy() }

// EngineGraph is Graph with the types of the engine.
func (c *Cluster) EngineGraph() (*graph.Graph, error) { return c.graph() }

// AccountGraph is the graph of a run in the account, which knows its subnets and machines.
func (c *Cluster) AccountGraph(ctx context.Context) (*graph.Graph, error) {
	r := c.begin(cluster.Options{})
	err := r.build(cloud.ReadOnly(ctx))
	return r.built.Graph, err
}

// Needs lists what the plan of the cluster needs, without the roles that it passes.
func (c *Cluster) Needs(ctx context.Context) ([]permission.Need, error) {
	r := c.begin(cluster.Options{})
	err := r.look(ctx)
	return permission.Needs(r.built.Graph, r.plan, permission.Policy(permission.Of(c.manifest)), permission.Place{Partition: "aws", Account: "123456789012", Parameters: r.cloud.ParameterPath("")}), err
}
