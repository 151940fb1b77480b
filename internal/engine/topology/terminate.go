package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// terminateMachines terminates unhealthy workers, and the machines that are not desired any
// more: too many in their group, without a group in the manifest, or a bastion that was
// switched off. The latter are terminated after the other machines are settled; those of the
// control plane one after the other, after they are deregistered from the load balancers. settled are the
// registrations and Nodes of the control plane.
func terminateMachines(g *graph.Graph, in inputs, lbs loadBalancers, k kubernetes, plan machinePlan, machines []Machine, settled []graph.Resource) {
	var stay []graph.Resource
	for _, m := range machines {
		stay = append(stay, m.Instance)
	}
	for _, x := range plan.groups {
		for i, m := range x.unhealthy {
			if !x.controlPlane {
				terminate(g, in, k, plan, m, nil, in.replacement(x, m, len(x.outdated)+i))
			}
		}
	}
	why := reason{text: "no longer in the manifest"}
	pods := runPods(g)
	for _, m := range plan.leaving {
		switch {
		case m.Tags[cloud.RoleTag] == RoleNode && !in.hasGroup(m): // its group is gone, or has another name
			terminate(g, in, k, plan, m, pods, why)
			continue
		case m.Tags[cloud.RoleTag] != RoleControlPlane:
			terminate(g, in, k, plan, m, graph.Awaits(stay...), why)
			continue
		}
		after := slices.Concat(stay, settled)
		after = slices.Concat(after, unregister(g, lbs, m, after, why.text, terminationOf(m)))
		settled = append(settled, terminate(g, in, k, plan, m, graph.Awaits(after...), why))
	}
	if k.api != nil && in.o.Drain && in.initialized() {
		graph.Retire(g, "node-objects", &incluster.NodeObjects{API: k.api, Server: k.server}, graph.From("no longer has a machine"))
	}
}

// drains reports whether the Node of a machine is drained before the machine is
// terminated.
func (in inputs) drains(m ec2.InstanceState) bool {
	role := m.Tags[cloud.RoleTag]
	return in.o.Drain && in.initialized() && (role == RoleControlPlane || role == RoleNode)
}

// reason says why a machine is terminated.
type reason struct {
	text       string
	changes    []plan.Change // of its settings
	replacedBy plan.ID       // the machine that takes its place; "": none
	stays      string        // why the run may not terminate it; "" if it may
}

// replacement says why an unhealthy or outdated machine is terminated, and which machine takes
// its place: the n-th of those that are launched.
func (in inputs) replacement(x groupPlan, m ec2.InstanceState, n int) reason {
	why := reason{text: x.origin + ": " + cmp.Or(in.unhealthy(m), in.outdatedBecause(x, m))}
	if n < len(x.launch) {
		why.replacedBy = x.id(x.launch[n].index)
	}
	if have := m.Tags[cloud.TemplateTag]; in.unhealthy(m) == "" && have != "" && have != x.template.digest {
		why.changes = in.templateChanges(x.template, m.Tags[cloud.TemplateFieldsTag])
	}
	if m.Stopped && x.controlPlane && in.initialized() && in.unhealthy(m) == "" {
		// etcd gets no new member while one does not answer (incluster.EtcdMembers).
		why.stays = fmt.Sprintf(
			"it is %s, and etcd gets no other member before it answers: start it with '%s'%s",
			m.Status, ec2.StartCommand("", m), ec2.IfStopped(in.needsStopped()),
		)
	}
	return why
}

// terminate adds the steps that terminate a machine: hooks, drain the Node, remove the etcd
// member, terminate the machine, delete the Node. It returns the last of them.
func terminate(g *graph.Graph, in inputs, k kubernetes, planned machinePlan, m ec2.InstanceState, after []graph.Edge, why reason) graph.Resource {
	resource, id := launchedAs(m), terminationOf(m)
	suffix, from, part := strings.TrimPrefix(string(resource), "machine/")+"/"+m.ID, graph.From(why.text), graph.PartOf(id)
	r := &ec2.Instance{Claimed: m.ID, Tags: m.Tags}
	r.Spec.InstanceType = m.Type
	if m.Tags[cloud.RoleTag] == RoleControlPlane && in.initialized() && !in.hasPlane(m) && (!in.o.Drain || !in.usesAPIServer()) {
		// With another name, the machines that stay are new. Of the same control plane, they have joined before.
		r.Stays = "a machine of the control plane leaves in a run that removes it from etcd and waits for the others: run without --wait=infrastructure and --drain=false"
	}
	r.Stays = cmp.Or(r.Stays, why.stays)
	if in.drains(m) {
		limits, annotations := in.deletion(m)
		after = addHooks(g, k, m, annotations, clusterv1.PreDrainDeleteHookAnnotationPrefix, suffix, after, why.text)
		if _, excluded := annotations[clusterv1.ExcludeNodeDrainingAnnotation]; !excluded {
			_, abandon := annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
			after = graph.Awaits(graph.Retire(g, plan.ID("drain/"+suffix), &incluster.Drain{
				API: k.api, Machine: m, Timeout: seconds(limits.NodeDrainTimeoutSeconds), Detach: seconds(limits.NodeVolumeDetachTimeoutSeconds),
				SkipDetach: abandon, After: after,
			}, from, part))
		}
		after = addHooks(g, k, m, annotations, clusterv1.PreTerminateDeleteHookAnnotationPrefix, suffix, after, why.text)
		if certificates, stacked := in.etcdCertificates(); stacked && m.Tags[cloud.RoleTag] == RoleControlPlane {
			after = graph.Awaits(graph.Retire(g, plan.ID("etcd-member/"+suffix), &incluster.EtcdMember{
				API: k.api, Machine: m, Leaving: planned.leavingControlPlane(), Certificates: certificates, After: after,
			}, from, part))
		}
	}
	terminated := graph.Retire(g, id, r, graph.With(after), from, graph.Label(resource), graph.Because(why.replacedBy, why.changes))
	if !in.drains(m) {
		return terminated
	}
	return graph.Retire(g, plan.ID("node-object/"+suffix), &incluster.NodeObjects{API: k.api, Machine: m, After: graph.Awaits(terminated)}, from, part)
}

