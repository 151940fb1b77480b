package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Assumed lists what the manifest takes for granted in the account, each once, in the order in which it
// has to be created. The account has CAPA's bootstrap stack, and images as CAPA publishes them.
func (c *Cluster) Assumed() []cluster.Assumed {
	a := &assumer{c: c, seen: map[string]bool{}}
	a.identities()
	a.network()
	a.loadBalancers()
	a.eks()
	for _, m := range a.machines() {
		a.machine(m)
	}
	for i := range c.Pools {
		a.pool(&c.Pools[i])
	}
	return a.all
}

// assumer collects what a manifest takes for granted.
type assumer struct {
	c    *Cluster
	seen map[string]bool
	all  []cluster.Assumed
}

// add adds something that a field of an object refers to.
func (a *assumer) add(object, path string, x cluster.Assumed) {
	key := x.Kind + "/" + x.ID
	if x.ID == "" {
		key += fmt.Sprint(x.Tags)
		if x.Kind == cluster.AssumedSubnet {
			key += x.Zone
		}
	}
	if x.ID == "" && len(x.Tags) == 0 || a.seen[key] {
		return
	}
	a.seen[key] = true
	x.Origin = a.c.Origin(object, path)
	a.all = append(a.all, x)
}

// infra is add for a field of the infrastructure.
func (a *assumer) infra(path string, x cluster.Assumed) { a.add(a.c.InfraObject(), path, x) }

func (a *assumer) identities() {
	for _, id := range a.c.Identity {
		if id.Role != nil {
			a.add(id.Origin, "spec.roleARN", cluster.Assumed{Kind: cluster.AssumedRole, ID: id.Role.RoleArn})
		}
	}
}

