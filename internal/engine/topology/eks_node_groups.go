package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// managedReplicas is the annotation of a MachinePool whose number of machines is set by
// somebody else, such as an autoscaler.
const managedReplicas = "cluster.x-k8s.io/replicas-managed-by"

// addNodeGroups adds the managed node groups. It reports whether the cluster will have
// nodes.
func addNodeGroups(g *graph.Graph, in inputs, p platform, api *incluster.API) (nodes bool, err error) {
	for _, pool := range in.m.Pools {
		if pool.Managed == nil {
			continue
		}
		r, err := newNodeGroup(g, in, p, pool)
		if err != nil {
			return false, err
		}
		if in.usesAPIServer() {
			r.Kubernetes = api.Client
		}
		var routes []graph.Edge // without them its nodes do not join, and EKS gives it up after 20 minutes
		for _, subnet := range r.Subnets {
			routes = append(routes, p.net.egress(subnet)...)
		}
		options := []graph.Option{graph.From(in.originOfNodeGroup(pool)), graph.With(p.podNetwork, routes)}
		var added *graph.Ref[eks.NodeGroupState]
		if in.usesAPIServer() {
			options = append(options, graph.Diagnosed(diagnose.NodeGroup(api, func() (eks.NodeGroupState, bool) { return added.Found() })))
		}
		added = graph.Add(g, plan.ID("node-group/"+r.Name), r, options...)
		nodes = nodes || r.Desired > 0
	}
	return nodes, nil
}

func newNodeGroup(g *graph.Graph, in inputs, p platform, pool manifest.Pool) (*eks.NodeGroup, error) {
	spec := &pool.Managed.Spec
	desired := int32(pool.Replicas()) //nolint:gosec // EKS takes a few hundred
	r := &eks.NodeGroup{
		Cluster: p.eks, Name: spec.EKSNodegroupName, Version: minorVersion(pool.Object.Spec.Template.Spec.Version), Release: text(spec.AMIVersion),
		Role:  addRole(g, in, nodeRole(spec)),
		Force: pool.ForceUpdate, Capacity: "ON_DEMAND", MinSize: desired, MaxSize: desired, Desired: desired, Labels: spec.Labels, MaxUnavailable: 1,
		Hooks: spec.AWSLifecycleHooks, Adopt: in.o.Adopt, Tags: in.nodeTags(in.m.KubernetesName(), spec.AdditionalTags),
		NodeTags: cloud.Tags(in.m.NodeTags(pool)), IPv6: in.spec.NetworkSpec.VPC.IsIPv6Enabled(),
	}
	r.FormerNodeTags = in.formerTags(plan.ID("node-group/"+r.Name), slices.Collect(maps.Keys(r.NodeTags)))
	var err error
	if r.Subnets, err = in.nodeGroupSubnets(p.net, pool); err != nil {
		return nil, err
	}
	r.ImageType = imageType(spec)
	if spec.CapacityType != nil && *spec.CapacityType == expinfrav1.ManagedMachinePoolCapacityTypeSpot {
		r.Capacity = "SPOT"
	}
	if t := spec.AWSLaunchTemplate; t != nil && t.MarketType == infrav1.MarketTypeCapacityBlock {
		r.Capacity = "CAPACITY_BLOCK"
	}
	if spec.InstanceType != nil {
		r.InstanceTypes = []string{*spec.InstanceType}
	}
	if len(pool.InstanceTypes) > 0 {
		r.InstanceTypes = pool.InstanceTypes
	}
	if spec.DiskSize != nil {
		r.DiskSize = *spec.DiskSize
	}
	if s := spec.Scaling; s != nil {
		if s.MinSize != nil {
			r.MinSize = *s.MinSize
		}
		if s.MaxSize != nil {
			r.MaxSize = *s.MaxSize
		}
	}
	if _, r.KeepDesired = pool.Object.Annotations[managedReplicas]; r.KeepDesired {
		r.Desired = min(max(r.Desired, r.MinSize), r.MaxSize) // the autoscaler keeps within the bounds
	}
	r.MinSize, r.MaxSize = min(r.MinSize, r.Desired), max(r.MaxSize, r.Desired, 1) // for a bound that is not set
	updateNodes(pool, r)
	in.allowSSH(p.groups, spec, r)
	if rules.ForeignImage(pool.Managed) {
		r.Version, r.Release = "", "" // EKS changes neither
	}
	if spec.AWSLaunchTemplate != nil {
		err = addNodeTemplate(g, in, p, pool, r)
	}
	return r, err
}

