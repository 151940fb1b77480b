package topology

import (
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// managedReplicas is the annotation of a MachinePool of which something else
// says how many machines it has: an autoscaler.
const managedReplicas = "cluster.x-k8s.io/replicas-managed-by"

// nodeGroups adds the managed node groups, and reports whether there will be
// nodes.
func (b *builder) nodeGroups() (nodes bool) {
	for _, p := range b.m.Pools {
		if p.Managed != nil {
			g := b.nodeGroup(p)
			graph.Add(b.Graph, graph.ID("node-group/"+g.Name), g, graph.From(b.m.Origin("AWSManagedMachinePool/"+p.Managed.Name, "spec")))
			nodes = nodes || g.Desired > 0
		}
	}
	return nodes
}

func (b *builder) nodeGroup(p manifest.Pool) *eks.NodeGroup {
	spec := &p.Managed.Spec
	id := graph.ID("node-group/" + spec.EKSNodegroupName)
	desired := int32(p.Replicas()) //nolint:gosec // EKS takes a few hundred
	g := &eks.NodeGroup{
		Cluster: b.plane, Name: spec.EKSNodegroupName, Version: minorVersion(p.Object.Spec.Template.Spec.Version), Release: text(spec.AMIVersion),
		Role: b.iamRole(roleSpec{
			name: spec.RoleName, path: spec.RolePath, boundary: spec.RolePermissionsBoundary, services: []string{"ec2.amazonaws.com"},
			policies: []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"}, more: spec.RoleAdditionalPolicies,
			at: "spec",
		}),
		Subnets: b.nodeGroupSubnets(p), Capacity: "ON_DEMAND", Least: desired, Most: desired, Desired: desired, Labels: spec.Labels, MaxUnavailable: 1,
		Hooks: spec.AWSLifecycleHooks, Tags: b.eksTags(id, spec.EKSNodegroupName, map[string]string(spec.AdditionalTags)),
	}
	if spec.AMIType != nil {
		g.ImageType = strings.Replace(string(*spec.AMIType), "X86", "x86", 1)
	}
	if spec.CapacityType != nil && *spec.CapacityType == expinfrav1.ManagedMachinePoolCapacityTypeSpot {
		g.Capacity = "SPOT"
	}
	if spec.InstanceType != nil {
		g.InstanceTypes = []string{*spec.InstanceType}
	}
	if spec.DiskSize != nil {
		g.DiskSize = *spec.DiskSize
	}
	if s := spec.Scaling; s != nil {
		if s.MinSize != nil {
			g.Least = *s.MinSize
		}
		if s.MaxSize != nil {
			g.Most = *s.MaxSize
		}
	}
	g.Least, g.Most = min(g.Least, g.Desired), max(g.Most, g.Desired)
	_, g.KeepDesired = p.Object.Annotations[managedReplicas]
	b.nodeGroupUpdates(spec, g)
	b.remoteAccess(spec, g)
	if spec.AWSLaunchTemplate != nil {
		b.nodeTemplate(p, g)
	}
	return g
}

// nodeTemplate adds the launch template of a node group. EKS chooses the image
// of the nodes by its kind, and writes what they boot with, unless the template
// brings an image: then EKS adds nothing, and knows of no version.
func (b *builder) nodeTemplate(p manifest.Pool, g *eks.NodeGroup) {
	x := b.poolGroup(p)
	x.spec.UncompressedUserData = new(bool)
	*x.spec.UncompressedUserData = true // EKS reads it
	t := b.launchTemplate(x, *p.Managed.Spec.AWSLaunchTemplate)
	if manifest.OwnImage(p.Managed) {
		t.Image = b.image(x)
		g.ImageType, g.Version, g.Release = "CUSTOM", "", ""
	}
	if x.eks != nil || len(x.data) > 0 {
		t.Boot = b.boot(x, 0, graph.ID("machine/"+x.name))
	}
	t.OfEKS, g.Content = true, t
	g.Template = graph.Add(b.Graph, graph.ID(t.Tags[cloud.ResourceTag]), t, graph.From(b.m.Origin(x.specAt, x.specPath)))
}

func (b *builder) nodeGroupUpdates(spec *expinfrav1.AWSManagedMachinePoolSpec, g *eks.NodeGroup) {
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
		g.Taints = append(g.Taints, eks.EKSTaint{Key: t.Key, Value: t.Value, Effect: effects[t.Effect]})
	}
}

