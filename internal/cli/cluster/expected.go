package cluster

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// toCreate returns how long AWS may be expected to take for a plan: the
// longest way through what there is to do. It is 0 where nobody knows.
func toCreate(c *reconcile.Cluster, p graph.Plan) time.Duration {
	g, err := c.Graph()
	if err != nil {
		return 0
	}
	busy := doing(p)
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

// toDelete is the same for a deletion, which goes backwards. Of a cluster
// without a manifest nobody knows what hangs on what.
func toDelete(c *reconcile.Cluster, p graph.Plan, byManifest bool) time.Duration {
	if !byManifest {
		return 0
	}
	g, err := c.Graph()
	if err != nil {
		return 0
	}
	busy := doing(p)
	begins := map[graph.ID]time.Duration{} // when the last user of a thing is gone
	var end time.Duration
	nodes := g.Resources()
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		gone := begins[n.ID()]
		if _, remove := n.Takes(); busy[n.ID()] {
			gone += remove
		}
		end = max(end, gone)
		for _, e := range n.Needs() {
			if !e.Loose {
				begins[e.Resource.ID()] = max(begins[e.Resource.ID()], gone)
			}
		}
	}
	return end
}

func doing(p graph.Plan) map[graph.ID]bool {
	busy := map[graph.ID]bool{}
	for _, s := range p.Steps {
		busy[s.Resource] = s.Does()
	}
	return busy
}
