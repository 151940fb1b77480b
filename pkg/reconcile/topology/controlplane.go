package topology

import (
	"slices"

	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/resource"
)

// control adds what comes of the machines of the control plane, and replaces
// those that are outdated. It returns what workers wait for that are replaced.
func (b *builder) control(made []*graph.Ref[resource.InstanceState]) (after []graph.Node) {
	at := slices.IndexFunc(b.rollouts, func(r rollout) bool { return r.group.controlPlane })
	if at < 0 {
		b.begin(made)
		b.register(made, false)
		b.kubernetes()
		return b.afterControl(nil)
	}
	if len(made) > 0 {
		b.register(made, true) // those that come and go see to themselves
	}
	b.kubernetes()
	r := b.rollouts[at]
	fresh, last := b.roll(r, append(b.tended(), b.etcdMembers(r.group, r.fresh)...))
	b.begin(append(made, fresh...))
	return b.afterControl(last)
}

// begin marks the machine that begins the control plane.
func (b *builder) begin(made []*graph.Ref[resource.InstanceState]) {
	if len(made) > 0 {
		graph.Add(b.Graph, "init-marker", &resource.InitMarker{Machine: made[0]})
	}
}

// etcdMembers adds a look at the members of etcd before machines are added to
// a control plane that has begun: one may have been lost.
func (b *builder) etcdMembers(g group, fresh []int) []graph.Node {
	config, _ := b.clusterConfiguration()
	if !g.controlPlane || len(fresh) == 0 || !b.rolls(g) || !b.inv.Initialized || !b.othersControl() || len(config.Etcd.External.Endpoints) > 0 {
		return nil
	}
	const id = "etcd-members"
	if n := b.Node(id); n != nil { // single Machines are a group each
		return []graph.Node{n}
	}
	return []graph.Node{graph.Expect(b.Graph, id, &resource.EtcdMembers{
		API: b.reach("--drain=false"), Certificates: certificates(config.CertificatesDir) + "/etcd",
	}, graph.From(g.origin))}
}
