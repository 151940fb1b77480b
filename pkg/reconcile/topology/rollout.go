package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/internal/ordered"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/resource"
)

// rollout replaces the machines of a group that were made from another
// template by new ones (facts D.9).
type rollout struct {
	group group
	stay  int                      // machines that are as the manifest says
	fresh []int                    // places of those that are to be made
	old   []resource.InstanceState // those that are to go, the oldest first
}

// rolls reports whether machines that were made from another template are
// replaced: a run that neither drains nor waits leaves them as they are.
func (b *builder) rolls(g group) bool {
	return b.o.Drain && (b.o.Wait == APIServer || b.o.Wait == NodesReady) && !g.onDelete
}

// templateOf names what the machines of a group are made from: their version,
// what kubeadm is told, and what AWS cannot change once they run. What is mended
// in place is no reason to replace them.
func templateOf(g group) string {
	spec := g.spec.DeepCopy()
	spec.AdditionalTags, spec.AdditionalSecurityGroups, spec.InstanceMetadataOptions, spec.ProviderID, spec.InstanceID = nil, nil, nil, nil, nil
	var words []string
	parts := []any{spec, g.kubeadm, g.zone}
	if g.eks != nil {
		parts = append(parts, g.eks.Config, g.eks.Nodeadm)
	}
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return "" // no type of these fails
		}
		words = append(words, string(text))
	}
	words = append(words, g.version, string(g.data))
	return suffix(words...) + suffix(append(words, "")...)
}

// outdated takes the machines out of their places that were made from another
// template. A machine that does not say which was made by Cluster API, or
// before it was noted: it stays.
func (b *builder) outdated(g group, taken map[int]existing) (old []resource.InstanceState) {
	if !b.rolls(g) {
		return nil
	}
	for i, e := range taken {
		if madeFromAnother(g, e.state) {
			old = append(old, e.state)
			delete(taken, i)
		}
	}
	ordered.By(old, func(x, y resource.InstanceState) int {
		return cmp.Or(x.LaunchedAt.Compare(y.LaunchedAt), cmp.Compare(x.Tags[cloud.NodeTag], y.Tags[cloud.NodeTag]))
	})
	return old
}

func madeFromAnother(g group, m resource.InstanceState) bool {
	have := m.Tags[cloud.TemplateTag]
	return have != "" && have != templateOf(g)
}

// places chooses the places of a group's machines: those that are taken, as
// many as there are to be, and the lowest that are free for the rest.
func places(count int, taken map[int]existing, occupied map[int]bool) (stay, fresh []int) {
	stay = slices.Sorted(maps.Keys(taken))
	stay = stay[:min(count, len(stay))]
	for i := 0; len(stay)+len(fresh) < count; i++ {
		if _, ok := taken[i]; !ok && !occupied[i] {
			fresh = append(fresh, i)
		}
	}
	return stay, fresh
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
// goes has left, each one that goes for one that has come. It returns the
// machines it makes, and all that happens.
func (b *builder) roll(r rollout, after []graph.Node) (made []*graph.Ref[resource.InstanceState], all []graph.Node) {
	surge, unavailable := r.group.limits()
	var here, gone []graph.Node
	for _, x := range moves(r.group.count, r.stay, len(r.fresh), len(r.old), surge, unavailable) {
		if x.comes {
			m := b.rolledIn(r.group, r.fresh[x.n], append(slices.Clone(after), nth(gone, x.after)...))
			made, here = append(made, m.Node), append(here, b.arrival(r.group, m))
			continue
		}
		gone = append(gone, b.rolledOut(r.group, r.old[x.n], append(slices.Clone(after), nth(here, x.after)...)))
	}
	return made, append(here, gone...)
}

// nth is the n-th of the nodes, counted from 1; none for 0.
func nth(nodes []graph.Node, n int) []graph.Node {
	if n == 0 {
		return nil
	}
	return nodes[n-1 : n]
}

// rolledIn adds a machine that takes the place of another.
func (b *builder) rolledIn(g group, i int, after []graph.Node) Machine {
	m := Machine{g.name, g.controlPlane, external(g), b.machine(g, i, existing{}, false, graph.Awaits(after...)...)}
	b.made = append(b.made, m)
	return m
}

// arrival adds what has to have come of a new machine before an old one may go,
// and returns the last of it.
func (b *builder) arrival(g group, m Machine) graph.Node {
	var needs []graph.Edge
	if g.controlPlane {
		needs = b.atBalancers("/"+m.place(), resource.Targets{
			Instances: []*graph.Ref[resource.InstanceState]{m.Node}, Shared: true, Healthy: true,
		}, graph.From(g.origin))
	}
	return graph.Expect(b.Graph, nodeID(m), &resource.Node{
		API: b.api, Server: b.server, Machine: m.Node, Ready: !g.controlPlane || b.o.Wait == NodesReady, External: m.External, Parts: g.controlPlane,
	}, graph.From(g.origin), graph.With(needs))
}

// rolledOut adds how a machine goes that has been replaced.
func (b *builder) rolledOut(g group, m resource.InstanceState, after []graph.Node) graph.Node {
	edges := graph.Awaits(after...)
	if g.controlPlane {
		edges = append(edges, b.atBalancers("/without/"+m.ID, resource.Targets{Shared: true, Gone: []string{m.ID}},
			graph.From(g.origin), graph.With(graph.Awaits(after...)))...)
	}
	return b.leave(m, edges, fmt.Sprintf("%s: made from another template", g.origin))
}

// rollWorkers replaces workers, group by group at the same time, when the
// control plane and what it runs are as wanted: no kubelet may be newer than
// the API server.
func (b *builder) rollWorkers(after []graph.Node) {
	for _, r := range b.rollouts {
		if !r.group.controlPlane {
			b.roll(r, after)
		}
	}
}

// strategy notes how the machines of a MachineDeployment are replaced.
func (g *group) strategy(d *clusterv1.MachineDeployment) {
	s := d.Spec.Rollout.Strategy
	g.onDelete = s.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
	g.surge, g.unavailable = s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable
}
