package manifest

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// isManaged reports whether EKS runs the control plane.
func isManaged(c *clusterv1.Cluster) bool {
	infra := c.Spec.InfrastructureRef.Kind
	return c.Spec.ControlPlaneRef.Kind == kindManagedPlane || infra == kindManagedCluster || infra == kindManagedPlane
}

// resolveEKS finds the EKS control plane and the objects that belong to it, and derives
// the infrastructure from it.
func (l *loader) resolveEKS(o *object, c *clusterv1.Cluster) {
	if !c.Spec.ControlPlaneRef.IsDefined() {
		l.fail(o.problem("spec.controlPlaneRef", "the Cluster names no AWSManagedControlPlane", "set it"))
		return
	}
	r := contract(o, "spec.controlPlaneRef", c.Spec.ControlPlaneRef)
	plane := resolved[ekscontrolplanev1.AWSManagedControlPlane](l, r, kindManagedPlane)
	l.refuseOthers(kindManagedPlane, r)
	mirror := l.managedCluster(o, c, r.name)
	fargate := l.fargateProfiles()
	if plane == nil {
		return
	}
	l.cluster.EKS = &EKS{Cluster: mirror, ControlPlane: plane, Fargate: fargate, EnableIAM: l.options.EKSEnableIAM}
	l.cluster.EKS.EKSSettings = l.eksSettings(l.lookup(kindManagedPlane, r.name))
	if plane.Spec.Version != nil {
		l.cluster.Version = withV(*plane.Spec.Version)
	}
	l.useInfrastructure(l.lookup(kindManagedPlane, r.name), infrastructureOf(plane))
}

// managedCluster finds the AWSManagedCluster. In older manifests, infrastructureRef names
// the control plane itself.
func (l *loader) managedCluster(o *object, c *clusterv1.Cluster, plane string) *infrav1.AWSManagedCluster {
	if !c.Spec.InfrastructureRef.IsDefined() {
		return nil
	}
	r := contract(o, "spec.infrastructureRef", c.Spec.InfrastructureRef)
	if r.kind != kindManagedPlane {
		return resolved[infrav1.AWSManagedCluster](l, r, kindManagedCluster)
	}
	if l.follow(r, kindManagedPlane) != nil && r.name != plane {
		l.fail(o.problem(r.path+".name", fmt.Sprintf("names another control plane than spec.controlPlaneRef, %s", plane), "use one name, or an AWSManagedCluster"))
	}
	return nil
}

// fargateProfiles finds the Fargate profiles of the cluster. Nothing refers to them: they
// name the Cluster.
func (l *loader) fargateProfiles() []*expinfrav1.AWSFargateProfile {
	var found []*expinfrav1.AWSFargateProfile
	for _, o := range l.ofKind(kindFargateProfile) {
		o.used = true
		if x, ok := o.typed.(*expinfrav1.AWSFargateProfile); ok && l.belongs(o, x.Spec.ClusterName) {
			found = append(found, x)
		}
	}
	return found
}

// infrastructureOf returns the network and other infrastructure of an EKS control plane
// as an AWSCluster.
func infrastructureOf(plane *ekscontrolplanev1.AWSManagedControlPlane) *infrav1.AWSCluster {
	spec := plane.Spec.DeepCopy()
	if spec.SecondaryCidrBlock != nil && len(spec.NetworkSpec.VPC.SecondaryCidrBlocks) == 0 {
		spec.NetworkSpec.VPC.SecondaryCidrBlocks = []infrav1.VpcCidrBlock{{IPv4CidrBlock: *spec.SecondaryCidrBlock}}
	}
	return &infrav1.AWSCluster{
		ObjectMeta: metav1.ObjectMeta{Name: plane.Name, Namespace: plane.Namespace, Annotations: plane.Annotations},
		Spec: infrav1.AWSClusterSpec{
			NetworkSpec:       spec.NetworkSpec,
			Region:            spec.Region,
			Partition:         spec.Partition,
			SSHKeyName:        spec.SSHKeyName,
			AdditionalTags:    spec.AdditionalTags,
			ImageLookupFormat: spec.ImageLookupFormat,
			ImageLookupOrg:    spec.ImageLookupOrg,
			ImageLookupBaseOS: spec.ImageLookupBaseOS,
			Bastion:           spec.Bastion,
			IdentityRef:       spec.IdentityRef,
		},
	}
}

