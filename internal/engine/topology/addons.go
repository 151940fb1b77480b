package topology

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// resourceSets adds what is brought into the cluster: the ClusterResourceSets of the
// manifest, and the files that the user has named. It returns what nodes cannot
// become ready without.
func (b *builder) resourceSets() (network []graph.Edge) {
	brought := map[string]bool{}
	for _, set := range b.m.ResourceSets {
		a := &incluster.Addons{API: b.api, Server: b.server, Name: set.Name, Reconcile: set.Reconcile, Brought: brought}
		for _, d := range set.Documents {
			o := incluster.AddonObject{Title: d.Title(), Origin: d.Origin, Object: d.Object}
			a.Objects = append(a.Objects, o)
			brought[o.Brings()] = true
		}
		if len(a.Objects) > 0 {
			n := graph.Install(b.Graph, graph.ID("addons/"+set.Name), a, graph.From(set.Origin))
			if set.BringsNetwork() {
				network = append(network, graph.Awaits(n)...)
			}
		}
	}
	return network
}

// postponed says what is not brought into the cluster by a run that does not
// wait for its API server.
func (b *builder) postponed() {
	var names []string
	for _, set := range b.m.ResourceSets {
		names = append(names, set.Name)
	}
	if len(names) > 0 {
		b.remark("not applied before the API server answers, which this run does not wait for: add-ons %s; run again with --wait=api or --wait=nodes", strings.Join(names, ", "))
	}
}
