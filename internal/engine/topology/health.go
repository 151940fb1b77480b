package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Health is the result of the MachineHealthChecks of the manifest.
type Health struct {
	Unhealthy map[string]string // IDs of machines that are to be replaced, and why
	Remarks   []string          // about unhealthy machines that are not replaced
}

// CheckHealth evaluates the MachineHealthChecks of the manifest once, as Cluster API's
// controllers do all the time. nodes are the Nodes of the cluster.
func CheckHealth(m *manifest.Cluster, inv Inventory, nodes *incluster.NodeList, o Options) Health {
	in := inputs{m: m, spec: &m.Infra.Spec, inv: inv, o: o}
	h := Health{Unhealthy: map[string]string{}}
	first := nodes.First()
	if first.IsZero() { // the control plane is not initialized yet
		return h
	}
	all, groups := m.MachineLabels(), in.groupsOfMachines(nil)
	for _, c := range m.HealthChecks {
		selector, err := metav1.LabelSelectorAsSelector(&c.Spec.Selector)
		if err != nil {
			continue // the manifest has been validated
		}
		check := healthCheck{in: in, spec: &c.Spec, name: "MachineHealthCheck/" + c.Name, nodes: nodes, first: first}
		for _, g := range groups {
			if selector.Matches(labels.Set(all[g.name])) {
				check.groups = append(check.groups, checkedGroup{g, in.checkedMachines(g)})
			}
		}
		check.evaluate(&h)
	}
	return h
}

// AddReused adds machines that have the address of a lost machine and cannot join with it: those that have
// the Node of the lost one, and say why in reused; and those of the control plane on which kubeadm join has
// failed after it had added a member to etcd.
func (h *Health) AddReused(m *manifest.Cluster, inv Inventory, nodes *incluster.NodeList, reused map[string]string, o Options) {
	in := inputs{m: m, spec: &m.Infra.Spec, inv: inv, o: o}
	for _, g := range in.groupsOfMachines(nil) {
		var chosen []ec2.InstanceState
		others, ready := 0, 0
		why := map[string]string{}
		for _, x := range in.checkedMachines(g) {
			node := nodes.Of(x)
			why[x.ID] = reused[x.ID]
			if g.controlPlane && node == nil && x.Tags[cloud.JoinFailedTag] != "" {
				why[x.ID] = cmp.Or(why[x.ID], "kubeadm join has failed on it as a member of etcd")
			}
			switch {
			case why[x.ID] != "":
				chosen = append(chosen, x)
			case node != nil && node.Ready:
				others, ready = others+1, ready+1
			default:
				others++
			}
		}
		for _, x := range chosen {
			switch {
			case g.controlPlane && ready < plan.Quorum(others):
				h.Remarks = append(
					h.Remarks,
					fmt.Sprintf(
						"%s: %s; it is not replaced, because etcd may need it: delete that Node with kubectl, and reboot the machine, whose kubelet then registers its own",
						x.ID,
						why[x.ID],
					),
				)
				continue
			case g.single:
				h.Remarks = append(
					h.Remarks,
					fmt.Sprintf("%s: %s; nothing replaces a stand-alone Machine: terminate it, and the next run launches another one", x.ID, why[x.ID]),
				)
				continue
			}
			h.Unhealthy[x.ID] = cmp.Or(h.Unhealthy[x.ID], why[x.ID])
		}
	}
}

// healthCheck is one MachineHealthCheck and the groups that it selects.
type healthCheck struct {
	in     inputs
	spec   *clusterv1.MachineHealthCheckSpec
	name   string
	groups []checkedGroup
	nodes  *incluster.NodeList
	first  time.Time // when the oldest Node was created: before, no machine could join
}

// checkedGroup is a group and its machines that a check applies to, the oldest first.
type checkedGroup struct {
	group
	machines []ec2.InstanceState
}

// evaluate adds the machines that are to be replaced. As in Cluster API, machines that are
// not healthy yet count as unhealthy for maxUnhealthy, and so do machines that are missing.
func (c healthCheck) evaluate(h *Health) {
	expected, healthy := 0, 0
	unhealthy := map[string]string{}
	for _, g := range c.groups {
		expected += max(g.count, len(g.machines))
		for _, m := range g.machines {
			why, pending := c.unhealthy(m)
			switch {
			case why != "":
				unhealthy[m.ID] = why
			case !pending:
				healthy++
			}
		}
	}
	if len(unhealthy) == 0 {
		return
	}
	if why := c.forbids(expected-healthy, expected); why != "" {
		h.Remarks = append(
			h.Remarks,
			fmt.Sprintf("%s: %s: unhealthy machines are not replaced (%s)", c.name, why, strings.Join(slices.Sorted(maps.Keys(unhealthy)), ", ")),
		)
		return
	}
	for _, g := range c.groups {
		chosen, why := c.choose(g, unhealthy)
		for _, m := range chosen {
			h.Unhealthy[m.ID] = fmt.Sprintf("%s (%s)", unhealthy[m.ID], c.name)
		}
		if why != "" {
			h.Remarks = append(h.Remarks, fmt.Sprintf("%s: %s: %s", c.name, g.origin, why))
		}
	}
}

// checkedMachines lists the machines of a group that checks apply to, the oldest first.
func (in inputs) checkedMachines(g group) (out []ec2.InstanceState) {
	for _, e := range in.assign(g) {
		_, annotations := in.deletion(e.state)
		if _, skip := annotations[clusterv1.MachineSkipRemediationAnnotation]; !skip {
			out = append(out, e.state)
		}
	}
	slices.SortFunc(out, func(x, y ec2.InstanceState) int {
		return cmp.Or(x.LaunchedAt.Compare(y.LaunchedAt), cmp.Compare(x.ID, y.ID))
	})
	return out
}

