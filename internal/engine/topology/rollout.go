package topology

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// rollout replaces the machines of a group that are outdated by new ones (facts
// D.9).
type rollout struct {
	group group
	stay  []Machine           // that are as the manifest says; they may not have joined yet
	fresh []int               // places of those that are to be made
	old   []ec2.InstanceState // those that are to go, the oldest first
}

// rolls reports whether machines that are outdated are replaced: a run that
// neither drains nor waits leaves them as they are.
func (b *builder) rolls(g group) bool {
	return b.o.Drain && (b.o.Wait == APIServer || b.o.Wait == NodesReady) && !g.onDelete
}

// limits returns by how many machines a group may be too large and too small
// while it is replaced.
func (g group) limits() (surge, unavailable int) {
	number := func(v *intstr.IntOrString, otherwise int, up bool) int {
		if v == nil {
			return otherwise
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(v, g.count, up)
		if err != nil {
			return otherwise // it has been validated
		}
		return n
	}
	surge, unavailable = number(g.surge, 1, true), number(g.unavailable, 0, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// move is one step of a rollout: a new machine that is made, or an old one
// that goes.
type move struct {
	comes bool
	n     int // of its kind, counted from 0
	after int // of the other kind: how many have to have gone, or come, before
}

// moves puts a rollout in an order in which there are never more machines than
// wanted and surge, nor fewer that are ready than wanted less unavailable.
func moves(wanted, stay, fresh, old, surge, unavailable int) (out []move) {
	for came, went := 0, 0; came < fresh || went < old; {
		room := stay + came + 1 + old - wanted - surge // that have to have gone before another one comes
		if came < fresh && room <= went {
			out = append(out, move{true, came, max(0, room)})
			came++
			continue
		}
		need := wanted - unavailable - stay - old + went + 1 // that have to have come before another one goes
		out = append(out, move{false, went, min(max(0, need), fresh)})
		went++
	}
	return out
}

// roll adds a rollout: each new machine waits for the place that one which
// goes has left, each one that goes for one that has come, and for those that an
// earlier run has made. A control plane grows only when all of it is well. It
// returns the machines it makes, and all that happens.
func (b *builder) roll(r rollout, after []graph.Resource) (made []*graph.Ref[ec2.InstanceState], all []graph.Resource) {
	surge, unavailable := r.group.limits()
	for _, m := range r.stay {
		all = append(all, b.arrival(r.group, m))
	}
	leave, come := slices.Concat(after, all), after
	if r.group.controlPlane {
		come = leave
	}
	var here, gone []graph.Resource
	for _, x := range moves(r.group.count, len(r.stay), len(r.fresh), len(r.old), surge, unavailable) {
		if x.comes {
			m := b.rolledIn(r.group, r.fresh[x.n], slices.Concat(come, nth(gone, x.after)))
			made, here = append(made, m.Instance), append(here, b.arrival(r.group, m))
			continue
		}
		gone = append(gone, b.rolledOut(r.group, r.old[x.n], slices.Concat(leave, nth(here, x.after))))
	}
	return made, slices.Concat(all, here, gone)
}

// controlRolls reports whether machines of the control plane are replaced.
func (b *builder) controlRolls() bool {
	return slices.ContainsFunc(b.rollouts, func(r rollout) bool { return r.group.controlPlane })
}

// rolling reports whether a machine is of a group that is replaced.
func (b *builder) rolling(m Machine) bool {
	return slices.ContainsFunc(b.rollouts, func(r rollout) bool { return r.group.name == m.Group && r.group.controlPlane == m.ControlPlane })
}

// nth is the n-th of the nodes, counted from 1; none for 0.
func nth(nodes []graph.Resource, n int) []graph.Resource {
	if n == 0 {
		return nil
	}
	return nodes[n-1 : n]
}

// rolledIn adds a machine that takes the place of another.
func (b *builder) rolledIn(g group, i int, after []graph.Resource) Machine {
	m := g.made(b.machine(g, i, existing{}, false, graph.Awaits(after...)...))
	b.made = append(b.made, m)
	return m
}

// arrival adds what has to have come of a machine before an old one may go, and
// returns the last of it.
func (b *builder) arrival(g group, m Machine) graph.Resource {
	var needs []graph.Edge
	if g.controlPlane {
		needs = b.atBalancers("/"+m.place(), elb.Targets{
			Instances: []*graph.Ref[ec2.InstanceState]{m.Instance}, Shared: true, Healthy: true,
		}, graph.From(g.origin))
	}
	return b.node(m, needs...)
}

// rolledOut adds how a machine goes that has been replaced.
func (b *builder) rolledOut(g group, m ec2.InstanceState, after []graph.Resource) graph.Resource {
	edges := graph.Awaits(after...)
	if g.controlPlane {
		edges = append(edges, b.unregister(m, edges, g.origin)...)
	}
	return b.leave(m, edges, g.origin+": "+b.outdatedBecause(g, m))
}

// unregister takes one machine out of the load balancers.
func (b *builder) unregister(m ec2.InstanceState, after []graph.Edge, origin string) []graph.Edge {
	return b.atBalancers("/without/"+m.ID, elb.Targets{Shared: true, Gone: []string{m.ID}}, graph.From(origin), graph.With(after))
}

// rollWorkers replaces workers, group by group at the same time, when the
// control plane and what it runs are as wanted: no kubelet may be newer than
// the API server.
func (b *builder) rollWorkers(after []graph.Resource) {
	for _, r := range b.rollouts {
		if !r.group.controlPlane {
			b.roll(r, after)
		}
	}
}

// strategy notes how the machines of a MachineDeployment are replaced.
func (g *group) strategy(d *clusterv1.MachineDeployment) {
	s := d.Spec.Rollout.Strategy
	g.after, g.order = d.Spec.Rollout.After.Time, d.Spec.Deletion.Order
	g.onDelete = s.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
	g.surge, g.unavailable = s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable
}
