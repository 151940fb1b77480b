package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

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
func (c *checks) checkEKS(cluster *manifest.Entry) {
	for _, m := range c.cluster.Machines {
		if m.ControlPlane {
			c.fail(
				c.lookup(manifest.KindMachine, m.Object.Name).
					Problem("metadata.labels", "EKS runs the control plane; there can be no Machine for it", "remove the label cluster.x-k8s.io/control-plane"),
			)
		}
	}
	if c.cluster.EKS == nil {
		return
	}
	plane := &c.cluster.EKS.ControlPlane.Spec
	c.checkEKSName(c.infra, "spec.eksClusterName", plane.EKSClusterName, longestEKSName)
	c.checkRoleName(c.infra, *plane.RoleName)
	c.checkZones(plane.RestrictPrivateSubnets)
	c.checkServices(cluster)
	c.checkAccess(plane)
	c.checkFargate()
	c.warnNoEffect(cluster, plane)
	if e := plane.EncryptionConfig; e != nil && (e.Provider != nil && *e.Provider != "" || len(e.Resources) > 0) && c.cluster.EKS.EncryptionKey() == "" {
		c.warn(
			c.infra.Problem(
				"spec.encryptionConfig",
				"has no effect without both a key and the resources to encrypt, as in CAPA",
				"set provider to the ARN of a KMS key, and resources to [secrets]; or remove it: from Kubernetes 1.28 on, EKS encrypts with a key of its own",
			),
		)
	}
	c.checkIPv6Roles()
	c.checkSelfManagedAddons(plane)
	c.checkVPCCNI()
	c.warnCutOff(plane)
	c.warnNoNetwork()
	c.warnNoServices()
	c.warnUnscheduled(plane)
	c.checkTagCase(plane)
	c.checkEKSNames(plane)
	c.checkHybrid(plane)
	c.checkAutoMode(plane)
	c.checkKarpenter(plane)
	c.warnPodIdentity(plane)
}

