package reconcile

import (
	"errors"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Graph returns the graph of the manifest, as it is built on an empty account
// with three zones. It makes no call.
func (c *Cluster) Graph() (plan.Graph, error) {
	g, err := c.graph()
	if err != nil {
		return nil, err
	}
	return graphOf(g), nil
}

func graphOf(g *graph.Graph) (out plan.Graph) {
	for _, n := range g.Resources() {
		r := plan.GraphResource{ID: n.ID(), Origin: n.Origin()}
		for _, e := range n.Needs() {
			r.Needs = append(r.Needs, plan.Need{Resource: e.Resource.ID(), Existing: e.Existing, Loose: e.Loose && !e.Outlives, Outlives: e.Outlives})
		}
		out = append(out, r)
	}
	return out
}

func (c *Cluster) graph() (*graph.Graph, error) {
	if c.manifest == nil {
		return nil, errors.New("a graph needs a manifest")
	}
	inv := topology.Inventory{}
	for _, z := range "abc" {
		inv.Zones = append(inv.Zones, c.Region+string(z))
	}
	built, err := topology.Build(c.manifest, inv, topology.Options{Wait: c.target.Wait})
	return built.Graph, err
}