// addHooks adds the hooks of a machine that have the prefix, if it has any.
func addHooks(
	g *graph.Graph,
	k kubernetes,
	m ec2.InstanceState,
	annotations map[string]string,
	prefix, suffix string,
	after []graph.Edge,
	why string,
) []graph.Edge {
	owners := map[string]string{}
	for name, owner := range annotations {
		if strings.HasPrefix(name, prefix) {
			owners[name] = owner
		}
	}
	if len(owners) == 0 {
		return after
	}
	phase, _, _ := strings.Cut(prefix, ".")
	return graph.Awaits(graph.Retire(g, plan.ID("hook/"+phase+"/"+suffix), &incluster.Hooks{
		API: k.api, Machine: m, Prefix: prefix, Owners: owners, After: after,
	}, graph.From(why), graph.PartOf(terminationOf(m))))
}

// launchedAs is the ID of a machine in the graph of the run that launched it.
func launchedAs(m ec2.InstanceState) plan.ID {
	return plan.ID(cmp.Or(m.Tags.Printable(cloud.ResourceTag), "machine/"+m.Tags.Printable("Name")))
}

// terminationOf is the ID of a machine that is terminated.
func terminationOf(m ec2.InstanceState) plan.ID {
	return "retired/" + launchedAs(m) + plan.ID("/"+m.ID)
}

func seconds(n *int32) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}

// isOf reports whether a machine is one of a group.
func (in inputs) isOf(m ec2.InstanceState, x group) bool {
	tag := m.Tags[cloud.ResourceTag]
	return strings.HasPrefix(tag, "machine/"+x.name+"/") || tag == "machine/"+x.name || in.machinePattern(x).MatchString(m.Tags[infrav1.MachineNameTagKey])
}

// hasPlane reports whether a machine belongs to the KubeadmControlPlane of the manifest.
func (in inputs) hasPlane(m ec2.InstanceState) bool {
	cp := in.m.ControlPlane
	return cp != nil && in.isOf(m, group{name: cp.Object.Name, controlPlane: true})
}

// hasGroup reports whether the manifest has the group of a worker.
func (in inputs) hasGroup(m ec2.InstanceState) bool {
	return slices.ContainsFunc(in.m.Deployments, func(d manifest.Deployment) bool { return in.isOf(m, group{name: d.Object.Name}) }) ||
		slices.ContainsFunc(in.m.Machines, func(x manifest.Machine) bool { return in.isOf(m, group{name: x.Object.Name}) })
}

// deletion returns the deletion settings of a machine, if its group is in the manifest:
// limits, and the annotations of its Machine.
func (in inputs) deletion(m ec2.InstanceState) (limits clusterv1.MachineDeletionSpec, annotations map[string]string) {
	of := func(x group) bool { return in.isOf(m, x) }
	if cp := in.m.ControlPlane; in.hasPlane(m) {
		d := cp.Object.Spec.MachineTemplate.Spec.Deletion
		limits.NodeDrainTimeoutSeconds, limits.NodeVolumeDetachTimeoutSeconds = d.NodeDrainTimeoutSeconds, d.NodeVolumeDetachTimeoutSeconds
		annotations = cp.Object.Spec.MachineTemplate.ObjectMeta.Annotations
	}
	for _, d := range in.m.Deployments {
		if of(group{name: d.Object.Name}) {
			limits, annotations = d.Object.Spec.Template.Spec.Deletion, d.Object.Spec.Template.Annotations
		}
	}
	for _, x := range in.m.Machines {
		if of(group{name: x.Object.Name}) {
			limits, annotations = x.Object.Spec.Deletion, x.Object.Annotations
		}
	}
	return limits, annotations
}
