package topology

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// nodeLabels returns the labels of a Machine that its node is to have, too:
// those of the domains that Cluster API keeps the same on both. Most of them no
// kubelet may give itself.
func (b *builder) nodeLabels(m Machine) map[string]string {
	labels := maps.Clone(b.machineLabels(m))
	maps.DeleteFunc(labels, func(k, _ string) bool {
		domain, _, _ := strings.Cut(k, "/")
		within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
		return domain != clusterv1.NodeRoleLabelPrefix && !within(clusterv1.NodeRestrictionLabelDomain) && !within(clusterv1.ManagedNodeLabelDomain)
	})
	return labels
}

// machineLabels returns the labels that the manifest gives a Machine.
func (b *builder) machineLabels(m Machine) map[string]string {
	if cp := b.m.ControlPlane; cp != nil && m.ControlPlane && cp.Object.Name == m.Group {
		return cp.Object.Spec.MachineTemplate.ObjectMeta.Labels
	}
	for _, d := range b.m.Deployments {
		if d.Object.Name == m.Group {
			return d.Object.Spec.Template.Labels
		}
	}
	for _, x := range b.m.Machines {
		if x.Object.Name == m.Group {
			return x.Object.Labels
		}
	}
	return nil
}

// unlabelled says which labels a run does not see to because it does not wait
// for the nodes.
func (b *builder) unlabelled() {
	var groups []string
	for _, m := range b.made {
		if len(b.nodeLabels(m)) > 0 && b.Node(nodeID(m)) == nil && !slices.Contains(groups, m.Group) {
			groups = append(groups, m.Group)
		}
	}
	if len(groups) > 0 {
		b.remark("nodes get the labels of their machines once they have joined, which this run does not wait for: %s; run again with --wait=nodes", strings.Join(groups, ", "))
	}
}
