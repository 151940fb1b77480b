package topology

import (
	"slices"
	"strings"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/resource"
)

// retireMachines adds machines that carry the cluster's tag and are wanted no
// more: those that are too many in their group, those whose group is gone, a
// bastion that was switched off. They go when those that stay are settled.
func (b *builder) retireMachines() {
	var stay []graph.Node
	for _, m := range b.made {
		stay = append(stay, m.Node)
	}
	for _, m := range b.inv.Machines {
		node := m.Tags[cloud.NodeTag]
		if m.Status == "shutting-down" || b.claims(m) {
			continue
		}
		if node == "" {
			node = "machine/" + m.Tags["Name"]
		}
		id := graph.ID("retired/" + node + "/" + m.ID)
		r := &resource.Instance{Claimed: m.ID, Tags: m.Tags}
		r.Spec.InstanceType = m.Type
		graph.Retire(b.Graph, id, r, graph.With(graph.Awaits(stay...)), graph.From("no longer in the manifest"))
	}
}

// claims reports whether a machine of the inventory has a place in the graph.
func (b *builder) claims(m resource.InstanceState) bool {
	node, name := m.Tags[cloud.NodeTag], m.Tags["Name"]
	if node != "" && b.Node(graph.ID(node)) != nil {
		return true
	}
	return slices.ContainsFunc(b.Nodes(), func(n graph.Node) bool {
		ref, ok := n.(*graph.Ref[resource.InstanceState])
		if !ok || strings.HasPrefix(string(n.ID()), "retired/") {
			return false
		}
		i, ok := ref.Resource().(*resource.Instance)
		return ok && (i.Claimed == m.ID || node == "" && i.Tags["Name"] == name)
	})
}
