package topology

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// limits returns how many machines more and fewer than desired a group may have during a
// rollout.
func (g group) limits() (surge, unavailable int) {
	number := func(v *intstr.IntOrString, otherwise int, up bool) int {
		if v == nil {
			return otherwise
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(v, g.count, up)
		if err != nil {
			return otherwise // the value has been validated
		}
		return n
	}
	surge, unavailable = number(g.surge, 1, true), number(g.unavailable, 0, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// move is one step of a rollout: a new machine joins, or an old one leaves.
type move struct {
	joins bool
	n     int // of its kind, counted from 0
	after int // number of moves of the other kind that have to be finished before
}

// moves orders a rollout so that there are never more machines than wanted plus surge,
// nor fewer ready ones than wanted minus unavailable.
func moves(wanted, stay, fresh, old, surge, unavailable int) (out []move) {
	for joined, left := 0, 0; joined < fresh || left < old; {
		room := stay + joined + 1 + old - wanted - surge // machines that have to leave before another one joins
		if joined < fresh && room <= left {
			out = append(out, move{true, joined, max(0, room)})
			joined++
			continue
		}
		need := wanted - unavailable - stay - old + left + 1 // machines that have to join before another one leaves
		out = append(out, move{false, left, min(max(0, need), fresh)})
		left++
	}
	return out
}

// rollout are the resources that a rollout adds.
type rollout struct {
	launched []Machine
	settled  []graph.Resource // registrations with load balancers, and Nodes
	all      []graph.Resource // the last resource of each machine
}

// addRollout replaces the outdated machines of a group with new ones. Each new machine
// waits until an old one has left, and each old one until a new one has joined, including
// those that an earlier run has launched. A control plane grows only when all of it is
// healthy.
func addRollout(
	g *graph.Graph,
	in inputs,
	p platform,
	lbs loadBalancers,
	k kubernetes,
	plan machinePlan,
	x groupPlan,
	machines []Machine,
	after []graph.Resource,
) (out rollout, err error) {
	joined := func(m Machine) graph.Resource {
		settled := addJoined(g, in, lbs, k, x, m)
		out.settled = append(out.settled, settled...)
		return settled[len(settled)-1]
	}
	var stay, joins, leaves []graph.Resource
	for _, m := range machines {
		if m.rolls && m.Group == x.name && m.ControlPlane == x.controlPlane {
			stay = append(stay, joined(m))
		}
	}
	mayLeave, mayLaunch := slices.Concat(after, stay), after
	if x.controlPlane {
		mayLaunch = mayLeave
	}
	surge, unavailable := x.limits()
	for _, step := range moves(x.count, len(x.stay), len(x.launch), len(x.outdated), surge, unavailable) {
		if step.joins {
			m, err := addMachine(g, in, p, x, x.launch[step.n], graph.Awaits(slices.Concat(mayLaunch, resourceAt(leaves, step.after))...))
			if err != nil {
				return out, err
			}
			out.launched, joins = append(out.launched, m), append(joins, joined(m))
			continue
		}
		m, after := x.outdated[step.n], slices.Concat(mayLeave, resourceAt(joins, step.after))
		if x.controlPlane {
			unregistered := unregister(g, lbs, m, after, x.origin, terminationOf(m))
			out.settled, after = append(out.settled, unregistered...), append(after, unregistered...)
		}
		leaves = append(leaves, terminate(g, in, k, plan, m, graph.Awaits(after...), in.replacement(x, m, step.n)))
	}
	out.all = slices.Concat(stay, joins, leaves)
	return out, nil
}

// resourceAt returns the n-th of the resources, counted from 1; none for 0.
func resourceAt(all []graph.Resource, n int) []graph.Resource {
	if n == 0 {
		return nil
	}
	return all[n-1 : n]
}

// addJoined adds the resources that have to be settled before an old machine may leave:
// the Node of the new one, which is the last of them, and its registration with the load
// balancers.
func addJoined(g *graph.Graph, in inputs, lbs loadBalancers, k kubernetes, x groupPlan, m Machine) []graph.Resource {
	if !x.controlPlane {
		return []graph.Resource{addNode(g, in, k, m, nil)}
	}
	registered := lbs.register(g, "/"+m.place(), elb.Targets{
		Instances: []*graph.Ref[ec2.InstanceState]{m.Instance}, Shared: true, Healthy: true,
	}, graph.From(x.origin))
	return append(registered, addNode(g, in, k, m, graph.Awaits(registered...)))
}

// unregister deregisters a machine from the load balancers. partOf is its termination, if the run
// terminates it.
func unregister(g *graph.Graph, lbs loadBalancers, m ec2.InstanceState, after []graph.Resource, origin string, partOf plan.ID) []graph.Resource {
	return lbs.register(
		g, "/without/"+m.ID, elb.Targets{Shared: true, Removed: []string{m.ID}}, graph.From(origin), graph.With(graph.Awaits(after...)), graph.PartOf(partOf),
	)
}

// rollWorkers replaces outdated workers, all groups at the same time, after the control
// plane and the system add-ons are settled: a kubelet may not be newer than the API
// server.
func rollWorkers(
	g *graph.Graph,
	in inputs,
	p platform,
	lbs loadBalancers,
	k kubernetes,
	plan machinePlan,
	machines []Machine,
	after []graph.Resource,
) (launched []Machine, err error) {
	for _, x := range plan.groups {
		if x.controlPlane || !x.rolls() {
			continue
		}
		r, err := addRollout(g, in, p, lbs, k, plan, x, machines, after)
		if err != nil {
			return nil, err
		}
		launched = append(launched, r.launched...)
	}
	return launched, nil
}
