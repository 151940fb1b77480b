package topology

import (
	"fmt"
	"maps"
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// platform has the resources that machines and pools are launched with.
type platform struct {
	net    network
	groups securityGroups
	boot   bootSources
	eks    *graph.Ref[eks.ClusterState] // nil except on EKS
	// podNetwork is what machines and pools of an EKS cluster wait for before they start.
	podNetwork []graph.Edge
}

// addMachines adds all machines and pools, and their Kubernetes resources: the API server
// and the Nodes.
func addMachines(
	g *graph.Graph,
	in inputs,
	p platform,
	lbs loadBalancers,
	k kubernetes,
	plan machinePlan,
	mappings []incluster.Mapping,
) (all []Machine, remarks []string, err error) {
	p.boot.token = addJoinToken(g, in, p.boot, k.api, plan)
	lbs.living = addLiving(g, in, lbs, plan)
	etcd := addEtcdMembers(g, in, k.api, plan, removeUnhealthy(g, in, lbs, kubernetes{api: k.api}, plan))
	etcd = append(etcd, addNewEtcd(g, in)...)
	for _, x := range plan.groups {
		machines, err := addGroup(g, in, p, x, etcd)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, machines...)
	}
	registered := addRegistration(g, in, lbs, plan, all)
	k, remarks = addKubernetes(g, in, k, plan, all, slices.Concat(lbs.listeners, registered), etcd, mappings)
	control, err := rollControlPlane(g, in, p, lbs, k, plan, all, etcd)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, control.launched...)
	images := addSystemImages(g, in, k, control.last)
	pools, more, err := addPools(g, in, p, k.api, plan, control.last)
	if err != nil {
		return nil, nil, err
	}
	remarks = append(more, remarks...)
	addPoolNodes(g, in, k, pools)
	workers, err := rollWorkers(g, in, p, lbs, k, plan, all, slices.Concat(control.last, images))
	if err != nil {
		return nil, nil, err
	}
	all = append(all, workers...)
	if remark := in.labelRemark(all); remark != "" {
		remarks = append(remarks, remark)
	}
	terminateMachines(g, in, lbs, k, plan, all, slices.Concat(registered, k.controlPlaneNodes, control.settled))
	addWorkloads(g, in, k)
	finishRestore(g, p.boot.restore, k)
	retireNodeGroups(g, in, p.eks)
	retirePools(g, in, p.boot.bucket)
	deleteBootData(g, in, p.boot, plan, all)
	deleteUnusedBootData(g, in, p.boot, plan, all, pools)
	return all, remarks, nil
}