// originOfNodeGroup is where a node group comes from.
func (in inputs) originOfNodeGroup(pool manifest.Pool) string {
	return in.m.Origin("AWSManagedMachinePool/"+pool.Managed.Name, "spec")
}

// nodeRole is the role of the nodes of a node group.
func nodeRole(spec *expinfrav1.AWSManagedMachinePoolSpec) roleSpec {
	return roleSpec{
		name: spec.RoleName, path: spec.RolePath, boundary: spec.RolePermissionsBoundary, services: []string{iam.ServiceEC2},
		policies: NodePolicies(), more: spec.RoleAdditionalPolicies, at: "spec",
	}
}

// imageType is the AMI type of a node group as EKS writes it; "" for the default.
func imageType(spec *expinfrav1.AWSManagedMachinePoolSpec) string {
	if spec.AMIType == nil {
		return ""
	}
	return strings.Replace(string(*spec.AMIType), "X86", "x86", 1)
}

// addNodeTemplate adds the launch template of a node group. EKS chooses the image by the
// type of the nodes and writes their boot data. If the template has an image, EKS does
// neither, and reports no version.
func addNodeTemplate(g *graph.Graph, in inputs, p platform, pool manifest.Pool, r *eks.NodeGroup) error {
	x := in.poolGroup(pool, p.eks)
	x.spec.UncompressedUserData = new(true) // EKS reads it, and does not decompress it
	if err := in.overReservedGroup(x, r.InstanceTypes); err != nil {
		return err
	}
	t := newLaunchTemplate(g, in, p, x, pool)
	if rules.OwnImage(pool.Managed) {
		image, err := addImage(g, in, x, t)
		if err != nil {
			return err
		}
		t.Image, r.ImageType, r.Version, r.Release = image, "CUSTOM", "", ""
	}
	if x.eks != nil || len(x.data) > 0 {
		t.Boot = in.poolData(p.boot, x)
	}
	r.Content = t
	r.Template = graph.Add(g, plan.ID(t.Tags[cloud.ResourceTag]), t, graph.From(in.m.Origin(x.specAt, x.specPath)))
	return nil
}

// updateNodes sets how EKS replaces and repairs the nodes of a group, and their
// taints.
func updateNodes(pool manifest.Pool, g *eks.NodeGroup) {
	spec := &pool.Managed.Spec
	g.Strategy = pool.UpdateStrategy
	if pool.RepairMaxUnhealthy != nil || pool.RepairMaxParallel != nil {
		g.RepairLimits = &eks.RepairLimits{MaxUnhealthy: shareOf(pool.RepairMaxUnhealthy), MaxParallel: shareOf(pool.RepairMaxParallel)}
	}
	if u := spec.UpdateConfig; u != nil && u.MaxUnavailablePercentage != nil {
		g.MaxUnavailable, g.MaxUnavailablePercentage = 0, int32(*u.MaxUnavailablePercentage) //nolint:gosec // at most 100
	} else if u != nil && u.MaxUnavailable != nil {
		g.MaxUnavailable = int32(*u.MaxUnavailable) //nolint:gosec // at most 100
	}
	if r := spec.NodeRepairConfig; r != nil && r.Enabled != nil {
		g.Repair = *r.Enabled
	}
	effects := map[expinfrav1.TaintEffect]string{
		expinfrav1.TaintEffectNoSchedule: "NO_SCHEDULE", expinfrav1.TaintEffectNoExecute: "NO_EXECUTE", expinfrav1.TaintEffectPreferNoSchedule: "PREFER_NO_SCHEDULE",
	}
	for _, t := range spec.Taints {
		g.Taints = append(g.Taints, eks.Taint{Key: t.Key, Value: t.Value, Effect: effects[t.Effect]})
	}
}

