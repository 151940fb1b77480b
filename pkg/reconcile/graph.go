package reconcile

import (
	"errors"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Graph is what a cluster consists of, each resource after those that it needs.
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
}

// Graph returns the graph of the manifest, as it is built on an empty account
// with three zones. It makes no call.
func (c *Cluster) Graph() (Graph, error) {
	g, err := c.graph()
	if err != nil {
		return nil, err
	}
	var out Graph
	for _, n := range g.Resources() {
		r := GraphResource{ID: ID(n.ID()), Origin: n.Origin()}
		for _, e := range n.Needs() {
			r.Needs = append(r.Needs, Need{ID(e.Resource.ID()), e.Existing, e.Loose})
		}
		out = append(out, r)
	}
	return out, nil
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

// toApply returns how long AWS usually takes for a plan: the critical path
// through what there is to do.
func toApply(g *graph.Graph, p graph.Plan) time.Duration {
	busy := busy(p)
	settled, exists := map[graph.ID]time.Duration{}, map[graph.ID]time.Duration{}
	var end time.Duration
	for _, n := range g.Resources() {
		var start time.Duration
		for _, e := range n.Needs() {
			if e.Existing {
				start = max(start, exists[e.Resource.ID()])
			} else {
				start = max(start, settled[e.Resource.ID()])
			}
		}
		exists[n.ID()], settled[n.ID()] = start, start
		if create, _ := n.Takes(); busy[n.ID()] {
			settled[n.ID()] += create
		}
		end = max(end, settled[n.ID()])
	}
	return end
}

// toDelete is the same for the plan of a deletion, which goes backwards.
func toDelete(g *graph.Graph, p graph.Plan) time.Duration {
	busy := busy(p)
	begins := map[graph.ID]time.Duration{} // when the last user of a resource is deleted
	var end time.Duration
	all := g.Resources()
	for i := len(all) - 1; i >= 0; i-- {
		n := all[i]
		deleted := begins[n.ID()]
		if _, remove := n.Takes(); busy[n.ID()] {
			deleted += remove
		}
		end = max(end, deleted)
		for _, e := range n.Needs() {
			if !e.Loose {
				begins[e.Resource.ID()] = max(begins[e.Resource.ID()], deleted)
			}
		}
	}
	return end
}

// busy says which resources a plan does something with.
func busy(p graph.Plan) map[graph.ID]bool {
	busy := map[graph.ID]bool{}
	for _, s := range p.Steps {
		busy[s.Resource] = s.Does()
	}
	return busy
}
