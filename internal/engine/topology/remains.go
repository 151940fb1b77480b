package topology

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
)

// AddRemains adds what carries the cluster's tag, and is not in the graph, so
// that it goes with the rest; an empty graph becomes that of a cluster of
// which only the name is known. The graph has to have been looked at: what it
// found is claimed by ID.
func AddRemains(g *graph.Graph, all teardown.Remains) {
	claimed := map[string]bool{}
	var ranked []rankedNode
	for _, n := range g.Resources() {
		claimed[n.CloudID()] = true
		ranked = append(ranked, rankedNode{n, rankOf(n)})
	}
	for _, r := range all {
		id := remainID(r)
		swept := r.Kind == teardown.KindInterfaces && strings.HasPrefix(r.ID, "vpc-") && g.Resource(teardown.KindInterfaces) != nil
		if swept || claimed[r.ID] || g.Resource(id) != nil {
			continue
		}
		if tagged := graph.ID(r.Node); r.Node != "" && g.Resource(tagged) == nil {
			id = tagged
		}
		ranked = append(ranked, rankedNode{r.Retire(g, id, hangs(r, ranked)), r.Rank})
	}
}

// hangs lists what a remain hangs on.
func hangs(r teardown.Remain, ranked []rankedNode) (out []graph.Edge) {
	for _, n := range ranked {
		switch {
		case served(n.rank) && !served(r.Rank) && !holdsMachines(graph.ID(r.Kind)):
		case n.rank < r.Rank:
			out = append(out, graph.Exists(n.node)...)
		case served(r.Rank) && holdsMachines(n.node.ID()):
			out = append(out, graph.Outlives(n.node)...)
		}
	}
	return out
}

// served reports whether things of a rank were made in the cluster: only
// machines hang on them.
func served(rank int) bool { return rank >= teardown.RankBeneathServed && rank <= teardown.RankServed }

// holdsMachines reports whether a node is a machine or has some: in them run
// the controllers that make things, and volumes are attached to them.
func holdsMachines(id graph.ID) bool {
	return slices.Contains([]string{"machine", "auto-scaling-group", "node-group", "fargate-profile"}, id.Kind())
}

// remainID names the node of a remain that has no node tag.
func remainID(r teardown.Remain) graph.ID {
	if _, id, is := strings.Cut(r.ID, ":loadbalancer/"); is {
		return graph.ID(r.Kind + "/" + id)
	}
	if _, id, is := strings.Cut(r.ID, ":targetgroup/"); is {
		return graph.ID(r.Kind + "/" + id)
	}
	if r.Rank == teardown.RankSecret && strings.ContainsAny(r.ID, "/ ") {
		return graph.ID(r.Kind) // there is one of each, and its ID is a path
	}
	return graph.ID(r.Kind + "/" + r.ID)
}

type rankedNode struct {
	node graph.Resource
	rank int
}

// rankOf returns the rank of a node of a built graph; nodes that nothing hangs
// on rank highest.
func rankOf(n graph.Resource) int {
	switch n.ID().Kind() {
	case "vpc":
		return teardown.RankVPC
	case "subnet", "internet-gateway", "egress-only-gateway", "security-group":
		return teardown.RankInVPC
	case "network-interfaces":
		return teardown.RankInterfaces
	case "elastic-ip", "target-group", "launch-template":
		return teardown.RankUnderneath
	case "eks-cluster":
		return teardown.RankEKS
	}
	return teardown.RankSecret
}