// Limits of EKS: see "Amazon EKS service quotas" and the CreateCluster, CreateNodegroup
// and CreateFargateProfile operations.
const (
	longestEKSName  = 100 // length of the name of a cluster or a Fargate profile
	longestGroup    = 63  // length of the name of a node group
	mostSelectors   = 5   // selectors of a Fargate profile, and labels of each selector
	leastZones      = 2   // number of availability zones of the subnets
	al2Ends         = 33  // the first Kubernetes minor version without Amazon Linux 2 AMIs
	widestServices  = 12  // bits of the block of Services
	tightestService = 24
	defaultBlock    = "10.0.0.0/16" // the default CIDR block of a VPC
)

// checkEKS applies the rules for an EKS control plane. EKS and CAPA would report these
// problems only while they create the cluster.
func (l *loader) checkEKS(cluster *object) {
	for _, m := range l.cluster.Machines {
		if m.ControlPlane {
			l.fail(
				l.lookup(kindMachine, m.Object.Name).
					problem("metadata.labels", "EKS runs the control plane; there can be no Machine for it", "remove the label cluster.x-k8s.io/control-plane"),
			)
		}
	}
	if l.cluster.EKS == nil {
		return
	}
	plane := &l.cluster.EKS.ControlPlane.Spec
	if _, err := (&webhooks.AWSCluster{}).ValidateCreate(valueContext(), l.cluster.Infra); err != nil {
		l.failHook(l.infra, err) // CAPA's webhook for EKS checks less of network and SSH key
	}
	l.checkEKSName(l.infra, "spec.eksClusterName", plane.EKSClusterName, longestEKSName)
	l.checkRoleName(l.infra, *plane.RoleName)
	l.checkZones(plane.RestrictPrivateSubnets)
	l.checkServices(cluster)
	l.checkAccess(plane)
	l.checkFargate()
	l.warnNoEffect(cluster, plane)
	if encryption := plane.EncryptionConfig; encryption != nil && (encryption.Provider == nil || len(encryption.Resources) == 0) {
		l.fail(
			l.infra.problem(
				"spec.encryptionConfig",
				"encryption needs both a key and the resources to encrypt",
				"set provider to the ARN of a KMS key, and resources to [secrets]",
			),
		)
	}
	l.checkIPv6Roles()
	l.checkSelfManagedAddons(plane)
	l.warnCutOff(plane)
	l.warnNoNetwork()
	l.warnCoreDNS(plane)
	l.checkTagCase(plane)
	l.checkEKSNames(plane)
	l.checkHybrid(plane)
	l.warnPodIdentity(plane)
}

// checkSelfManagedAddons warns about settings of the VPC CNI that have no effect.
func (l *loader) checkSelfManagedAddons(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	env := map[string]bool{}
	for _, e := range plane.VpcCni.Env {
		env[e.Name] = true
	}
	switch {
	case len(env) > 0 && plane.VpcCni.Disable:
		l.warn(l.infra.problem("spec.vpcCni.env", "has no effect: the VPC CNI is disabled", "remove it"))
	case len(env) > 0 && !l.cluster.HasVPCCNI():
		l.warn(
			l.infra.problem(
				"spec.vpcCni.env",
				"has no effect: neither bootstrapSelfManagedAddons nor addons installs the VPC CNI",
				"remove it, or add the add-on vpc-cni",
			),
		)
	}
	if plane.SecondaryCidrBlock == nil {
		return
	}
	const path, enabled = "spec.secondaryCidrBlock", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
	addon := l.cluster.vpcCNI()
	configured := env[enabled] || addon != nil && strings.Contains(addon.Configuration, enabled)
	switch {
	case l.cluster.Infra.Spec.NetworkSpec.VPC.ID != "":
		l.warn(
			l.infra.problem(
				path,
				"no subnets for pods are created in an existing VPC",
				"list them in spec.network.subnets, with the tag sigs.k8s.io/cluster-api-provider-aws/association: secondary",
			),
		)
	case !l.cluster.HasVPCCNI():
		l.warn(l.infra.problem(path, "pods get no addresses from it: the cluster has no VPC CNI", "remove it, or add the add-on vpc-cni"))
	case !configured:
		l.warn(
			l.infra.problem(
				path,
				"pods get no addresses from it: by default, the VPC CNI does not use ENIConfigs",
				"set AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG to true and ENI_CONFIG_LABEL_DEF to topology.kubernetes.io/zone, in vpcCni.env or in the configuration of the add-on vpc-cni",
			),
		)
	}
}