// addGroup adds the machines of a group, except for those that a rollout launches. etcd is what new
// machines of the control plane wait for.
func addGroup(g *graph.Graph, in inputs, p platform, x groupPlan, etcd []graph.Resource) (out []Machine, err error) {
	add := func(at place, after []graph.Edge) error {
		m, err := addMachine(g, in, p, x, at, after)
		out = append(out, m)
		return err
	}
	for _, at := range x.stay {
		if err := add(at, nil); err != nil {
			return nil, err
		}
	}
	if x.rolls() {
		return out, nil
	}
	var after []graph.Edge
	if x.controlPlane {
		after = graph.Awaits(etcd...)
	}
	for _, at := range x.launch {
		if err := add(at, after); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addMachine adds one machine. An existing machine keeps its zone.
func addMachine(g *graph.Graph, in inputs, p platform, x groupPlan, at place, after []graph.Edge) (out Machine, err error) {
	id, zone := x.id(at.index), x.zone
	switch {
	case at.exists() && zone == "":
		zone = at.existing.state.Zone
	case zone == "" && x.controlPlane && x.count > 1:
		zone = in.spread(p.net, x.group, at.index)
	}
	r := newInstance(g, in, p, x, at)
	if r.Subnet, r.Pinned, err = machineSubnet(g, in, p.net, x.group, zone, at.exists()); err != nil {
		return out, err
	}
	if !at.exists() {
		if err := in.misplaced(p.net, x.group, in.placed(p.net, x.group, r.Subnet, zone)); err != nil {
			return out, err
		}
		if r.Image, err = addImage(g, in, x.group, nil); err != nil {
			return out, err
		}
		r.Type = in.inv.Types[x.spec.InstanceType]
		data := p.boot.recorded(in.bootData(p.boot, x.group, id, x.instanceName(at.index), x.role(at)))
		data.Waits = in.bootsBesideGateways(p.net, x.group, r.Subnet)
		r.Boot = data
		if in.renewsToken(x.group) {
			r.Tags = r.Tags.With(cloud.Tags{tokenTag: "true"})
		}
		r.Needed = slices.Concat(
			addKeyPair(g, in, x.group, r.Key, nil),
			addProfile(g, in, x.group, x.spec.IAMInstanceProfile, nil),
			addPlacementGroup(g, in, x.group),
		)
		switch egress := p.net.egress(r.Subnet); {
		case data.Waits:
			out.routes = egress
		default:
			r.Needed = append(r.Needed, egress...)
		}
	}
	out.Group, out.name, out.ControlPlane, out.External = x.name, x.instanceName(at.index), x.controlPlane, x.externalCloudProvider()
	out.labels, out.rolls, out.replaceable = x.labels, x.rolls(), !x.controlPlane && in.replacesOutdated(x.group)
	out.Instance = graph.Add(g, id, r, graph.From(x.origin), graph.With(after, p.podNetwork))
	return out, nil
}

// bootsBesideGateways reports whether the machines of a group are launched without
// waiting for the NAT gateway of their subnet: their boot script waits for it
// (docs/adr/0023-boot-beside-nat-gateways.md). Only the script that fetches boot data
// with the AWS CLI does, and machines of EKS wait longer for their cluster.
func (in inputs) bootsBesideGateways(net network, x group, subnet *graph.Ref[ec2.SubnetState]) bool {
	backend := backendOf(x)
	return !in.o.NetworkFirst && in.m.EKS == nil && (backend == boot.SecretsManager || backend == boot.ParameterStore) && net.of(subnet).nat
}

// ownTags are the tags that differ between the machines of a group.
func (in inputs) ownTags(g group, at place) cloud.Tags {
	name, machine := g.instanceName(at.index), g.machineName(at.index)
	if at.existing.name != "" {
		name = at.existing.name
	}
	if at.existing.machine != "" {
		machine = at.existing.machine
	}
	if given, ok := in.machineTags(g.roleTag(), g.spec.AdditionalTags)["Name"]; ok {
		name = given
	}
	return cloud.Tags{"Name": name, infrav1.MachineNameTagKey: in.m.Namespace + "/" + machine, cloud.ResourceTag: string(g.id(at.index))}
}

// newInstance returns a machine without its subnet and boot data.
func newInstance(g *graph.Graph, in inputs, p platform, x groupPlan, at place) *ec2.Instance {
	own := in.ownTags(x.group, at)
	r := &ec2.Instance{
		Spec: x.spec, Key: in.keyName(x.spec.SSHKeyName), Tags: in.machineTags(x.roleTag(), x.spec.AdditionalTags).With(own), Batch: own,
		Claimed: at.existing.claimed, Adopt: in.o.Adopt,
	}
	if !at.exists() || at.existing.state.Tags[cloud.TemplateTag] != "" || in.usesAPIServer() { // otherwise the run cannot check the tag with the API server
		r.Tags[cloud.TemplateTag] = x.template.digest
	}
	if !at.exists() || at.existing.state.Tags[cloud.TemplateFieldsTag] != "" {
		r.Tags[cloud.TemplateFieldsTag] = encodeFields(x.template.fields)
	}
	r.Irreplaceable = x.controlPlane && at.existing.state.Stopped && in.needsStopped()
	r.Outdated = x.onDelete && in.outdatedBecause(x, at.existing.state) != ""
	r.Groups, r.EKS = machineSecurityGroups(g, in, p, x.group)
	return r
}

// roleTag is the value of the role tag of the group's machines.
func (g group) roleTag() string {
	if g.controlPlane {
		return RoleControlPlane
	}
	return RoleNode
}

// externalCloudProvider reports whether a cloud controller manager sets the provider IDs
// of the Nodes of a group, and not the kubelet.
func (g group) externalCloudProvider() bool {
	return g.kubeadm != nil && manifest.ExternalCloudProvider(g.kubeadm)
}

// machineSecurityGroups returns the security groups of machines, and the EKS cluster
// whose own group they also use.
func machineSecurityGroups(g *graph.Graph, in inputs, p platform, x group) (groups []*graph.Ref[ec2.SecurityGroupState], cluster graph.Resource) {
	roles := []infrav1.SecurityGroupRole{infrav1.SecurityGroupNode, infrav1.SecurityGroupLB}
	switch {
	case in.m.External:
		roles = nil
	case in.m.EKS != nil && x.spec.SecurityGroupOverrides[infrav1.SecurityGroupNode] == "":
		roles, cluster = []infrav1.SecurityGroupRole{infrav1.SecurityGroupEKSNodeAdditional}, p.eks
	case in.m.EKS != nil:
		roles = []infrav1.SecurityGroupRole{infrav1.SecurityGroupNode, infrav1.SecurityGroupEKSNodeAdditional}
	case x.controlPlane:
		roles = append(roles, infrav1.SecurityGroupControlPlane)
	}
	for _, role := range roles {
		group := p.groups[role]
		if given := x.spec.SecurityGroupOverrides[role]; given != "" {
			group = lookupInVPC(g, in, p.net.vpc, plan.ID("security-group/"+given), ec2.SecurityGroupByID(p.net.vpc, given), x.specAt, "spec")
		}
		groups = append(groups, group)
	}
	for n, given := range x.spec.AdditionalSecurityGroups {
		if given.ID != nil {
			continue
		}
		created := p.groups.matching(given.Filters)
		id := plan.ID(fmt.Sprintf("security-group/of/%s/%d", x.name, n))
		groups = append(
			groups,
			lookupInVPC(g, in, p.net.vpc, id, ec2.SecurityGroupsByFilters(p.net.vpc, filterMap(given.Filters), len(created) > 0), x.specAt, "spec"),
		)
		groups = append(groups, created...)
	}
	return groups, cluster
}

// matching returns the groups that this program creates and that match EC2 filters.
func (s securityGroups) matching(filters []infrav1.Filter) (out []*graph.Ref[ec2.SecurityGroupState]) {
	for _, role := range slices.Sorted(maps.Keys(s)) {
		made, is := s[role].Desired().(*ec2.SecurityGroup)
		if is && matchFilters(filters, made.Tags, map[string]string{"group-name": made.Name}) {
			out = append(out, s[role])
		}
	}
	return out
}
