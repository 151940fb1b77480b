package topology

import (
	"fmt"
	"maps"
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// platform has the parts of the graph that all machines depend on: network, images and boot data.
type platform struct {
	base
	endpoint bootdata.Endpoint
	bucket   *graph.Ref[s3.BucketState]
	keys     *graph.Ref[secrets.PKIState] // nil on EKS
	record   recordedNames
	eks      *graph.Ref[eks.ClusterState] // nil except on EKS
	token    *incluster.CurrentToken      // nil if no machine joins with a token
	restore  *bootdata.Restore            // nil if the control plane is not restored
	// podNetwork is what machines and pools of an EKS cluster wait for before they start.
	podNetwork []graph.Edge
}

// addMachines adds all machines and pools, and their Kubernetes resources: the API server
// and the Nodes.
func addMachines(
	g *graph.Graph,
	p platform,
	lbs loadBalancers,
	k kubernetes,
	plan machinePlan,
	mappings []incluster.Mapping,
) (all []Machine, remarks []string, err error) {
	p.token = addJoinToken(g, p, k.api, plan)
	etcd := addEtcdMembers(g, p, k.api, plan, removeUnhealthy(g, p, lbs, kubernetes{api: k.api}, plan))
	etcd = append(etcd, addNewEtcd(g, p)...)
	for _, x := range plan.groups {
		machines, err := addGroup(g, p, x, etcd)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, machines...)
	}
	registered := addRegistration(g, lbs, p, plan, all)
	k, remarks = addKubernetes(g, p, k, plan, all, slices.Concat(lbs.listeners, registered), etcd, mappings)
	control, err := rollControlPlane(g, p, lbs, k, plan, all, etcd)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, control.launched...)
	images := addSystemImages(g, p, k, control.last)
	pools, more, err := addPools(g, p, k.api, plan, control.last)
	if err != nil {
		return nil, nil, err
	}
	remarks = append(more, remarks...)
	addPoolNodes(g, p, k, pools)
	workers, err := rollWorkers(g, p, lbs, k, plan, all, slices.Concat(control.last, images))
	if err != nil {
		return nil, nil, err
	}
	all = append(all, workers...)
	if remark := p.labelRemark(all); remark != "" {
		remarks = append(remarks, remark)
	}
	terminateMachines(g, p, lbs, k, plan, all, slices.Concat(registered, k.controlPlaneNodes, control.settled))
	finishRestore(g, p, k)
	retireNodeGroups(g, p)
	retirePools(g, p)
	deleteBootData(g, p, plan, all)
	return all, remarks, nil
}

