package topology

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// nodeLabels returns which of the labels of Machines their nodes are to have,
// too: those of the domains that Cluster API keeps the same on both. Most of them
// no kubelet may give itself.
func nodeLabels(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(k, _ string) bool {
		domain, _, _ := strings.Cut(k, "/")
		within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
		return domain != clusterv1.NodeRoleLabelPrefix && !within(clusterv1.NodeRestrictionLabelDomain) && !within(clusterv1.ManagedNodeLabelDomain)
	})
	return labels
}

// unlabelled says which labels a run does not see to because it does not wait
// for the nodes.
func (b *builder) unlabelled() {
	var groups []string
	for _, m := range b.made {
		if len(m.labels) > 0 && b.Resource(nodeID(m)) == nil && !slices.Contains(groups, m.Group) {
			groups = append(groups, m.Group)
		}
	}
	if len(groups) > 0 {
		b.remark("nodes get the labels of their machines once they have joined, which this run does not wait for: %s; run again with --wait=nodes", strings.Join(groups, ", "))
	}
}