// checkIPv6Roles warns about roles of nodes that this program creates and that cannot assign
// IPv6 addresses to pods: AWS has no managed policy for that ("Create IAM policy for clusters
// that use the IPv6 family", EKS user guide), and CAPA attaches the policy for IPv4 only.
func (l *loader) checkIPv6Roles() {
	addon := l.cluster.vpcCNI()
	ownRole := addon != nil && addon.ServiceAccountRoleArn != nil
	if !l.cluster.EKS.EnableIAM || l.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 == nil || ownRole {
		return
	}
	for _, p := range l.cluster.Pools {
		if p.Managed != nil && len(p.Managed.Spec.RoleAdditionalPolicies) == 0 {
			o := l.lookup(kindManagedPool, p.Managed.Name)
			l.warn(
				o.problem(
					"spec.roleAdditionalPolicies",
					"the nodes do not become ready: their role may not assign IPv6 addresses to pods",
					"add a policy that allows ec2:AssignIpv6Addresses, ec2:DescribeInstances, ec2:DescribeInstanceTypes, ec2:DescribeNetworkInterfaces, ec2:DescribeTags and ec2:CreateTags",
				),
			)
		}
	}
}

// HasVPCCNI reports whether EKS installs the VPC CNI, by itself or as an add-on, and the
// manifest does not disable it.
func (c *Cluster) HasVPCCNI() bool {
	plane := &c.EKS.ControlPlane.Spec
	return !plane.VpcCni.Disable && (plane.BootstrapSelfManagedAddons || c.vpcCNI() != nil)
}

// vpcCNI returns the add-on vpc-cni, or nil.
func (c *Cluster) vpcCNI() *ekscontrolplanev1.Addon {
	addons := c.EKS.ControlPlane.Spec.Addons
	if addons == nil {
		return nil
	}
	i := slices.IndexFunc(*addons, func(a ekscontrolplanev1.Addon) bool { return a.Name == "vpc-cni" })
	if i < 0 {
		return nil
	}
	return &(*addons)[i]
}

