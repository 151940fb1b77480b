package reconcile

import (
	"errors"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Graph lists the resources of a cluster, each after those that it needs.
type Graph []GraphResource

// GraphResource is a resource of a cluster, and what it needs.
type GraphResource struct {
	ID     ID
	Origin string // the part of the manifest it comes from; "" for none
	Needs  []Need
}

// Need says that a resource needs another one.
type Need struct {
	Resource ID
	Existing bool // it is enough that the other one exists: it need not be ready
	Loose    bool // either may be deleted first
	Outlives bool // the resource is deleted after the other one
}

// Graph returns the graph of the manifest, as it is built on an empty account
// with three zones. It makes no call.
func (c *Cluster) Graph() (Graph, error) {
	g, err := c.graph()
	if err != nil {
		return nil, err
	}
	return graphOf(g), nil
}

func graphOf(g *graph.Graph) (out Graph) {
	for _, n := range g.Resources() {
		r := GraphResource{ID: ID(n.ID()), Origin: n.Origin()}
		for _, e := range n.Needs() {
			r.Needs = append(r.Needs, Need{ID(e.Resource.ID()), e.Existing, e.Loose && !e.Outlives, e.Outlives})
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
	built, err := topology.Build(c.manifest, inv, topology.Options{Wait: topology.Wait(c.target.Wait)})
	return built.Graph, err
}