func shareOf(s *manifest.Share) eks.Share {
	if s == nil {
		return eks.Share{}
	}
	return eks.Share(*s)
}

// allowSSH permits SSH to the nodes: from all addresses only if the manifest says so.
func (in inputs) allowSSH(groups securityGroups, spec *expinfrav1.AWSManagedMachinePoolSpec, r *eks.NodeGroup) {
	access := spec.RemoteAccess
	if access == nil {
		return
	}
	r.SSHKey, r.SSHFromIDs = in.keyName(access.SSHKeyName), access.SourceSecurityGroups
	if access.Public {
		return
	}
	r.SSHFrom = append(r.SSHFrom, groups[infrav1.SecurityGroupEKSNodeAdditional])
	if bastion := groups[infrav1.SecurityGroupBastion]; bastion != nil {
		r.SSHFrom = append(r.SSHFrom, bastion)
	}
}

// nodeGroupSubnets picks the subnets of a node group as CAPA does: those that are
// named, those of its zones, or all private ones.
func (in inputs) nodeGroupSubnets(net network, pool manifest.Pool) ([]*graph.Ref[ec2.SubnetState], error) {
	spec := &pool.Managed.Spec
	zones := spec.AvailabilityZones
	if len(zones) == 0 {
		zones = pool.Object.Spec.FailureDomains
	}
	kind := expinfrav1.AZSubnetTypePrivate
	if spec.AvailabilityZoneSubnetType != nil && len(spec.AvailabilityZones) > 0 {
		kind = *spec.AvailabilityZoneSubnetType
	}
	object, path := "AWSManagedMachinePool/"+pool.Managed.Name, "spec"
	switch {
	case len(spec.SubnetIDs) > 0:
		path = "spec.subnetIDs"
	case len(spec.AvailabilityZones) > 0:
		path = "spec.availabilityZones"
	case len(zones) > 0:
		object, path = "MachinePool/"+pool.Object.Name, "spec.failureDomains"
	}
	return in.subnets(net, in.m.Origin(object, path), spec.SubnetIDs, zones, kind, "subnetIDs")
}

// subnets picks subnets of the cluster by ID or name or, without any, by zone and
// kind.
func (in inputs) subnets(
	net network,
	origin string,
	ids, zones []string,
	kind expinfrav1.AZSubnetType,
	named string,
) (out []*graph.Ref[ec2.SubnetState], err error) {
	for _, id := range ids {
		i := slices.IndexFunc(net.subnets, func(s subnet) bool { return s.is(id) || s.ref.CloudID() == id || in.observedAs(s, id) })
		if i < 0 {
			return nil, fmt.Errorf("%s: subnet %s is not one of the cluster's", origin, id)
		}
		out = append(out, net.subnets[i].ref)
	}
	if len(ids) > 0 {
		return out, nil
	}
	for _, s := range net.subnets {
		fits := kind == expinfrav1.AZSubnetTypeAll || s.public == (kind == expinfrav1.AZSubnetTypePublic)
		if fits && !s.secondary && (len(zones) == 0 || slices.Contains(zones, s.zone)) {
			out = append(out, s.ref)
		}
	}
	if len(out) == 0 {
		what := strings.Replace(string(kind)+" subnet", string(expinfrav1.AZSubnetTypeAll)+" ", "", 1)
		if len(zones) > 0 {
			return nil, fmt.Errorf("%s: there is no %s in %s%s", origin, what, strings.Join(zones, ", "), regionNote(zones...))
		}
		fix := "list one in spec.network.subnets"
		if named != "" {
			fix += fmt.Sprintf(", or choose others with %s or availabilityZoneSubnetType (public, all)", named)
		}
		return nil, fmt.Errorf("%s: the cluster has no %s: %s", origin, what, fix)
	}
	return out, nil
}

// observedAs reports whether the inventory has a subnet under that ID.
func (in inputs) observedAs(s subnet, id string) bool {
	return slices.ContainsFunc(in.inv.Subnets, func(x ec2.SubnetState) bool { return x.ID == id && x.Tags["Name"] == s.name })
}
