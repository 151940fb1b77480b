package topology

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addAddons adds what is installed in the cluster: the ClusterResourceSets of the
// manifest, and the files that the user names. It returns the pod network, without
// which Nodes do not become ready.
func addAddons(g *graph.Graph, in inputs, k kubernetes) (podNetwork []graph.Edge) {
	brought := map[string]bool{}
	for _, set := range in.m.ResourceSets {
		for _, d := range set.Documents {
			brought[addonObject(d).Brings()] = true
		}
	}
	for _, set := range in.m.ResourceSets {
		a := &incluster.Addons{API: k.api, Server: k.server, Name: set.Name, Reconcile: set.Reconcile, Brought: brought}
		for _, d := range set.Documents {
			a.Objects = append(a.Objects, addonObject(d))
		}
		if len(a.Objects) > 0 {
			added := graph.Install(g, plan.ID("addons/"+set.Name), a, graph.From(set.Origin))
			if set.HasPodNetwork() {
				podNetwork = append(podNetwork, graph.Awaits(added)...)
			}
		}
	}
	return podNetwork
}

func addonObject(d *manifest.Document) incluster.AddonObject {
	return incluster.AddonObject{Title: d.Title(), Origin: d.Origin, Object: d.Object}
}

// postponedRemarks lists the add-ons that a run does not install because it does not wait
// for the API server.
func (in inputs) postponedRemarks(mappings []incluster.Mapping) (out []string) {
	var names []string
	for _, set := range in.m.ResourceSets {
		names = append(names, set.Name)
	}
	if len(names) > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"not applied before the API server answers, which this run does not wait for: add-ons %s; run again with --wait=joined or --wait=nodes",
				strings.Join(names, ", "),
			),
		)
	}
	if in.hasDaemonSetSettings() {
		out = append(
			out,
			in.m.Origin(
				in.m.InfraObject(),
				"spec",
			)+": vpcCni and kubeProxy are not applied before the API server answers, which this run does not wait for; run again with --wait=joined or --wait=nodes",
		)
	}
	if len(mappings) > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"%s: the ConfigMap aws-auth is not written by a run with --wait=infrastructure, and those who are to be in it are not let into the cluster: run again with --wait=api",
				in.m.Origin(in.m.InfraObject(), "spec.accessConfig"),
			),
		)
	}
	return out
}
