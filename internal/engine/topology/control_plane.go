package topology

import (
	"cmp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addRegistration registers the machines of the control plane with its load
// balancers, except for those of a rollout, which register themselves. It also
// marks the machine that initializes the control plane.
func addRegistration(g *graph.Graph, in inputs, lbs loadBalancers, plan machinePlan, machines []Machine) []graph.Resource {
	var all, steady []*graph.Ref[ec2.InstanceState]
	for _, m := range machines {
		if m.ControlPlane {
			all = append(all, m.Instance)
			if !m.rolls {
				steady = append(steady, m.Instance)
			}
		}
	}
	addInitMarker(g, in, lbs.endpoint, all)
	leaves := plan.shrinksControlPlane()
	for _, m := range in.inv.Terminating {
		if leaves && m.Tags[cloud.RoleTag] == RoleControlPlane {
			unregister(g, lbs, m, nil, "being terminated", "")
		}
	}
	if leaves && len(steady) == 0 {
		return nil
	}
	return lbs.register(g, "", elb.Targets{Instances: steady, Shared: leaves}, in.infra("spec.controlPlaneLoadBalancer"))
}

// addLiving registers the machines that are there already if none is registered. Machines that join or leave wait for the API server, which
// answers only through the load balancer.
func addLiving(g *graph.Graph, in inputs, lbs loadBalancers, planned machinePlan) []graph.Resource {
	living := in.runningControlPlane()
	if len(living) == 0 || len(living) == planned.controlPlanes() && !planned.shrinksControlPlane() {
		return nil
	}
	return lbs.register(g, "/living", elb.Targets{Shared: true, Living: living}, in.infra("spec.controlPlaneLoadBalancer"))
}

// runningControlPlane lists the machines of the control plane that a load balancer accepts.
func (in inputs) runningControlPlane() (ids []string) {
	for _, m := range in.inv.Machines {
		if isControlPlane(m) && m.IsRunning() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// DefaultDomain is the domain of Services of kubeadm (ClusterConfiguration, networking).
const DefaultDomain = "cluster.local"

// addInitMarker adds the init marker, which records the machine that runs kubeadm init:
// the first one.
func addInitMarker(g *graph.Graph, in inputs, endpoint bootdata.Endpoint, machines []*graph.Ref[ec2.InstanceState]) {
	if len(machines) == 0 {
		return
	}
	network := in.m.Object.Spec.ClusterNetwork
	marker := &secrets.InitMarker{Cluster: in.m.Name, Machine: machines[0], Network: secrets.ClusterNetwork{
		Pods:     strings.Join(network.Pods.CIDRBlocks, ","),
		Services: strings.Join(rules.Services(in.m), ","),
		Domain:   cmp.Or(network.ServiceDomain, DefaultDomain),
	}, Endpoint: endpoint, After: endpoint.Needs()}
	if in.beginsNewEtcd() {
		marker.Replaces = in.inv.InitMachine
	}
	graph.Add(g, secrets.InitMarkerKind, marker, graph.From(in.m.Origin("Cluster/"+in.m.Name, "spec.clusterNetwork")), graph.DeletedAfter(isMachine))
}

// addDeletionProtection creates or deletes the deletion protection, as the annotation says. Without the
// annotation, the protection stays as it is.
func addDeletionProtection(g *graph.Graph, in inputs) {
	on, id := in.m.DeletionProtection, plan.ID(secrets.DeletionProtectionKind)
	if on == nil {
		return
	}
	from := graph.From(in.m.Origin(in.m.InfraObject(), manifest.AnnotationPath(manifest.AnnotationDeletionProtection)))
	desired := &secrets.DeletionProtection{Tags: in.tags(id, in.m.Name+"-deletion-protection", roleCommon)}
	if *on {
		graph.Add(g, id, desired, from)
	} else {
		graph.Retire(g, id, desired, from)
	}
}

// controlPlane is the result of the rollouts of the control plane.
type controlPlane struct {
	launched []Machine
	settled  []graph.Resource // registrations and Nodes
	last     []graph.Resource // the rollouts of workers wait for these
}

// rollControlPlane replaces the outdated machines of the control plane, one group after
// the other. Each stand-alone Machine is its own group. etcd is what new machines wait for.
func rollControlPlane(
	g *graph.Graph,
	in inputs,
	p platform,
	lbs loadBalancers,
	k kubernetes,
	plan machinePlan,
	machines []Machine,
	etcd []graph.Resource,
) (out controlPlane, err error) {
	for _, x := range plan.groups {
		if !x.controlPlane || !x.rolls() {
			continue
		}
		after := slices.Concat(out.last, etcd)
		if k.config != nil { // machines that join read it
			after = append([]graph.Resource{k.config}, after...)
		}
		r, err := addRollout(g, in, p, lbs, k, plan, x, machines, after)
		if err != nil {
			return out, err
		}
		out.launched, out.settled, out.last = append(out.launched, r.launched...), append(out.settled, r.settled...), append(out.last, r.all...)
	}
	if !slices.ContainsFunc(machines, func(m Machine) bool { return m.ControlPlane }) {
		var instances []*graph.Ref[ec2.InstanceState]
		for _, m := range out.launched {
			instances = append(instances, m.Instance)
		}
		addInitMarker(g, in, lbs.endpoint, instances)
	}
	return out, nil
}