// checkSelfManagedAddons warns about settings of the VPC CNI that have no effect.
func (c *checks) checkSelfManagedAddons(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	env := map[string]bool{}
	for _, e := range plane.VpcCni.Env {
		env[e.Name] = true
	}
	switch {
	case len(env) > 0 && plane.VpcCni.Disable:
		c.warn(c.infra.Problem("spec.vpcCni.env", "has no effect: the VPC CNI is disabled", "remove it"))
	case len(env) > 0 && !c.cluster.HasVPCCNI():
		c.warn(
			c.infra.Problem(
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
	addon := c.cluster.VPCCNI()
	configured := env[enabled] || addon != nil && strings.Contains(addon.Configuration, enabled)
	switch {
	case c.cluster.Infra.Spec.NetworkSpec.VPC.ID != "":
		c.warn(
			c.infra.Problem(
				path,
				"no subnets for pods are created in an existing VPC",
				"list them in spec.network.subnets, with the tag sigs.k8s.io/cluster-api-provider-aws/association: secondary",
			),
		)
	case !c.cluster.HasVPCCNI():
		c.warn(c.infra.Problem(path, "pods get no addresses from it: the cluster has no VPC CNI", "remove it, or add the add-on vpc-cni"))
	case !configured:
		c.warn(
			c.infra.Problem(
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
func (c *checks) checkIPv6Roles() {
	addon := c.cluster.VPCCNI()
	ownRole := addon != nil && addon.ServiceAccountRoleArn != nil
	if !c.cluster.EKS.EnableIAM || c.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 == nil || ownRole {
		return
	}
	for _, p := range c.cluster.Pools {
		if p.Managed != nil && len(p.Managed.Spec.RoleAdditionalPolicies) == 0 {
			o := c.lookup(manifest.KindManagedPool, p.Managed.Name)
			c.warn(
				o.Problem(
					"spec.roleAdditionalPolicies",
					"the nodes do not become ready: their role may not assign IPv6 addresses to pods",
					"add a policy that allows ec2:AssignIpv6Addresses, ec2:DescribeInstances, ec2:DescribeInstanceTypes, ec2:DescribeNetworkInterfaces, ec2:DescribeTags and ec2:CreateTags",
				),
			)
		}
	}
}

// checkEKSName checks a name in EKS.
func (c *checks) checkEKSName(o *manifest.Entry, path, name string, longest int) {
	switch {
	case len(name) > longest:
		c.fail(o.Problem(path, fmt.Sprintf("a name in EKS has at most %d characters, this one has %d", longest, len(name)), "shorten it"))
	case !regex.Of(`^[0-9A-Za-z][0-9A-Za-z_-]*$`).MatchString(name):
		c.fail(o.Problem(path, fmt.Sprintf("%q: a name in EKS consists of letters, digits, - and _, and begins with a letter or digit", name), "change the name"))
	}
}

// checkZones checks that the subnets for EKS are in two zones.
func (c *checks) checkZones(private bool) {
	network := c.cluster.Infra.Spec.NetworkSpec
	const what, fix = "EKS needs subnets in at least two availability zones", "add a subnet in another zone"
	if len(network.Subnets) == 0 {
		if limit := network.VPC.AvailabilityZoneUsageLimit; limit != nil && *limit < leastZones {
			c.fail(c.infra.Problem("spec.network.vpc.availabilityZoneUsageLimit", what, "set it to 2 or more"))
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
		c.fail(c.infra.Problem("spec.network.subnets", what, fix))
	}
}

// checkServices checks the CIDR block of Services.
func (c *checks) checkServices(cluster *manifest.Entry) {
	const path = "spec.clusterNetwork.services.cidrBlocks"
	given := c.cluster.Object.Spec.ClusterNetwork.Services.CIDRBlocks
	vpc := c.cluster.Infra.Spec.NetworkSpec.VPC
	if len(given) == 0 {
		return
	}
	if vpc.IsIPv6Enabled() {
		c.warn(cluster.Problem(path, "has no effect: EKS chooses the addresses of Services in an IPv6 cluster", "remove it"))
		return
	}
	if len(given) > 1 {
		c.warn(cluster.Problem(path, "EKS uses one block, the first IPv4 block", "remove the others"))
	}
	i := slices.IndexFunc(given, func(s string) bool { return !strings.Contains(s, ":") })
	if i < 0 {
		c.fail(cluster.Problem(path, "EKS needs an IPv4 block", "set one, or create an IPv6 cluster with vpc.ipv6"))
		return
	}
	block, err := netip.ParsePrefix(given[i])
	if err != nil {
		return // reported already
	}
	at := fmt.Sprintf("%s[%d]", path, i)
	if bits := block.Bits(); bits < widestServices || bits > tightestService || !within(block, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16") {
		c.fail(
			cluster.Problem(
				at,
				fmt.Sprintf("%s: EKS permits blocks of /%d to /%d within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16", given[i], widestServices, tightestService),
				"change it, or remove it to let EKS choose",
			),
		)
	}
	for _, other := range vpcBlocks(&vpc) {
		if o, err := netip.ParsePrefix(other); err == nil && o.Overlaps(block) {
			c.fail(cluster.Problem(at, fmt.Sprintf("%s overlaps with %s of the VPC", given[i], other), "change one of them"))
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
func (c *checks) checkAccess(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	access := plane.EndpointAccess
	if access.Public != nil && !*access.Public && (access.Private == nil || !*access.Private) {
		c.fail(c.infra.Problem("spec.endpointAccess", "an API server that is neither public nor private cannot be reached", "set private: true"))
	}
	c.checkPublicBlocks(plane)
	c.checkNATAddresses(plane)
	c.checkScopes(plane)
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeAPI && len(plane.AccessEntries) == 0 &&
		a.BootstrapClusterCreatorAdminPermissions != nil && !*a.BootstrapClusterCreatorAdminPermissions {
		c.warn(
			c.infra.Problem(
				"spec.accessConfig",
				"nobody can use the API server: the mode api reads access entries only, and there are none",
				"add an entry to spec.accessEntries, or set bootstrapClusterCreatorAdminPermissions: true",
			),
		)
	}
	c.checkRolesOfNodes(plane)
}

// warnNoEffect warns about fields that have no effect in an EKS cluster. It does not warn about spec.clusterNetwork.pods,
// which has no effect either, because pods get addresses of the VPC: upstream's own templates set the field, and so do
// nearly all manifests.
func (c *checks) warnNoEffect(cluster *manifest.Entry, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for _, row := range []struct {
		o               *manifest.Entry
		path, what, fix string
	}{
		{cluster, "spec.clusterNetwork.serviceDomain", "in EKS it is cluster.local", "remove it"},
		{cluster, "spec.controlPlaneEndpoint", "EKS sets the endpoint of the API server", "remove it"},
		{cluster, "spec.clusterNetwork.apiServerPort", "EKS serves the API on port 443", "remove it"},
		{c.infra, "spec.network.cni", "EKS creates the security group of nodes", "use additionalControlPlaneIngressRules"},
		{c.infra, "spec.network.additionalNodeIngressRules", "EKS creates the security group of nodes", "use additionalControlPlaneIngressRules"},
		{c.infra, "spec.network.nodePortIngressRuleCidrBlocks", "EKS creates the security group of nodes", "use additionalControlPlaneIngressRules"},
	} {
		if _, set := row.o.Lines[row.path]; set {
			c.warn(row.o.Problem(row.path, "has no effect: "+row.what, row.fix))
		}
	}
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeAPI && plane.IAMAuthenticatorConfig != nil {
		c.warn(
			c.infra.Problem("spec.iamAuthenticatorConfig", "has no effect: with authenticationMode api, EKS does not read the ConfigMap aws-auth", "use accessEntries"),
		)
	}
	c.warnOfRolePaths(plane)
	policies := 0
	if plane.RoleAdditionalPolicies != nil {
		policies = len(*plane.RoleAdditionalPolicies)
	}
	c.warnNoEffectOnRole(c.infra, plane.RolePath, plane.RolePermissionsBoundary, policies)
}

// warnOfRolePaths warns of roles with a path in the ConfigMap aws-auth: EKS compares the ARN without it, so that the role has no access
// ("aws-auth ConfigMap does not grant access to the cluster", "Troubleshoot IAM", EKS user guide).
func (c *checks) warnOfRolePaths(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	if plane.IAMAuthenticatorConfig == nil {
		return
	}
	for i, m := range plane.IAMAuthenticatorConfig.RoleMappings {
		prefix, role, _ := strings.Cut(m.RoleARN, ":role/")
		at := strings.LastIndex(role, "/")
		if at < 0 {
			continue
		}
		c.warn(c.infra.Problem(
			fmt.Sprintf("spec.iamAuthenticatorConfig.mapRoles[%d].rolearn", i),
			"has no effect: EKS finds no role with a path in the ConfigMap aws-auth", "write "+prefix+":role/"+role[at+1:],
		))
	}
}

// withoutAL2 reports whether EKS has no Amazon Linux 2 AMIs for the cluster's Kubernetes
// version.
func (c *checks) withoutAL2() (version string, without bool) {
	if c.cluster.Version == "" {
		return "its newest version", true
	}
	v, err := semver.ParseTolerant(c.cluster.Version)
	return c.cluster.Version, err == nil && (v.Major > 1 || v.Minor >= al2Ends)
}