// unhealthy returns the reason if a machine is unhealthy, otherwise "". If pending is true, the
// machine becomes unhealthy when a timeout ends.
func (c healthCheck) unhealthy(m ec2.InstanceState) (why string, pending bool) {
	now := c.in.inv.Now
	node := c.nodes.Of(m)
	if node == nil {
		limit := seconds(c.spec.Checks.NodeStartupTimeoutSeconds)
		since := m.LaunchedAt
		if c.first.After(since) {
			since = c.first
		}
		if limit == 0 || !since.Add(limit).Before(now) {
			return "", true
		}
		return fmt.Sprintf("unhealthy: it is no Node after %s", limit), false
	}
	for _, x := range c.spec.Checks.UnhealthyNodeConditions {
		at := slices.IndexFunc(node.Conditions, func(have corev1.NodeCondition) bool { return have.Type == x.Type })
		if at < 0 || node.Conditions[at].Status != x.Status {
			continue
		}
		if node.Conditions[at].LastTransitionTime.Add(seconds(x.TimeoutSeconds)).Before(now) {
			return fmt.Sprintf("unhealthy: the condition %s of its Node has been %s for more than %s", x.Type, x.Status, seconds(x.TimeoutSeconds)), false
		}
		pending = true
	}
	return "", pending
}

// forbids returns the reason if the number of unhealthy machines does not permit to replace
// any of them, otherwise "".
func (c healthCheck) forbids(unhealthy, expected int) string {
	trigger := c.spec.Remediation.TriggerIf
	if trigger.UnhealthyInRange != "" {
		least, most, err := manifest.UnhealthyRange(trigger.UnhealthyInRange)
		if err != nil || unhealthy < least || unhealthy > most {
			return fmt.Sprintf("%d of %s unhealthy, which is outside of unhealthyInRange %s", unhealthy, areMachines(expected), trigger.UnhealthyInRange)
		}
		return ""
	}
	most := trigger.UnhealthyLessThanOrEqualTo
	if most == nil {
		return ""
	}
	if n, err := intstr.GetScaledValueFromIntOrPercent(most, expected, false); err != nil || unhealthy > n {
		return fmt.Sprintf("%d of %s unhealthy, which is more than unhealthyLessThanOrEqualTo %s", unhealthy, areMachines(expected), most)
	}
	return ""
}

// choose returns the unhealthy machines of a group that this run replaces, and why it does
// not replace the others.
func (c healthCheck) choose(g checkedGroup, unhealthy map[string]string) (chosen []ec2.InstanceState, why string) {
	for _, m := range g.machines {
		if unhealthy[m.ID] != "" {
			chosen = append(chosen, m)
		}
	}
	switch {
	case len(chosen) == 0:
		return nil, ""
	case g.single:
		return nil, chosen[0].ID + " is unhealthy, but nothing replaces a stand-alone Machine: terminate it, and the next run launches another one"
	case !g.controlPlane:
		if len(chosen) > g.inFlight {
			return chosen[:g.inFlight], fmt.Sprintf("%s unhealthy; by remediation.maxInFlight, this run replaces %d", areMachines(len(chosen)), g.inFlight)
		}
		return chosen, ""
	}
	return c.chooseControlPlane(g.machines, chosen)
}

// chooseControlPlane returns at most one of the unhealthy machines of the control plane, as the
// KubeadmControlPlane controller does. It returns none if etcd would lose its quorum without
// that machine.
func (c healthCheck) chooseControlPlane(all, unhealthy []ec2.InstanceState) (chosen []ec2.InstanceState, why string) {
	ready := 0
	for _, m := range all {
		if node := c.nodes.Of(m); m.ID != unhealthy[0].ID && node != nil && node.Ready {
			ready++
		}
	}
	others := len(all) - 1
	_, stacked := c.in.etcdCertificates()
	switch {
	case others == 0:
		return nil, unhealthy[0].ID + " is unhealthy, but it is the only machine of the control plane"
	case stacked && ready < plan.Quorum(others):
		return nil, fmt.Sprintf(
			"%s is unhealthy, but of the %d other machines of the control plane only %d have a ready Node: without it, etcd would have no quorum",
			unhealthy[0].ID,
			others,
			ready,
		)
	case len(unhealthy) > 1:
		why = fmt.Sprintf("%s unhealthy; this run replaces %s", areMachines(len(unhealthy)), unhealthy[0].ID)
	}
	return unhealthy[:1], why
}

// unhealthy says why a machine is to be replaced by a MachineHealthCheck; "" if it is not.
func (in inputs) unhealthy(m ec2.InstanceState) string {
	if !in.o.Drain || !in.usesAPIServer() {
		return ""
	}
	if in.hasLostCluster(m) {
		return "it belongs to a cluster whose etcd is lost"
	}
	return in.inv.Unhealthy[m.ID]
}

// removeUnhealthy terminates the unhealthy machines of the control plane before others are
// launched: etcd adds no member while another one does not respond. It returns the last
// resources.
func removeUnhealthy(g *graph.Graph, in inputs, lbs loadBalancers, k kubernetes, plan machinePlan) (gone []graph.Resource) {
	for _, x := range plan.groups {
		if !x.controlPlane {
			continue
		}
		for i, m := range x.unhealthy {
			why := in.replacement(x, m, len(x.outdated)+i)
			after := slices.Concat(gone, unregister(g, lbs, m, gone, why.text, terminationOf(m)))
			gone = append(gone, terminate(g, in, k, plan, m, graph.Awaits(after...), why))
		}
	}
	return gone
}