// network adds the existing VPC with its subnets, groups and gateways.
func (a *assumer) network() {
	spec := &a.c.Infra.Spec.NetworkSpec
	vpc := spec.VPC.ID
	a.sourceGroups("spec.network.additionalControlPlaneIngressRules", spec.AdditionalControlPlaneIngressRules)
	a.sourceGroups("spec.network.additionalNodeIngressRules", spec.AdditionalNodeIngressRules)
	if vpc == "" {
		return
	}
	v := cluster.Assumed{Kind: cluster.AssumedVPC, ID: vpc, CIDR: spec.VPC.CidrBlock}
	if spec.VPC.IPv6 != nil {
		v.IPv6 = cmp.Or(spec.VPC.IPv6.CidrBlock, cluster.AnyIPv6)
	}
	a.infra("spec.network.vpc.id", v)
	guess := a.publicGuess(spec.Subnets)
	for i, s := range spec.Subnets {
		x := cluster.Assumed{Kind: cluster.AssumedSubnet, VPC: vpc, CIDR: s.CidrBlock, Zone: s.AvailabilityZone, Public: guess(i), Detail: s.ID}
		if id := s.GetResourceID(); strings.HasPrefix(id, "subnet-") {
			x.ID = id
		} else {
			x.Tags = map[string]string{"Name": cmp.Or(s.ID, s.CidrBlock)}
		}
		if s.IsIPv6 {
			x.IPv6 = cmp.Or(s.IPv6CidrBlock, cluster.AnyIPv6)
		}
		a.infra(fmt.Sprintf("spec.network.subnets[%d]", i), x)
	}
	if len(spec.Subnets) == 0 { // CAPA takes all of the VPC
		for _, kind := range []string{"public", "private"} {
			for _, zone := range "ab" {
				a.infra("spec.network.vpc.id", cluster.Assumed{
					Kind:   cluster.AssumedSubnet,
					VPC:    vpc,
					Zone:   a.c.Region + string(zone),
					Public: kind == "public",
					Tags:   map[string]string{"Name": kind + "-" + string(zone)},
				})
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(spec.SecurityGroupOverrides)) {
		id := spec.SecurityGroupOverrides[role]
		a.infra("spec.network.securityGroupOverrides."+string(role), cluster.Assumed{Kind: cluster.AssumedSecurityGroup, ID: id, VPC: vpc})
	}
	if id := spec.VPC.InternetGatewayID; id != nil {
		a.infra("spec.network.vpc.internetGatewayId", cluster.Assumed{Kind: cluster.AssumedInternetGateway, ID: *id, VPC: vpc})
	}
}

// publicGuess says which subnets are public: those that say so. If none does, those with "public" in
// the name; otherwise the first half, because public subnets are usually listed first. EKS needs none.
// A subnet that says "isPublic: false" is private: with a rehearsal in which it is public, nobody learns that the cluster
// has no subnet for its load balancer.
func (a *assumer) publicGuess(all infrav1.Subnets) func(int) bool {
	open := func(i int) bool {
		return !a.c.Sets(a.c.InfraObject(), fmt.Sprintf("spec.network.subnets[%d].isPublic", i))
	}
	if slices.ContainsFunc(all, func(s infrav1.SubnetSpec) bool { return s.IsPublic }) {
		return func(i int) bool { return all[i].IsPublic }
	}
	named := func(i int) bool {
		return open(i) && strings.Contains(strings.ToLower(all[i].ID+all[i].Tags["Name"]), "public")
	}
	for i := range all {
		if named(i) {
			return named
		}
	}
	if lb := a.c.Infra.Spec.ControlPlaneLoadBalancer; !a.c.Infra.Spec.Bastion.Enabled {
		inner := lb != nil && lb.Scheme != nil && *lb.Scheme == infrav1.ELBSchemeInternal
		if pairs := len(all)%2 == 0; a.c.EKS != nil || inner && !pairs { // one in each zone
			return func(int) bool { return false }
		}
	}
	return func(i int) bool { return open(i) && i < (len(all)+1)/2 && len(all) > 1 }
}

func (a *assumer) loadBalancers() {
	spec := &a.c.Infra.Spec
	for _, lb := range []struct {
		path string
		spec *infrav1.AWSLoadBalancerSpec
	}{
		{"spec.controlPlaneLoadBalancer", spec.ControlPlaneLoadBalancer}, {"spec.secondaryControlPlaneLoadBalancer", spec.SecondaryControlPlaneLoadBalancer},
	} {
		if lb.spec == nil {
			continue
		}
		for i, id := range lb.spec.AdditionalSecurityGroups {
			a.infra(fmt.Sprintf("%s.additionalSecurityGroups[%d]", lb.path, i), a.group(id))
		}
		a.sourceGroups(lb.path+".ingressRules", lb.spec.IngressRules)
		for i, id := range lb.spec.Subnets {
			public := lb.spec.Scheme == nil || *lb.spec.Scheme != infrav1.ELBSchemeInternal
			a.infra(fmt.Sprintf("%s.subnets[%d]", lb.path, i), cluster.Assumed{
				Kind: cluster.AssumedSubnet, ID: id, VPC: spec.NetworkSpec.VPC.ID, Public: public,
			})
		}
		if lb.spec.Name != nil && spec.NetworkSpec.VPC.ID != "" && lb.spec.LoadBalancerType == infrav1.LoadBalancerTypeNLB {
			a.infra(lb.path+".name", cluster.Assumed{Kind: cluster.AssumedLoadBalancer, ID: *lb.spec.Name, VPC: spec.NetworkSpec.VPC.ID})
		}
	}
	if b := spec.Bastion; b.Enabled {
		a.image(a.c.InfraObject(), "spec.bastion.ami", b.AMI, b.InstanceType, "")
		a.key(a.c.InfraObject(), "spec.sshKeyName", spec.SSHKeyName)
	}
}

// sourceGroups adds the security groups from which rules of the infrastructure take traffic.
func (a *assumer) sourceGroups(path string, rules infrav1.IngressRules) {
	for i, r := range rules {
		for _, id := range r.SourceSecurityGroupIDs {
			a.infra(fmt.Sprintf("%s[%d]", path, i), a.group(id))
		}
	}
}

func (a *assumer) group(id string) cluster.Assumed {
	return cluster.Assumed{Kind: cluster.AssumedSecurityGroup, ID: id, VPC: a.c.Infra.Spec.NetworkSpec.VPC.ID}
}

// eks adds the roles and keys of an EKS cluster.
func (a *assumer) eks() {
	e := a.c.EKS
	if e == nil {
		return
	}
	object, spec := a.c.InfraObject(), &e.ControlPlane.Spec
	if !e.EnableIAM {
		a.role(object, "spec.roleName", Deref(spec.RoleName), "eks.amazonaws.com")
		if m := e.AutoMode; m != nil {
			a.role(object, "metadata.annotations", m.Role, "ec2.amazonaws.com")
		}
		for _, f := range e.Fargate {
			a.role(KindFargateProfile+"/"+f.Name, "spec.roleName", f.Spec.RoleName, "eks-fargate-pods.amazonaws.com")
		}
	}
	for _, f := range e.Fargate {
		for i, id := range f.Spec.SubnetIDs {
			a.add(KindFargateProfile+"/"+f.Name, fmt.Sprintf("spec.subnetIDs[%d]", i), cluster.Assumed{
				Kind: cluster.AssumedSubnet, ID: id, VPC: a.c.Infra.Spec.NetworkSpec.VPC.ID,
			})
		}
	}
	if spec.Addons != nil {
		for i, addon := range *spec.Addons {
			a.add(object, fmt.Sprintf("spec.addons[%d].serviceAccountRoleARN", i), cluster.Assumed{
				Kind: cluster.AssumedRole, ID: Deref(addon.ServiceAccountRoleArn), Service: "eks.amazonaws.com",
			})
		}
	}
	if spec.RoleAdditionalPolicies != nil {
		for i, arn := range *spec.RoleAdditionalPolicies {
			a.policy(object, fmt.Sprintf("spec.roleAdditionalPolicies[%d]", i), arn)
		}
	}
	a.kms(object, "spec.encryptionConfig.provider", e.EncryptionKey())
	for _, p := range e.PodIdentities {
		a.podRole(object, p.PodRole)
	}
	a.addonRoles(object, e.AddonIdentities)
	a.policy(object, "spec.rolePermissionsBoundary", spec.RolePermissionsBoundary)
	for i, entry := range spec.AccessEntries {
		x := cluster.Assumed{Kind: cluster.AssumedUser, ID: entry.PrincipalARN}
		if strings.Contains(entry.PrincipalARN, ":role/") {
			x.Kind, x.Service = cluster.AssumedRole, "ec2.amazonaws.com"
		}
		a.add(object, fmt.Sprintf("spec.accessEntries[%d].principalARN", i), x)
	}
}

func (a *assumer) role(object, path, name, service string) {
	a.add(object, path, cluster.Assumed{Kind: cluster.AssumedRole, ID: name, Service: service})
}

func (a *assumer) kms(object, path, key string) {
	a.add(object, path, cluster.Assumed{Kind: cluster.AssumedKMSKey, ID: key})
}

func (a *assumer) policy(object, path, arn string) {
	if arn != "" && !strings.Contains(arn, ":iam::aws:policy/") { // AWS has those
		a.add(object, path, cluster.Assumed{Kind: cluster.AssumedPolicy, ID: arn})
	}
}

// key adds the key pair of a machine, which may be the cluster's. Nobody chose "default".
func (a *assumer) key(object, path string, own *string) {
	name, inherited := a.c.KeyPair(own)
	switch {
	case inherited:
		object, path = a.c.InfraObject(), "spec.sshKeyName"
	case own == nil:
		name = ""
	}
	a.add(object, path, cluster.Assumed{Kind: cluster.AssumedKeyPair, ID: name})
}

func (a *assumer) image(object, path string, id, instanceType, version string) {
	a.add(object, path, cluster.Assumed{Kind: cluster.AssumedImage, ID: id, Detail: ArchitectureOf(instanceType), Version: version})
}

// ArchitectureOf returns the architecture of an instance type: the types with Graviton processors have a
// "g" after the generation. https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
func ArchitectureOf(instanceType string) string {
	family, _, _ := strings.Cut(instanceType, ".")
	generation := strings.IndexAny(family, "0123456789")
	if generation > 0 && strings.Contains(family[generation:], "g") || strings.HasPrefix(family, "a1") {
		return "arm64"
	}
	return "x86_64"
}

// Deref returns the text, or "" for nil.
func Deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// assumedMachine is a machine spec and where it is.
type assumedMachine struct {
	object, path string // "AWSMachineTemplate/demo-md-0", "spec.template.spec."
	spec         *infrav1.AWSMachineSpec
	zone         string // in which it has to be; "" for any
	version      string // of Kubernetes
}

// machines lists the machine specs.
func (a *assumer) machines() (all []assumedMachine) {
	const inTemplate = "spec.template.spec."
	if cp := a.c.ControlPlane; cp != nil && cp.Template != nil {
		all = append(all, assumedMachine{
			KindAWSMachineTemplate + "/" + cp.Template.Name, inTemplate, &cp.Template.Spec.Template.Spec, "", cp.Object.Spec.Version,
		})
	}
	for _, d := range a.c.Deployments {
		if d.Template != nil {
			all = append(all, assumedMachine{
				KindAWSMachineTemplate + "/" + d.Template.Name,
				inTemplate,
				&d.Template.Spec.Template.Spec,
				d.Object.Spec.Template.Spec.FailureDomain,
				d.Object.Spec.Template.Spec.Version,
			})
		}
	}
	for _, x := range a.c.Machines {
		if x.Infra != nil {
			all = append(all, assumedMachine{KindAWSMachine + "/" + x.Infra.Name, "spec.", &x.Infra.Spec, x.Object.Spec.FailureDomain, x.Object.Spec.Version})
		}
	}
	return all
}

// zones are those in which the machines are to find a subnet: the machines of a control plane that are found by filters are spread over three.
func (m assumedMachine) zones(c *Cluster) []string {
	cp := c.ControlPlane
	if cp == nil || m.spec != &cp.Template.Spec.Template.Spec || cp.Replicas() == 1 || m.spec.Subnet.ID != nil {
		return []string{m.zone}
	}
	return []string{c.Region + "a", c.Region + "b", c.Region + "c"}
}

// machine adds what a machine takes for granted.
func (a *assumer) machine(m assumedMachine) {
	s := m.spec
	at := func(path string, x cluster.Assumed) { a.add(m.object, m.path+path, x) }
	a.image(m.object, m.path+"ami.id", Deref(s.AMI.ID), s.InstanceType, m.version)
	a.key(m.object, m.path+"sshKeyName", s.SSHKeyName)
	at("iamInstanceProfile", cluster.Assumed{Kind: cluster.AssumedInstanceProfile, ID: s.IAMInstanceProfile})
	// A group with partitions takes all instance types, and any number of instances.
	at("placementGroupName", cluster.Assumed{Kind: cluster.AssumedPlacementGroup, ID: s.PlacementGroupName, Detail: "partition"})
	at("capacityReservationId", reservation(s.CapacityReservationID, s.MarketType))
	at("hostID", cluster.Assumed{Kind: cluster.AssumedHost, ID: Deref(s.HostID)})
	if s.Tenancy == "host" && Deref(s.HostID) == "" { // a name for one that the manifest does not name
		at("tenancy", cluster.Assumed{Kind: cluster.AssumedHost, ID: "h-00000000000000000", Detail: "auto-placement"})
	}
	for _, role := range slices.Sorted(maps.Keys(s.SecurityGroupOverrides)) {
		at("securityGroupOverrides."+string(role), a.group(s.SecurityGroupOverrides[role]))
	}
	a.groups(m.object, m.path+"additionalSecurityGroups", s.AdditionalSecurityGroups)
	a.volumes(m.object, m.path, s.RootVolume, s.NonRootVolumes)
	if s.Subnet != nil {
		for _, zone := range m.zones(a.c) {
			a.subnet(m.object, m.path+"subnet", *s.Subnet, zone, s.PublicIP != nil && *s.PublicIP)
		}
	}
	for i, id := range s.NetworkInterfaces {
		at(fmt.Sprintf("networkInterfaces[%d]", i), cluster.Assumed{Kind: cluster.AssumedNetworkInterface, ID: id})
	}
}

// ImageLookup is the spec of machines that find their image by name.
type ImageLookup struct {
	Object, Path string // "AWSMachineTemplate/demo-md-0", "spec.template.spec"
	Spec         *infrav1.AWSMachineSpec
	Version      string // of Kubernetes
}

// ImageLookups lists the machines that find their image by name.
func (c *Cluster) ImageLookups() (all []ImageLookup) {
	for _, m := range (&assumer{c: c}).machines() {
		if Deref(m.spec.AMI.ID) == "" {
			all = append(all, ImageLookup{m.object, strings.TrimSuffix(m.path, "."), m.spec, m.version})
		}
	}
	for _, p := range c.Pools {
		if p.Scaling == nil || Deref(p.Scaling.Spec.AWSLaunchTemplate.AMI.ID) != "" {
			continue
		}
		t := p.Scaling.Spec.AWSLaunchTemplate
		all = append(all, ImageLookup{KindScalingPool + "/" + p.Scaling.Name, "spec.awsLaunchTemplate", &infrav1.AWSMachineSpec{
			ImageLookupFormat: t.ImageLookupFormat, ImageLookupOrg: t.ImageLookupOrg, ImageLookupBaseOS: t.ImageLookupBaseOS, InstanceType: t.InstanceType,
		}, p.Object.Spec.Template.Spec.Version})
	}
	return all
}

// volumes adds the keys of volumes.
func (a *assumer) volumes(object, path string, root *infrav1.Volume, others []infrav1.Volume) {
	if root != nil {
		a.kms(object, path+"rootVolume.encryptionKey", root.EncryptionKey)
	}
	for i, v := range others {
		a.kms(object, fmt.Sprintf("%snonRootVolumes[%d].encryptionKey", path, i), v.EncryptionKey)
	}
}

// groups adds security groups.
func (a *assumer) groups(object, path string, refs []infrav1.AWSResourceReference) {
	for i, r := range refs {
		x := a.group(Deref(r.ID))
		x.Tags = tagsOf(r.Filters)
		a.add(object, fmt.Sprintf("%s[%d]", path, i), x)
	}
}

// subnet adds a subnet in an existing VPC. Filters in a VPC of the cluster find the cluster's own subnets.
func (a *assumer) subnet(object, path string, r infrav1.AWSResourceReference, zone string, public bool) {
	vpc := a.c.Infra.Spec.NetworkSpec.VPC.ID
	if vpc == "" {
		return
	}
	x := cluster.Assumed{Kind: cluster.AssumedSubnet, ID: Deref(r.ID), VPC: vpc, Zone: zone, Public: public, Tags: tagsOf(r.Filters)}
	for _, f := range r.Filters {
		if len(f.Values) > 0 && (f.Name == "availability-zone" || f.Name == "availabilityZone") {
			x.Zone = f.Values[0]
		}
	}
	a.add(object, path, x)
}

// tagsOf returns the tags that filters ask for, and the name of a security group as the tag "group-name".
func tagsOf(filters []infrav1.Filter) map[string]string {
	tags := map[string]string{}
	for _, f := range filters {
		if len(f.Values) == 0 {
			continue
		}
		value := strings.NewReplacer("*", "a", "?", "a").Replace(f.Values[0])
		if name, ok := strings.CutPrefix(f.Name, "tag:"); ok {
			tags[name] = value
		}
		switch f.Name {
		case "group-name":
			tags[f.Name] = value
		case "tag-key":
			tags[value] = ""
		}
	}
	if len(tags) == 0 {
		return nil
	}
	return tags
}

// pool adds what a MachinePool takes for granted.
func (a *assumer) pool(p *Pool) {
	if p.Scaling != nil {
		object, s := KindScalingPool+"/"+p.Scaling.Name, &p.Scaling.Spec
		a.template(object, "spec.awsLaunchTemplate.", &s.AWSLaunchTemplate, p.Object.Spec.Template.Spec.Version)
		for i, r := range s.Subnets {
			a.subnet(object, fmt.Sprintf("spec.subnets[%d]", i), r, "", false)
		}
		a.hooks(object, s.AWSLifecycleHooks)
		return
	}
	if p.Managed == nil {
		return
	}
	object, s := KindManagedPool+"/"+p.Managed.Name, &p.Managed.Spec
	if a.c.EKS != nil && !a.c.EKS.EnableIAM {
		a.role(object, "spec.roleName", s.RoleName, "ec2.amazonaws.com")
	}
	for i, arn := range s.RoleAdditionalPolicies {
		a.policy(object, fmt.Sprintf("spec.roleAdditionalPolicies[%d]", i), arn)
	}
	for i, id := range s.SubnetIDs {
		if strings.HasPrefix(id, "subnet-") {
			a.subnet(object, fmt.Sprintf("spec.subnetIDs[%d]", i), infrav1.AWSResourceReference{ID: &id}, "", false)
		}
	}
	if r := s.RemoteAccess; r != nil {
		a.key(object, "spec.remoteAccess.sshKeyName", r.SSHKeyName)
		for i, id := range r.SourceSecurityGroups {
			a.add(object, fmt.Sprintf("spec.remoteAccess.sourceSecurityGroups[%d]", i), a.group(id))
		}
	}
	if s.AWSLaunchTemplate != nil {
		a.template(object, "spec.awsLaunchTemplate.", s.AWSLaunchTemplate, p.Object.Spec.Template.Spec.Version)
	}
	a.hooks(object, s.AWSLifecycleHooks)
}

// template adds what a launch template takes for granted.
func (a *assumer) template(object, path string, s *expinfrav1.AWSLaunchTemplate, version string) {
	a.image(object, path+"ami.id", Deref(s.AMI.ID), s.InstanceType, version)
	if s.SSHKeyName != nil { // a launch template does not have the cluster's
		a.key(object, path+"sshKeyName", s.SSHKeyName)
	}
	a.add(object, path+"iamInstanceProfile", cluster.Assumed{Kind: cluster.AssumedInstanceProfile, ID: s.IamInstanceProfile})
	a.add(object, path+"capacityReservationId", reservation(s.CapacityReservationID, s.MarketType))
	a.groups(object, path+"additionalSecurityGroups", s.AdditionalSecurityGroups)
	a.volumes(object, path, s.RootVolume, s.NonRootVolumes)
}

// hooks adds the roles of lifecycle hooks.
func (a *assumer) hooks(object string, all []expinfrav1.AWSLifecycleHook) {
	for i, h := range all {
		a.add(object, fmt.Sprintf("spec.lifecycleHooks[%d].roleARN", i), cluster.Assumed{
			Kind: cluster.AssumedRole, ID: Deref(h.RoleARN), Service: "autoscaling.amazonaws.com",
		})
	}
}

// addonRoles adds the roles of the pods of add-ons.
func (a *assumer) addonRoles(object string, identities map[string][]AddonIdentity) {
	for _, name := range slices.Sorted(maps.Keys(identities)) {
		for _, p := range identities[name] {
			a.podRole(object, p.PodRole)
		}
	}
}

// podRole takes the role of pods for granted, or the policies of the one that is made.
func (a *assumer) podRole(object string, r PodRole) {
	const at = "metadata.annotations"
	a.role(object, at, r.RoleARN, "pods.eks.amazonaws.com")
	for _, arn := range r.PolicyARNs {
		a.policy(object, at, arn)
	}
}

// reservation is a capacity reservation; its detail says that it is a Capacity Block.
func reservation(id *string, market infrav1.MarketType) cluster.Assumed {
	x := cluster.Assumed{Kind: cluster.AssumedReservation, ID: Deref(id)}
	if market == infrav1.MarketTypeCapacityBlock {
		x.Detail = string(market)
	}
	return x
}