// addGroup adds the machines of a group, except for those that a rollout launches. etcd is what new
// machines of the control plane wait for.
func addGroup(g *graph.Graph, p platform, x groupPlan, etcd []graph.Resource) (out []Machine, err error) {
	add := func(at place, after []graph.Edge) error {
		m, err := addMachine(g, p, x, at, after)
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
func addMachine(g *graph.Graph, p platform, x groupPlan, at place, after []graph.Edge) (out Machine, err error) {
	id, zone := x.id(at.index), x.zone
	switch {
	case at.exists() && zone == "":
		zone = at.existing.state.Zone
	case zone == "" && x.controlPlane && x.count > 1:
		zone = p.spread(x.group, at.index)
	}
	r := newInstance(g, p, x, at)
	if r.Subnet, r.Pinned, err = machineSubnet(g, p.base, x.group, zone, at.exists()); err != nil {
		return out, err
	}
	if !at.exists() {
		if err := p.unfit(x.group, p.net.of(r.Subnet).zone); err != nil {
			return out, err
		}
		if r.Image, err = addImage(g, p.base, x.group); err != nil {
			return out, err
		}
		data := p.recorded(p.bootData(x.group, id, x.instanceName(at.index), x.role(at)))
		data.Waits = p.bootsBesideGateways(x.group, r.Subnet)
		r.Boot = data
		if p.renewsToken(x.group) {
			r.Tags = r.Tags.With(cloud.Tags{tokenTag: "true"})
		}
		r.Needed = slices.Concat(
			addKeyPair(g, p.base, x.group, r.Key),
			addProfile(g, p.base, x.group, x.spec.IAMInstanceProfile),
			addPlacementGroup(g, p.base, x.group),
		)
		switch egress := p.net.egress(r.Subnet); {
		case data.Waits:
			out.routes = egress
		default:
			r.Needed = append(r.Needed, egress...)
		}
	}
	out.Group, out.name, out.ControlPlane, out.External = x.name, x.instanceName(at.index), x.controlPlane, x.externalCloudProvider()
	out.labels, out.rolls, out.replaceable = x.labels, x.rolls(), !x.controlPlane && p.replacesOutdated(x.group)
	out.Instance = graph.Add(g, id, r, graph.From(x.origin), graph.With(after, p.podNetwork))
	return out, nil
}

// bootsBesideGateways reports whether the machines of a group are launched without
// waiting for the NAT gateway of their subnet: their boot script waits for it
// (docs/adr/0023-boot-beside-nat-gateways.md). Only the script that fetches boot data
// with the AWS CLI does, and machines of EKS wait longer for their cluster.
func (p platform) bootsBesideGateways(x group, subnet *graph.Ref[ec2.SubnetState]) bool {
	backend := backendOf(x)
	return !p.o.NetworkFirst && p.m.EKS == nil && (backend == boot.SecretsManager || backend == boot.ParameterStore) && p.net.of(subnet).nat
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
func newInstance(g *graph.Graph, p platform, x groupPlan, at place) *ec2.Instance {
	own := p.ownTags(x.group, at)
	r := &ec2.Instance{
		Spec: x.spec, Key: p.keyName(x.spec.SSHKeyName), Tags: p.machineTags(x.roleTag(), x.spec.AdditionalTags).With(own), Batch: own,
		Claimed: at.existing.claimed, Adopt: p.o.Adopt,
	}
	if !at.exists() || at.existing.state.Tags[cloud.TemplateTag] != "" || p.usesAPIServer() { // otherwise the run cannot check the tag with the API server
		r.Tags[cloud.TemplateTag] = x.template.digest
	}
	if !at.exists() || at.existing.state.Tags[cloud.TemplateFieldsTag] != "" {
		r.Tags[cloud.TemplateFieldsTag] = encodeFields(x.template.fields)
	}
	r.Irreplaceable = x.controlPlane && at.existing.state.Stopped && p.needsStopped()
	r.Outdated = x.onDelete && p.outdatedBecause(x, at.existing.state) != ""
	r.Groups, r.EKS = machineSecurityGroups(g, p, x.group)
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
func machineSecurityGroups(g *graph.Graph, p platform, x group) (groups []*graph.Ref[ec2.SecurityGroupState], cluster graph.Resource) {
	roles := []infrav1.SecurityGroupRole{infrav1.SecurityGroupNode, infrav1.SecurityGroupLB}
	switch {
	case p.m.External:
		roles = nil
	case p.m.EKS != nil && x.spec.SecurityGroupOverrides[infrav1.SecurityGroupNode] == "":
		roles, cluster = []infrav1.SecurityGroupRole{infrav1.SecurityGroupEKSNodeAdditional}, p.eks
	case p.m.EKS != nil:
		roles = []infrav1.SecurityGroupRole{infrav1.SecurityGroupNode, infrav1.SecurityGroupEKSNodeAdditional}
	case x.controlPlane:
		roles = append(roles, infrav1.SecurityGroupControlPlane)
	}
	for _, role := range roles {
		group := p.groups[role]
		if given := x.spec.SecurityGroupOverrides[role]; given != "" {
			group = lookupInVPC(g, p.base, plan.ID("security-group/"+given), ec2.SecurityGroupByID(p.net.vpc, given), x.specAt, "spec")
		}
		groups = append(groups, group)
	}
	for n, given := range x.spec.AdditionalSecurityGroups {
		if given.ID != nil {
			continue
		}
		created := p.groups.matching(given.Filters)
		id := plan.ID(fmt.Sprintf("security-group/of/%s/%d", x.name, n))
		groups = append(groups, lookupInVPC(g, p.base, id, ec2.SecurityGroupsByFilters(p.net.vpc, filterMap(given.Filters), len(created) > 0), x.specAt, "spec"))
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
