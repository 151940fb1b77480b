package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NodeLabels returns the labels of Machines that are also set on their Nodes: those of
// the domains that Cluster API synchronizes. A kubelet may not set most of them itself
// (NodeRestriction).
func NodeLabels(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(k, _ string) bool {
		domain, _, _ := strings.Cut(k, "/")
		within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
		return domain != clusterv1.NodeRoleLabelPrefix && !within(clusterv1.NodeRestrictionLabelDomain) && !within(clusterv1.ManagedNodeLabelDomain)
	})
	return labels
}

// labelRemark lists the labels that a run does not set because it does not wait for the
// Nodes; "" for none.
func (in inputs) labelRemark(machines []Machine) string {
	var groups []string
	for _, m := range machines {
		if len(m.labels) > 0 && !in.waitsForNode(m) && !slices.Contains(groups, m.Group) {
			groups = append(groups, m.Group)
		}
	}
	if len(groups) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"nodes get the labels of their machines once they have joined, which this run does not wait for: %s; run again with --wait=joined",
		strings.Join(groups, ", "),
	)
}
