package topology

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// control adds what comes of the machines of the control plane, and replaces
// those that are outdated, group after group: stand-alone Machines are a group
// each. It returns what workers wait for that are replaced.
func (b *builder) control() (after []graph.Resource) {
	var all, steady []*graph.Ref[ec2.InstanceState]
	for _, m := range b.made {
		if m.ControlPlane {
			all = append(all, m.Instance)
			if !b.rolling(m) {
				steady = append(steady, m.Instance)
			}
		}
	}
	b.begin(all)
	if rolls := b.controlRolls(); !rolls || len(steady) > 0 {
		b.register(steady, rolls) // those of a rollout see to themselves
	}
	b.kubernetes()
	before := b.tended()
	for _, r := range b.rollouts {
		if r.group.controlPlane {
			fresh, last := b.roll(r, slices.Concat(before, after, b.etcdMembers(r.group, r.fresh)))
			all, after = append(all, fresh...), append(after, last...)
		}
	}
	b.begin(all)
	return b.afterControl(after)
}

// begin marks the machine that begins the control plane, as soon as there is
// one.
func (b *builder) begin(made []*graph.Ref[ec2.InstanceState]) {
	if len(made) > 0 && b.Resource("init-marker") == nil {
		graph.Add(b.Graph, "init-marker", &secrets.InitMarker{Machine: made[0]})
	}
}

// etcdMembers adds a look at the members of etcd before machines are added to
// a control plane that has begun: one may have been lost.
func (b *builder) etcdMembers(g group, fresh []int) []graph.Resource {
	config, _ := b.clusterConfiguration()
	if !g.controlPlane || len(fresh) == 0 || !b.rolls(g) || !b.inv.Initialized || !b.othersControl() || len(config.Etcd.External.Endpoints) > 0 {
		return nil
	}
	const id = "etcd-members"
	if n := b.Resource(id); n != nil { // single Machines are a group each
		return []graph.Resource{n}
	}
	return []graph.Resource{graph.Expect(b.Graph, id, &incluster.EtcdMembers{
		API: b.reach("--drain=false"), Certificates: certificates(config.CertificatesDir) + "/etcd",
	}, graph.From(g.origin))}
}
