package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// observer reads the inventory: what the graph depends on, and no more.
type observer struct {
	c    *cloud.Clients
	m    *manifest.Cluster
	deep depth
	inv  topology.Inventory
}

// observe reads the inventory of a manifest.
func observe(ctx context.Context, c *cloud.Clients, m *manifest.Cluster, deep depth) (topology.Inventory, error) {
	o := &observer{c: c, m: m, deep: deep}
	err := o.observe(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	return o.inv, err
}

func (o *observer) observe(ctx context.Context) (err error) {
	c, m, inv := o.c, o.m, &o.inv
	spec := &m.Infra.Spec
	inv.Now = c.Now()
	if m.EKS == nil {
		marker, err := secrets.ReadInitMarker(ctx, c)
		if err != nil {
			return fmt.Errorf("state of the control plane: %w", err)
		}
		if marker != nil {
			inv.InitMachine, inv.Initialized, inv.EtcdSince = marker.Machine, marker.Machine != "", marker.Since
		}
	}
	if spec.NetworkSpec.VPC.ID != "" {
		err = o.observeExisting(ctx)
	} else {
		err = o.observeNetwork(ctx)
	}
	if err != nil {
		return err
	}
	if err := o.observeRecords(ctx); err != nil {
		return err
	}
	if err := o.observePoolSubnets(ctx); err != nil {
		return err
	}
	if missing := MissingTypes(m, *inv); len(missing) > 0 {
		if inv.Types, err = ec2.InstanceTypes(ctx, c, missing); err != nil {
			return fmt.Errorf("instance types: %w", err)
		}
	}
	if err := o.observeEKS(ctx); err != nil {
		return err
	}
	if inv.Balancers, err = o.existingBalancers(ctx); err != nil {
		return fmt.Errorf("load balancers: %w", err)
	}
	if err := o.observeTurnedOff(ctx); err != nil {
		return err
	}
	if err := o.observeLeft(ctx); err != nil {
		return err
	}
	return o.observeAccount(ctx)
}

// observeRecords reads what runs have recorded of their own writes. A deletion does not need it.
func (o *observer) observeRecords(ctx context.Context) (err error) {
	if o.deep != whole {
		return nil
	}
	if o.inv.TagKeys, err = secrets.ReadTagKeys(ctx, o.c); err != nil {
		return fmt.Errorf("tags that runs have set: %w", err)
	}
	if o.inv.BootSecrets, err = secrets.RecordedPrefixes(ctx, o.c); err != nil {
		return fmt.Errorf("names of boot data: %w", err)
	}
	return nil
}

// observeAccount reads the account ID if an ARN in a policy needs it.
func (o *observer) observeAccount(ctx context.Context) error {
	if b := o.m.Infra.Spec.S3Bucket; (b == nil || b.PresignedURLDuration != nil) && !o.m.EKS.HasKarpenter() {
		return nil
	}
	who, err := iam.Caller(ctx, o.c)
	if err != nil {
		return fmt.Errorf("account ID: %w", err)
	}
	o.inv.Account = who.Account
	return nil
}

// observeTurnedOff reads what a self-managed cluster may have that is not in its manifest any more. A deletion finds it by its tags.
func (o *observer) observeTurnedOff(ctx context.Context) (err error) {
	m, inv := o.m, &o.inv
	if m.EKS != nil || m.External || o.deep == identity || len(inv.Subnets) == 0 {
		return nil
	}
	if inv.TargetGroups, err = elb.OwnedTargetGroups(ctx, o.c, inv.Subnets[0].VPC); err != nil {
		return fmt.Errorf("target groups of the cluster: %w", err)
	}
	if inv.Unlisted, err = elb.UnlistedLoadBalancers(ctx, o.c, topology.OwnBalancers(m)); err != nil {
		return fmt.Errorf("load balancers of the cluster: %w", err)
	}
	if m.Infra.Spec.S3Bucket == nil {
		if inv.Bucket, err = s3.BucketNameIfAllowed(ctx, o.c); err != nil {
			return fmt.Errorf("bucket of the cluster: %w", err)
		}
	}
	return nil
}

// observeLeft reads the parts of the network, and what uses the subnets of a managed network that are not in the manifest any more.
func (o *observer) observeLeft(ctx context.Context) (err error) {
	c, m, inv := o.c, o.m, &o.inv
	if m.External || o.deep == identity || len(inv.Subnets) == 0 {
		return nil
	}
	left := &inv.Left
	if left.Groups, err = ec2.OwnedSecurityGroups(inv.Subnets[0].VPC)(ctx, c); err != nil {
		return fmt.Errorf("security groups of the cluster: %w", err)
	}
	if m.Infra.Spec.NetworkSpec.VPC.ID != "" {
		return nil
	}
	if left.NATGateways, err = ec2.NATGateways(ctx, c); err != nil {
		return fmt.Errorf("NAT gateways of the cluster: %w", err)
	}
	if left.Addresses, err = ec2.Addresses(ctx, c); err != nil {
		return fmt.Errorf("addresses of NAT gateways: %w", err)
	}
	left.Addresses = slices.DeleteFunc(slices.Clone(left.Addresses), func(s ec2.ElasticIPState) bool { return !s.IsOwned(c) })
	if left.Tables, err = ec2.RouteTables(ctx, c); err != nil {
		return fmt.Errorf("route tables of the cluster: %w", err)
	}
	var unlisted []string
	for _, s := range topology.UnlistedSubnets(m, inv.Subnets) {
		unlisted = append(unlisted, s.ID)
	}
	if len(unlisted) == 0 {
		return nil
	}
	var inEKS string
	if m.EKS != nil {
		inEKS = m.EKS.ControlPlane.Spec.EKSClusterName
	}
	if left.Users, err = ec2.UsersOfSubnets(ctx, c, unlisted, topology.OwnBalancers(m), inEKS); err != nil {
		return fmt.Errorf("network interfaces in subnets that are not in the manifest: %w", err)
	}
	return nil
}

// observeEKS reads the parts of an EKS cluster, and the roles of its nodes. It looks for another EKS cluster of the cluster, too.
func (o *observer) observeEKS(ctx context.Context) (err error) {
	c, m, inv := o.c, o.m, &o.inv
	if m.EKS == nil {
		return o.observeOtherEKS(ctx)
	}
	read := eks.PartsOf
	if o.deep == identity {
		read = eks.PartsToDelete
	}
	if inv.EKS, err = read(ctx, c, m.EKS.ControlPlane.Spec.EKSClusterName); err != nil {
		return fmt.Errorf("EKS cluster: %w", err)
	}
	if err := o.observeOtherEKS(ctx); err != nil {
		return err
	}
	if o.deep == identity { // access entries are deleted with the cluster
		return nil
	}
	if inv.NodeRoles, err = nodeRoles(ctx, c, m); err != nil {
		return fmt.Errorf("instance profiles: %w", err)
	}
	if inv.MissingRoles, err = missingRoles(ctx, c, m); err != nil {
		return fmt.Errorf("roles of add-ons: %w", err)
	}
	if inv.EKS.Cluster == nil {
		return nil
	}
	if inv.EKS.Leaving, err = eks.LeavingParts(ctx, c, inv.EKS, partsInManifest(m, inv.NodeRoles)); err != nil {
		return fmt.Errorf("parts of the EKS cluster: %w", err)
	}
	return nil
}

// observeOtherEKS looks for an EKS cluster that belongs to this cluster, and that the manifest does not name. Its name is in a tag of the subnets.
func (o *observer) observeOtherEKS(ctx context.Context) error {
	m, inv := o.m, &o.inv
	if inv.EKS.Cluster != nil {
		return nil
	}
	names := map[string]bool{}
	for _, s := range inv.Subnets {
		if m.EKS == nil && !s.IsOwned(o.c) { // of an existing network, in which others have clusters
			continue
		}
		for key := range s.Tags {
			if name, is := strings.CutPrefix(key, cloud.CloudProviderTagPrefix); is && name != m.KubernetesName() {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		other, err := eks.ClusterByName(ctx, o.c, name)
		if err != nil && !cloud.Denied(err) { // the caller may not read EKS clusters of all names
			return fmt.Errorf("EKS cluster %s: %w", name, err)
		}
		if err == nil && other != nil && other.IsOwned(o.c) {
			inv.OtherEKS = name
		}
	}
	return nil
}

// partsInManifest returns the names of the parts of an EKS cluster that its manifest has. nodeRoles maps the names of instance profiles of
// machines to the ARNs of their roles.
func partsInManifest(m *manifest.Cluster, nodeRoles map[string]string) eks.Kept {
	spec := &m.EKS.ControlPlane.Spec
	kept := eks.Kept{
		NodeGroups: map[string]bool{}, Fargate: map[string]bool{}, Addons: map[string]bool{}, Entries: map[string]bool{}, Roles: map[string]bool{},
		MakesRoles: m.EKS.EnableIAM, OIDCProvider: spec.AssociateOIDCProvider,
	}
	if p := spec.OIDCIdentityProviderConfig; p != nil {
		kept.IdentityProvider = p.IdentityProviderConfigName
	}
	for _, p := range m.Pools {
		if p.Managed != nil {
			kept.NodeGroups[p.Managed.Spec.EKSNodegroupName], kept.Roles[p.Managed.Spec.RoleName] = true, true
		}
	}
	for _, f := range m.EKS.Fargate {
		kept.Fargate[f.Spec.ProfileName], kept.Roles[f.Spec.RoleName] = true, true
	}
	for _, arn := range nodeRoles {
		kept.Roles[iam.RoleName(arn)] = true
	}
	if spec.Addons != nil {
		for _, a := range *spec.Addons {
			kept.Addons[a.Name] = true
		}
	}
	for _, e := range spec.AccessEntries {
		var policies []eks.AccessPolicy
		for _, p := range e.AccessPolicies {
			policies = append(policies, eks.AccessPolicy{ARN: p.PolicyARN, Namespaces: p.AccessScope.Namespaces})
		}
		kept.Entries[e.PrincipalARN] = eks.AccessEntryState{Policies: policies}.IsAdmin()
	}
	return kept
}

// missingRoles returns the ARNs of roles of add-ons that do not exist.
func missingRoles(ctx context.Context, c *cloud.Clients, m *manifest.Cluster) (map[string]bool, error) {
	missing := map[string]bool{}
	if m.EKS.ControlPlane.Spec.Addons == nil {
		return missing, nil
	}
	for _, a := range *m.EKS.ControlPlane.Spec.Addons {
		arn := aws.ToString(a.ServiceAccountRoleArn)
		if arn == "" {
			continue
		}
		role, err := iam.GetRole(ctx, c, iam.RoleName(arn))
		if err != nil {
			return nil, err
		}
		missing[arn] = role == nil
	}
	return missing, nil
}

// observeMachines reads the existing machines of the cluster in its VPCs. A tag alone is
// no proof that a machine in another VPC is the cluster's: no run terminates it.
func (o *observer) observeMachines(ctx context.Context, vpcs []string) (err error) {
	c, inv := o.c, &o.inv
	if inv.Machines, err = ec2.Instances(ctx, c); err != nil {
		return fmt.Errorf("machines of the cluster: %w", err)
	}
	inv.Machines = slices.DeleteFunc(inv.Machines, func(m ec2.InstanceState) bool { return !slices.Contains(vpcs, m.VPC) })
	for _, m := range inv.Machines {
		if m.IsTerminating() {
			inv.Terminating = append(inv.Terminating, m)
		}
	}
	inv.Machines = slices.DeleteFunc(inv.Machines, ec2.InstanceState.IsTerminating)
	if inv.Restore, err = secrets.ReadRestore(ctx, c); err != nil {
		return fmt.Errorf("state of the control plane: %w", err)
	}
	if o.deep == identity { // a deletion finds them by their tags
		return nil
	}
	if inv.Templates, err = ec2.LaunchTemplatesIfAllowed(ctx, c); err != nil {
		return fmt.Errorf("launch templates of the cluster: %w", err)
	}
	return nil
}

// observeNetwork reads the existing subnets of the cluster, and the zones for more.
// Without a VPC the cluster has neither subnets nor machines.
func (o *observer) observeNetwork(ctx context.Context) error {
	c, m, inv := o.c, o.m, &o.inv
	spec := &m.Infra.Spec.NetworkSpec
	vpcs, err := ec2.OwnedVPCs(ctx, c)
	if err != nil {
		return fmt.Errorf("VPCs: %w", err)
	}
	if len(vpcs) > 0 {
		if inv.Subnets, err = ec2.Subnets(ctx, c); err != nil {
			return fmt.Errorf("subnets of the cluster: %w", err)
		}
		if err := o.observeMachines(ctx, vpcs); err != nil {
			return err
		}
	} else if err := findLostVPC(ctx, c, o.deep); err != nil {
		return err
	}
	zones := map[string]bool{}
	for _, s := range inv.Subnets {
		zones[s.Zone] = true
	}
	if len(spec.Subnets) > 0 {
		var listed []string
		for _, s := range spec.Subnets {
			listed = append(listed, s.AvailabilityZone)
		}
		return o.observeZones(ctx, listed)
	}
	if len(zones) >= topology.ZoneLimit(&spec.VPC) {
		return nil
	}
	var avoid []string
	if m.EKS != nil {
		avoid = eks.ZonesWithout()
	}
	if inv.Zones, err = ec2.Zones(ctx, c, avoid...); err != nil {
		return fmt.Errorf("availability zones: %w", err)
	}
	return nil
}

// observeEdgeZones reads the zones that may be Local Zones or Wavelength Zones.
func (o *observer) observeEdgeZones(ctx context.Context, zones []string) error {
	return o.observeZones(ctx, slices.DeleteFunc(zones, func(zone string) bool { return !topology.IsUnusualZone(o.m.Region, zone) }))
}

// observeZones reads what the zones are, and whether they exist.
func (o *observer) observeZones(ctx context.Context, zones []string) (err error) {
	zones = slices.DeleteFunc(zones, func(zone string) bool { return zone == "" })
	if len(zones) == 0 || o.deep == identity {
		return nil
	}
	slices.Sort(zones)
	if o.inv.ZoneInfo, err = ec2.ZonesNamed(ctx, o.c, slices.Compact(zones)); err != nil {
		return fmt.Errorf("zones: %w", err)
	}
	return nil
}

// observeExisting reads existing subnets that are not managed, and the NAT gateways in
// them.
func (o *observer) observeExisting(ctx context.Context) error {
	c, m, inv := o.c, o.m, &o.inv
	spec := &m.Infra.Spec.NetworkSpec
	all, err := ec2.SubnetsOf(ctx, c, spec.VPC.ID)
	if err != nil {
		return fmt.Errorf("subnets of %s: %w", spec.VPC.ID, err)
	}
	inv.Subnets = all
	if inv.Public, err = ec2.PublicSubnets(ctx, c, spec.VPC.ID, all); err != nil {
		return fmt.Errorf("route tables of %s: %w", spec.VPC.ID, err)
	}
	if err := o.observeMachines(ctx, []string{spec.VPC.ID}); err != nil {
		return err
	}
	var ids, zones []string
	for _, s := range spec.Subnets {
		if id := topology.ExistingSubnetID(s, all); id != "" {
			ids = append(ids, id)
		}
	}
	for _, s := range all {
		if slices.Contains(ids, s.ID) {
			zones = append(zones, s.Zone)
		}
	}
	if err := o.observeEdgeZones(ctx, zones); err != nil {
		return err
	}
	if len(ids) == 0 {
		return nil
	}
	if inv.NATAddresses, err = ec2.NATAddresses(ctx, c, ids); err != nil {
		return fmt.Errorf("NAT gateways of %s: %w", spec.VPC.ID, err)
	}
	if m.EKS == nil || !m.EKS.NATAddresses || o.deep == identity {
		return nil
	}
	if inv.WaysOut, err = ec2.WaysOut(ctx, c, spec.VPC.ID, ids); err != nil {
		return fmt.Errorf("routes to the NAT gateways of %s: %w", spec.VPC.ID, err)
	}
	return nil
}

// observePoolSubnets reads the subnets that match the filters of pools. CAPA takes those of any VPC;
// an Auto Scaling group can only have those of one.
func (o *observer) observePoolSubnets(ctx context.Context) error {
	if o.deep == identity { // a deletion does not need them
		return nil
	}
	for _, p := range o.m.Pools {
		if p.Scaling == nil {
			continue
		}
		var filters []types.Filter
		for _, s := range p.Scaling.Spec.Subnets {
			for _, f := range s.Filters {
				filters = append(filters, cloud.Filter(f.Name, f.Values...))
			}
		}
		if len(filters) == 0 {
			continue
		}
		found, err := ec2.SubnetsWith(ctx, o.c, filters)
		if err != nil {
			return fmt.Errorf("subnets of the pool %s: %w", p.Object.Name, err)
		}
		found = slices.DeleteFunc(slices.Clone(found), func(s ec2.SubnetState) bool {
			return !slices.ContainsFunc(o.inv.Subnets, func(x ec2.SubnetState) bool { return x.ID == s.ID })
		})
		if o.inv.PoolSubnets == nil {
			o.inv.PoolSubnets = map[string][]ec2.SubnetState{}
		}
		o.inv.PoolSubnets[p.Scaling.Name] = found
	}
	return nil
}

// MissingTypes lists the instance types of machines that will be created, and of
// pools: only those are looked up.
func MissingTypes(m *manifest.Cluster, inv topology.Inventory) []string {
	wanted := map[string]int{}
	if cp := m.ControlPlane; cp != nil {
		wanted[cp.Template.Spec.Template.Spec.InstanceType] += cp.Replicas()
	}
	for _, d := range m.Deployments {
		wanted[d.Template.Spec.Template.Spec.InstanceType] += d.Replicas()
	}
	for _, x := range m.Machines {
		wanted[x.Infra.Spec.InstanceType]++
	}
	for _, x := range inv.Machines {
		if x.Tags[cloud.RoleTag] != topology.RoleBastion {
			wanted[x.Type]--
		}
	}
	for _, p := range m.Pools {
		if t := p.Template(); t != nil && t.AMI.ID == nil && (p.Managed == nil || rules.OwnImage(p.Managed)) { // the newest image depends on the architecture
			wanted[t.InstanceType] = 1
		}
		if topology.Reserves(p) { // the kubelet compares what it reserves with what its machine has
			for _, kind := range append(slices.Clone(p.InstanceTypes), manifest.Deref(p.Managed.Spec.InstanceType), p.Template().InstanceType) {
				wanted[kind] = 1
			}
		}
	}
	maps.DeleteFunc(wanted, func(name string, n int) bool { return n <= 0 || name == "" })
	return slices.Sorted(maps.Keys(wanted))
}

// nodeRoles reads the roles of the machines of an EKS cluster that are in no node group.
func nodeRoles(ctx context.Context, c *cloud.Clients, m *manifest.Cluster) (map[string]string, error) {
	roles := map[string]string{}
	for _, d := range m.Deployments {
		roles[d.Template.Spec.Template.Spec.IAMInstanceProfile] = ""
	}
	for _, x := range m.Machines {
		roles[x.Infra.Spec.IAMInstanceProfile] = ""
	}
	for _, p := range m.Pools {
		if p.Scaling != nil {
			roles[p.Scaling.Spec.AWSLaunchTemplate.IamInstanceProfile] = ""
		}
	}
	delete(roles, "")
	for profile := range roles {
		var err error
		if roles[profile], err = ec2.RoleOfProfile(ctx, c, profile); err != nil {
			return nil, err
		}
	}
	return roles, nil
}

// existingBalancers reads which load balancers of the manifest are existing resources.
func (o *observer) existingBalancers(ctx context.Context) (map[string]bool, error) {
	foreign, spec := map[string]bool{}, &o.m.Infra.Spec
	for _, x := range []struct {
		lb   *infrav1.AWSLoadBalancerSpec
		path string
	}{{spec.ControlPlaneLoadBalancer, "spec.controlPlaneLoadBalancer"}, {spec.SecondaryControlPlaneLoadBalancer, "spec.secondaryControlPlaneLoadBalancer"}} {
		if x.lb == nil || x.lb.Name == nil {
			continue
		}
		find := elb.ExistingClassicLoadBalancer
		if x.lb.LoadBalancerType == infrav1.LoadBalancerTypeNLB {
			find = elb.ExistingLoadBalancer
		}
		is, owner, err := find(ctx, o.c, *x.lb.Name)
		if err != nil {
			return nil, err
		}
		if owner != "" && o.deep != identity {
			return nil, fmt.Errorf("%s: %s is the load balancer of the cluster %s (tag %s%s=%s), and forwards to its machines: set another name",
				o.m.Origin(o.m.InfraObject(), x.path+".name"), *x.lb.Name, owner, cloud.ClusterTagPrefix, owner, cloud.Owned)
		}
		foreign[*x.lb.Name] = is
	}
	return foreign, nil
}