// remoteAccess lets SSH in, from anywhere only where the manifest says so.
func (b *builder) remoteAccess(spec *expinfrav1.AWSManagedMachinePoolSpec, g *eks.NodeGroup) {
	r := spec.RemoteAccess
	if r == nil {
		return
	}
	g.SSHKey, g.SSHFromIDs = b.keyOf(r.SSHKeyName), r.SourceSecurityGroups
	if r.Public {
		return
	}
	g.SSHFrom = append(g.SSHFrom, b.groups[infrav1.SecurityGroupEKSNodeAdditional])
	if bastion := b.groups[infrav1.SecurityGroupBastion]; bastion != nil {
		g.SSHFrom = append(g.SSHFrom, bastion)
	}
}

// nodeGroupSubnets picks the subnets of a pool (facts E.10): those that are
// named, those of its zones, or all private ones.
func (b *builder) nodeGroupSubnets(p manifest.Pool) (out []*graph.Ref[ec2.SubnetState]) {
	spec := &p.Managed.Spec
	zones := spec.AvailabilityZones
	if len(zones) == 0 {
		zones = p.Object.Spec.FailureDomains
	}
	kind := expinfrav1.AZSubnetTypePrivate
	if spec.AvailabilityZoneSubnetType != nil && len(spec.AvailabilityZones) > 0 {
		kind = *spec.AvailabilityZoneSubnetType
	}
	at := b.m.Origin("AWSManagedMachinePool/"+p.Managed.Name, "spec")
	return b.pick(at, spec.SubnetIDs, zones, kind)
}

// pick returns subnets of the cluster.
func (b *builder) pick(at string, ids, zones []string, kind expinfrav1.AZSubnetType) (out []*graph.Ref[ec2.SubnetState]) {
	for _, id := range ids {
		i := slices.IndexFunc(b.net.subnets, func(s subnet) bool { return s.name == id || s.ref.CloudID() == id || b.known(s, id) })
		if i < 0 {
			b.fail("%s: subnet %s is not one of the cluster's", at, id)
			return nil
		}
		out = append(out, b.net.subnets[i].ref)
	}
	if len(ids) > 0 {
		return out
	}
	for _, s := range b.net.subnets {
		fits := kind == expinfrav1.AZSubnetTypeAll || s.public == (kind == expinfrav1.AZSubnetTypePublic)
		if fits && (len(zones) == 0 || slices.Contains(zones, s.zone)) {
			out = append(out, s.ref)
		}
	}
	if len(out) == 0 {
		b.fail("%s: there is no %s subnet in %s", at, kind, strings.Join(zones, ", "))
	}
	return out
}

// known reports whether the inventory knows a subnet by that ID.
func (b *builder) known(s subnet, id string) bool {
	return slices.ContainsFunc(b.inv.Subnets, func(x ec2.SubnetState) bool { return x.ID == id && x.Tags["Name"] == s.name })
}

// fargateProfiles adds the Fargate profiles, one after the other: EKS makes and
// removes one at a time.
func (b *builder) fargateProfiles() {
	var before *graph.Ref[eks.FargateProfileState]
	for _, p := range b.m.EKS.Fargate {
		id := graph.ID("fargate-profile/" + p.Spec.ProfileName)
		at := b.m.Origin("AWSFargateProfile/"+p.Name, "spec")
		f := &eks.FargateProfile{
			Cluster: b.plane, Name: p.Spec.ProfileName, Role: b.iamRole(roleSpec{
				name: p.Spec.RoleName, path: p.Spec.RolePath, boundary: p.Spec.RolePermissionsBoundary, services: []string{"eks-fargate-pods.amazonaws.com"},
				policies: []string{"AmazonEKSFargatePodExecutionRolePolicy"}, at: "spec",
			}),
			Subnets: b.pick(at, p.Spec.SubnetIDs, nil, expinfrav1.AZSubnetTypePrivate), Tags: b.eksTags(id, p.Spec.ProfileName, map[string]string(p.Spec.AdditionalTags)),
		}
		for _, s := range p.Spec.Selectors {
			f.Selectors = append(f.Selectors, eks.EKSSelector{Namespace: s.Namespace, Labels: s.Labels})
		}
		before = graph.Add(b.Graph, id, f, graph.With(graph.On(before)), graph.From(at))
	}
}