// checkEKSName checks a name in EKS.
func (l *loader) checkEKSName(o *object, path, name string, longest int) {
	switch {
	case len(name) > longest:
		l.fail(o.problem(path, fmt.Sprintf("a name in EKS has at most %d characters, this one has %d", longest, len(name)), "shorten it"))
	case !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`).MatchString(name):
		l.fail(o.problem(path, fmt.Sprintf("%q: a name in EKS consists of letters, digits, - and _, and begins with a letter or digit", name), "change the name"))
	}
}

// checkRoleName rejects a role name that is too long. A generated one contains the name
// of the cluster.
func (l *loader) checkRoleName(o *object, name string) {
	l.checkIAMName(o, "spec.roleName", name, "a role")
	if len(name) > longestRoleName {
		l.fail(
			o.problem("spec.roleName", fmt.Sprintf("the generated role name %s is too long: IAM permits at most %d characters", name, longestRoleName), "set roleName"),
		)
	}
}

// checkZones checks that the subnets for EKS are in two zones.
func (l *loader) checkZones(private bool) {
	network := l.cluster.Infra.Spec.NetworkSpec
	const what, fix = "EKS needs subnets in at least two availability zones", "add a subnet in another zone"
	if len(network.Subnets) == 0 {
		if limit := network.VPC.AvailabilityZoneUsageLimit; limit != nil && *limit < leastZones {
			l.fail(l.infra.problem("spec.network.vpc.availabilityZoneUsageLimit", what, "set it to 2 or more"))
		}
		return
	}
	subnets := network.Subnets
	if private && network.VPC.ID == "" {
		subnets = subnets.FilterPrivate()
	}
	zones, known := map[string]bool{}, true
	for _, s := range subnets {
		zones[s.AvailabilityZone] = true
		known = known && s.AvailabilityZone != ""
	}
	if len(subnets) < leastZones || known && len(zones) < leastZones {
		l.fail(l.infra.problem("spec.network.subnets", what, fix))
	}
}

// checkServices checks the CIDR block of Services.
func (l *loader) checkServices(cluster *object) {
	const path = "spec.clusterNetwork.services.cidrBlocks"
	given := l.cluster.Object.Spec.ClusterNetwork.Services.CIDRBlocks
	vpc := l.cluster.Infra.Spec.NetworkSpec.VPC
	if len(given) == 0 {
		return
	}
	if vpc.IsIPv6Enabled() {
		l.warn(cluster.problem(path, "has no effect: EKS chooses the addresses of Services in an IPv6 cluster", "remove it"))
		return
	}
	if len(given) > 1 {
		l.warn(cluster.problem(path, "EKS uses one block, the first IPv4 block", "remove the others"))
	}
	i := slices.IndexFunc(given, func(s string) bool { return !strings.Contains(s, ":") })
	if i < 0 {
		l.fail(cluster.problem(path, "EKS needs an IPv4 block", "set one, or create an IPv6 cluster with vpc.ipv6"))
		return
	}
	block, err := netip.ParsePrefix(given[i])
	if err != nil {
		return // reported already
	}
	at := fmt.Sprintf("%s[%d]", path, i)
	if bits := block.Bits(); bits < widestServices || bits > tightestService || !within(block, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16") {
		l.fail(
			cluster.problem(
				at,
				fmt.Sprintf("%s: EKS permits blocks of /%d to /%d within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16", given[i], widestServices, tightestService),
				"change it, or remove it to let EKS choose",
			),
		)
	}
	for _, other := range vpcBlocks(&vpc) {
		if o, err := netip.ParsePrefix(other); err == nil && o.Overlaps(block) {
			l.fail(cluster.problem(at, fmt.Sprintf("%s overlaps with %s of the VPC", given[i], other), "change one of them"))
		}
	}
}

func within(block netip.Prefix, ranges ...string) bool {
	return slices.ContainsFunc(ranges, func(r string) bool { return netip.MustParsePrefix(r).Contains(block.Addr()) })
}

// vpcBlocks returns the CIDR blocks of a VPC that the manifest contains.
func vpcBlocks(vpc *infrav1.VPCSpec) []string {
	var out []string
	switch {
	case vpc.CidrBlock != "":
		out = append(out, vpc.CidrBlock)
	case vpc.ID == "":
		out = append(out, defaultBlock)
	}
	for _, b := range vpc.SecondaryCidrBlocks {
		out = append(out, b.IPv4CidrBlock)
	}
	return out
}

// checkAccess checks endpoint access and access entries.
func (l *loader) checkAccess(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	access := plane.EndpointAccess
	if access.Public != nil && !*access.Public && (access.Private == nil || !*access.Private) {
		l.fail(l.infra.problem("spec.endpointAccess", "an API server that is neither public nor private cannot be reached", "set private: true"))
	}
	l.checkPublicBlocks(plane)
	l.checkScopes(plane)
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeAPI && len(plane.AccessEntries) == 0 &&
		a.BootstrapClusterCreatorAdminPermissions != nil && !*a.BootstrapClusterCreatorAdminPermissions {
		l.warn(
			l.infra.problem(
				"spec.accessConfig",
				"nobody can use the API server: the mode api reads access entries only, and there are none",
				"add an entry to spec.accessEntries, or set bootstrapClusterCreatorAdminPermissions: true",
			),
		)
	}
	l.checkRolesOfNodes(plane)
}

// roleUser are nodes or pods whose role is in the manifest.
type roleUser struct {
	o    *object
	role string
	kind ekscontrolplanev1.AccessEntryType // of the access entry that they need
}

// roleUsers lists the node groups and Fargate profiles.
func (l *loader) roleUsers() (users []roleUser) {
	for _, p := range l.cluster.Pools {
		if p.Managed == nil {
			continue
		}
		kind := ekscontrolplanev1.AccessEntryTypeEC2Linux
		if t := p.Managed.Spec.AMIType; t != nil && strings.HasPrefix(string(*t), "WINDOWS") {
			kind = ekscontrolplanev1.AccessEntryTypeEC2Windows
		}
		users = append(users, roleUser{l.lookup(kindManagedPool, p.Managed.Name), p.Managed.Spec.RoleName, kind})
	}
	for _, f := range l.cluster.EKS.Fargate {
		users = append(users, roleUser{l.lookup(kindFargateProfile, f.Name), f.Spec.RoleName, ekscontrolplanev1.AccessEntryTypeFargateLinux})
	}
	return users
}

// checkRolesOfNodes finds access entries and mappings that lock out nodes: EKS lets nodes and
// pods on Fargate in by an entry of their own type ("Create access entries", EKS user guide), or
// by a mapping to the groups of nodes ("Grant IAM users access to Kubernetes with a ConfigMap").
func (l *loader) checkRolesOfNodes(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for _, u := range l.roleUsers() {
		for i, e := range plane.AccessEntries {
			kind := e.Type
			if kind == "" {
				kind = ekscontrolplanev1.AccessEntryTypeStandard
			}
			if isRole(e.PrincipalARN, u.role) && kind != u.kind {
				l.refuse(l.infra.problem(
					fmt.Sprintf("spec.accessEntries[%d]", i),
					fmt.Sprintf(
						"%s is the role of %s (%s), which EKS lets in only by an entry of the type %s, and this one has the type %s",
						e.PrincipalARN,
						u.o.title(),
						u.o.position(""),
						u.kind,
						kind,
					),
					fmt.Sprintf("set type: %s, or name another principal", u.kind),
				))
			}
		}
		if plane.IAMAuthenticatorConfig == nil {
			continue
		}
		for i, m := range plane.IAMAuthenticatorConfig.RoleMappings {
			if isRole(m.RoleARN, u.role) && (!slices.Contains(m.Groups, "system:nodes") || !slices.Contains(m.Groups, "system:bootstrappers")) {
				l.fail(l.infra.problem(
					fmt.Sprintf("spec.iamAuthenticatorConfig.mapRoles[%d]", i),
					fmt.Sprintf(
						"%s is the role of %s (%s), whose mapping EKS writes: without the groups system:bootstrappers and system:nodes, they are locked out",
						m.RoleARN,
						u.o.title(),
						u.o.position(""),
					),
					"remove the mapping, or name another role",
				))
			}
		}
	}
}

// isRole reports whether an ARN is that of a role with a name.
func isRole(arn, name string) bool {
	_, path, ok := strings.Cut(arn, ":role/")
	return ok && path[strings.LastIndex(path, "/")+1:] == name
}

// checkFargate checks the Fargate profiles.
func (l *loader) checkFargate() {
	names := map[string]string{}
	for _, f := range l.cluster.EKS.Fargate {
		o := l.lookup(kindFargateProfile, f.Name)
		l.checkEKSName(o, "spec.profileName", f.Spec.ProfileName, longestEKSName)
		l.checkRoleName(o, f.Spec.RoleName)
		if strings.HasPrefix(f.Spec.ProfileName, "eks-") {
			l.fail(o.problem("spec.profileName", "EKS reserves names of profiles that begin with eks-", "choose another name"))
		}
		if other := names[f.Spec.ProfileName]; other != "" {
			l.fail(o.problem("spec.profileName", fmt.Sprintf("%s has the same name in EKS, %s", other, f.Spec.ProfileName), "set profileName"))
		}
		names[f.Spec.ProfileName] = o.title()
		l.checkSelectors(o, f)
		l.warnNoEffectOnRole(o, f.Spec.RolePath, f.Spec.RolePermissionsBoundary, 0)
	}
}

func (l *loader) checkSelectors(o *object, f *expinfrav1.AWSFargateProfile) {
	if n := len(f.Spec.Selectors); n == 0 || n > mostSelectors {
		l.fail(
			o.problem(
				"spec.selectors",
				fmt.Sprintf("a Fargate profile has 1 to %d selectors, this one has %d", mostSelectors, n),
				"add selectors for the namespaces to run on Fargate",
			),
		)
	}
	for i, s := range f.Spec.Selectors {
		path := fmt.Sprintf("spec.selectors[%d]", i)
		if s.Namespace == "" {
			l.fail(o.problem(path+".namespace", "a selector needs a namespace", "set it"))
		}
		if len(s.Labels) > mostSelectors {
			l.fail(o.problem(path+".labels", fmt.Sprintf("a selector has at most %d labels", mostSelectors), "remove some"))
		}
	}
}

// warnNoEffect warns about fields that have no effect in an EKS cluster.
func (l *loader) warnNoEffect(cluster *object, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for _, row := range []struct {
		o               *object
		path, what, fix string
	}{
		{cluster, "spec.clusterNetwork.pods", "in EKS, pods get addresses from the subnets of the VPC", "remove it, or choose other addresses with network.vpc.cidrBlock of the AWSManagedControlPlane"},
		{cluster, "spec.clusterNetwork.serviceDomain", "in EKS it is cluster.local", "remove it"},
		{cluster, "spec.controlPlaneEndpoint", "EKS sets the endpoint of the API server", "remove it"},
		{cluster, "spec.clusterNetwork.apiServerPort", "EKS serves the API on port 443", "remove it"},
		{l.infra, "spec.network.cni", "EKS creates the security group of nodes", "use additionalControlPlaneIngressRules"},
		{l.infra, "spec.network.additionalNodeIngressRules", "EKS creates the security group of nodes", "use additionalControlPlaneIngressRules"},
		{l.infra, "spec.network.nodePortIngressRuleCidrBlocks", "EKS creates the security group of nodes", "use additionalControlPlaneIngressRules"},
	} {
		if _, set := row.o.set[row.path]; set {
			l.warn(row.o.problem(row.path, "has no effect: "+row.what, row.fix))
		}
	}
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeAPI && plane.IAMAuthenticatorConfig != nil {
		l.warn(
			l.infra.problem("spec.iamAuthenticatorConfig", "has no effect: with authenticationMode api, EKS does not read the ConfigMap aws-auth", "use accessEntries"),
		)
	}
	policies := 0
	if plane.RoleAdditionalPolicies != nil {
		policies = len(*plane.RoleAdditionalPolicies)
	}
	l.warnNoEffectOnRole(l.infra, plane.RolePath, plane.RolePermissionsBoundary, policies)
}

// warnNoEffectOnRole warns about settings of a role that this program does not create.
func (l *loader) warnNoEffectOnRole(o *object, path, boundary string, policies int) {
	if l.cluster.EKS.EnableIAM {
		return
	}
	const what, fix = "has no effect: this program does not change existing roles", "set CAPA_EKS_IAM=true to create roles"
	if path != "" {
		l.warn(o.problem("spec.rolePath", what, fix))
	}
	if boundary != "" {
		l.warn(o.problem("spec.rolePermissionsBoundary", what, fix))
	}
	if policies > 0 {
		l.warn(o.problem("spec.roleAdditionalPolicies", what, fix))
	}
}

// withoutAL2 reports whether EKS has no Amazon Linux 2 AMIs for the cluster's Kubernetes
// version.
func (l *loader) withoutAL2() (version string, without bool) {
	if l.cluster.Version == "" {
		return "its newest version", true
	}
	v, err := semver.ParseTolerant(l.cluster.Version)
	return l.cluster.Version, err == nil && (v.Major > 1 || v.Minor >= al2Ends)
}
