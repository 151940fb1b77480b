package topology

import (
	"cmp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// retireMachines adds machines that carry the cluster's tag and are wanted no
// more: those that are too many in their group, those whose group is gone, a
// bastion that was switched off. They go when those that stay are settled; of
// the control plane one after the other, when no load balancer sends to them.
func (b *builder) retireMachines() {
	var stay, calm []graph.Resource
	for _, m := range b.made {
		stay = append(stay, m.Instance)
	}
	for _, n := range b.Resources() {
		if kind := n.ID().Kind(); kind == "targets" || kind == "node" && b.ofControlPlane(n) {
			calm = append(calm, n)
		}
	}
	const gone = "no longer in the manifest"
	for _, m := range b.going() {
		after := graph.Awaits(stay...)
		if m.Tags[cloud.RoleTag] != roleControlPlane {
			b.leave(m, after, gone)
			continue
		}
		after = append(after, graph.Awaits(calm...)...)
		if b.controlRolls() {
			after = append(after, b.unregister(m, after, gone)...)
		}
		calm = append(calm, b.leave(m, after, gone))
	}
	if b.api != nil && b.o.Drain && b.begun() {
		graph.Retire(b.Graph, "node-objects", &incluster.NodeObjects{API: b.api, Server: b.server}, graph.From("no longer has a machine"))
	}
}

// ofControlPlane reports whether a node of Kubernetes is one of the control
// plane.
func (b *builder) ofControlPlane(n graph.Resource) bool {
	return slices.ContainsFunc(b.made, func(m Machine) bool { return m.ControlPlane && nodeID(m) == n.ID() })
}

// begun reports whether there is, or was, a living cluster to leave.
func (b *builder) begun() bool { return b.m.EKS != nil || b.inv.Initialized || b.othersControl() }

// going lists the machines that are wanted no more.
func (b *builder) going() (out []ec2.InstanceState) {
	for _, m := range b.inv.Machines {
		if m.Status != "shutting-down" && !b.claims(m) && b.Resource(retiredID(m)) == nil {
			out = append(out, m)
		}
	}
	return out
}

// leave adds what it takes for a machine to go: its node is drained, its member
// of etcd removed, the machine terminated, and its node deleted (facts D.9,
// D.11). It returns the last of that.
func (b *builder) leave(m ec2.InstanceState, after []graph.Edge, why string) graph.Resource {
	node := nodeOf(m)
	suffix, from := strings.TrimPrefix(node, "machine/")+"/"+m.ID, graph.From(why)
	r := &ec2.Instance{Claimed: m.ID, Tags: m.Tags}
	r.Spec.InstanceType = m.Type
	role := m.Tags[cloud.RoleTag]
	drained := b.o.Drain && b.begun() && (role == roleControlPlane || role == roleNode)
	if drained {
		api := b.reach("--drain=false")
		limits, asked := b.deletion(m)
		if _, excluded := asked[clusterv1.ExcludeNodeDrainingAnnotation]; !excluded {
			_, abandon := asked[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
			after = graph.Awaits(graph.Retire(b.Graph, graph.ID("drain/"+suffix), &incluster.Drain{
				API: api, Machine: m, Timeout: seconds(limits.NodeDrainTimeoutSeconds), Detach: seconds(limits.NodeVolumeDetachTimeoutSeconds),
				Abandon: abandon, After: after,
			}, from))
		}
		if config, _ := b.clusterConfiguration(); role == roleControlPlane && len(config.Etcd.External.Endpoints) == 0 {
			after = graph.Awaits(graph.Retire(b.Graph, graph.ID("etcd-member/"+suffix), &incluster.EtcdMember{
				API: api, Machine: m, Going: slices.DeleteFunc(b.going(), func(o ec2.InstanceState) bool { return o.Tags[cloud.RoleTag] != roleControlPlane }),
				Certificates: certificates(config.CertificatesDir) + "/etcd", After: after,
			}, from))
		}
	}
	gone := graph.Retire(b.Graph, retiredID(m), r, graph.With(after), from)
	if !drained {
		return gone
	}
	return graph.Retire(b.Graph, graph.ID("node-object/"+suffix), &incluster.NodeObjects{API: b.api, Machine: m, After: graph.Awaits(gone)}, from)
}

// nodeOf is the node of a machine in the graph that made it.
func nodeOf(m ec2.InstanceState) string {
	return cmp.Or(m.Tags[cloud.ResourceTag], "machine/"+m.Tags["Name"])
}

// retiredID is the node of a machine that is to go.
func retiredID(m ec2.InstanceState) graph.ID {
	return graph.ID("retired/" + nodeOf(m) + "/" + m.ID)
}

// certificates is where kubeadm keeps certificates on machines.
func certificates(given string) string {
	if given == "" {
		return "/etc/kubernetes/pki"
	}
	return given
}

func seconds(n *int32) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}

// deletion is what the manifest says of how a machine goes, as long as its
// group is in it: limits, and the annotations of its Machine.
func (b *builder) deletion(m ec2.InstanceState) (limits clusterv1.MachineDeletionSpec, annotations map[string]string) {
	of := func(g group) bool {
		node := m.Tags[cloud.ResourceTag]
		return strings.HasPrefix(node, "machine/"+g.name+"/") || node == "machine/"+g.name || b.machinePattern(g).MatchString(m.Tags["MachineName"])
	}
	if cp := b.m.ControlPlane; cp != nil && of(group{name: cp.Object.Name, controlPlane: true}) {
		d := cp.Object.Spec.MachineTemplate.Spec.Deletion
		limits.NodeDrainTimeoutSeconds, limits.NodeVolumeDetachTimeoutSeconds = d.NodeDrainTimeoutSeconds, d.NodeVolumeDetachTimeoutSeconds
		annotations = cp.Object.Spec.MachineTemplate.ObjectMeta.Annotations
	}
	for _, d := range b.m.Deployments {
		if of(group{name: d.Object.Name}) {
			limits, annotations = d.Object.Spec.Template.Spec.Deletion, d.Object.Spec.Template.Annotations
		}
	}
	for _, x := range b.m.Machines {
		if of(group{name: x.Object.Name}) {
			limits, annotations = x.Object.Spec.Deletion, x.Object.Annotations
		}
	}
	return limits, annotations
}

// claims reports whether a machine of the inventory has a place in the graph.
func (b *builder) claims(m ec2.InstanceState) bool {
	node, name := m.Tags[cloud.ResourceTag], m.Tags["Name"]
	if node != "" && b.Resource(graph.ID(node)) != nil {
		return true
	}
	return slices.ContainsFunc(b.Resources(), func(n graph.Resource) bool {
		ref, ok := n.(*graph.Ref[ec2.InstanceState])
		if !ok || strings.HasPrefix(string(n.ID()), "retired/") {
			return false
		}
		i, ok := ref.Desired().(*ec2.Instance)
		return ok && (i.Claimed == m.ID || node == "" && i.Tags["Name"] == name)
	})
}
