package manifest

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
)

// Limits of EKS.
const (
	longestEKSName  = 100 // of a cluster and of a Fargate profile
	longestGroup    = 63  // name of a node group
	mostSelectors   = 5   // of a Fargate profile, and labels of each
	leastZones      = 2   // that the control plane stands in
	al2Ends         = 33  // the first minor version without images of Amazon Linux 2
	widestServices  = 12  // bits of the block of Services
	tightestService = 24
	defaultBlock    = "10.0.0.0/16" // of a VPC that names none
)

// checkEKS holds the rules for a control plane of EKS. EKS and CAPA would find
// them out while running.
func (l *loader) checkEKS(cluster *object) {
	for _, m := range l.cluster.Machines {
		if m.ControlPlane {
			l.fail(l.lookup(kindMachine, m.Object.Name).problem("metadata.labels", "EKS runs the control plane; there can be no Machine for it", "remove the label cluster.x-k8s.io/control-plane"))
		}
	}
	if l.cluster.EKS == nil {
		return
	}
	plane := &l.cluster.EKS.ControlPlane.Spec
	if _, err := (&webhooks.AWSCluster{}).ValidateCreate(valueContext(), l.cluster.Infra); err != nil {
		l.failHook(l.infra, err) // of network and SSH key the webhook for EKS checks less
	}
	l.checkEKSName(l.infra, "spec.eksClusterName", plane.EKSClusterName, longestEKSName)
	l.checkRoleName(l.infra, *plane.RoleName)
	l.checkZones(plane.RestrictPrivateSubnets)
	l.checkServices(cluster)
	l.checkAccess(plane)
	l.checkFargate()
	l.tellIdle(cluster, plane)
	if encryption := plane.EncryptionConfig; encryption != nil && (encryption.Provider == nil || len(encryption.Resources) == 0) {
		l.fail(l.infra.problem("spec.encryptionConfig", "encryption needs both the key and what is encrypted with it", "set provider to the ARN of a KMS key, and resources to [secrets]"))
	}
	l.checkAddons(plane)
}

// checkEKSName checks a name in EKS.
func (l *loader) checkEKSName(o *object, path, name string, longest int) {
	switch {
	case len(name) > longest:
		l.fail(o.problem(path, fmt.Sprintf("a name in EKS has at most %d characters, and this has %d", longest, len(name)), "shorten it"))
	case !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`).MatchString(name):
		l.fail(o.problem(path, fmt.Sprintf("%q: a name in EKS is made of letters, digits, - and _, and begins with a letter or digit", name), "change the name"))
	}
}

// checkRoleName refuses a role that IAM cannot have; a generated one has the
// name of the cluster in it.
func (l *loader) checkRoleName(o *object, name string) {
	if len(name) > longestRoleName {
		l.fail(o.problem("spec.roleName", fmt.Sprintf("the role would be %s, and the name of a role has at most %d characters", name, longestRoleName), "set roleName"))
	}
}

// checkZones makes sure that EKS gets subnets in two zones.
func (l *loader) checkZones(private bool) {
	network := l.cluster.Infra.Spec.NetworkSpec
	const what, fix = "EKS wants subnets in two availability zones or more", "add a subnet in another zone"
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

// checkServices checks the block that Services get their addresses from.
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
		l.warn(cluster.problem(path, "EKS takes one block, the first of IPv4", "remove the others"))
	}
	i := slices.IndexFunc(given, func(s string) bool { return !strings.Contains(s, ":") })
	if i < 0 {
		l.fail(cluster.problem(path, "EKS takes a block of IPv4 addresses", "give one, or make the VPC an IPv6 one with vpc.ipv6"))
		return
	}
	block, err := netip.ParsePrefix(given[i])
	if err != nil {
		return // told already
	}
	at := fmt.Sprintf("%s[%d]", path, i)
	if bits := block.Bits(); bits < widestServices || bits > tightestService || !within(block, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16") {
		l.fail(cluster.problem(at, fmt.Sprintf("%s: EKS takes a block of /%d to /%d within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16", given[i], widestServices, tightestService), "change it, or remove it to let EKS choose"))
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

// vpcBlocks are the blocks of a VPC as far as the manifest knows them.
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

// checkAccess checks who may talk to the API server, and as whom.
func (l *loader) checkAccess(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	access := plane.EndpointAccess
	if access.Public != nil && !*access.Public && (access.Private == nil || !*access.Private) {
		l.fail(l.infra.problem("spec.endpointAccess", "an API server that is neither public nor private cannot be reached", "set private: true"))
	}
	for i, cidr := range access.PublicCIDRs {
		if _, err := netip.ParsePrefix(*cidr); err != nil {
			l.fail(l.infra.problem(fmt.Sprintf("spec.endpointAccess.publicCIDRs[%d]", i), fmt.Sprintf("%q is not a CIDR block such as 192.0.2.0/24", *cidr), "change the value"))
		}
	}
	seen := map[string]bool{}
	for i, e := range plane.AccessEntries {
		if seen[e.PrincipalARN] {
			l.fail(l.infra.problem(fmt.Sprintf("spec.accessEntries[%d].principalARN", i), "there is another entry for "+e.PrincipalARN, "make one of them"))
		}
		seen[e.PrincipalARN] = true
	}
}

// checkAddons refuses to install an add-on twice.
func (l *loader) checkAddons(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	if plane.Addons == nil {
		return
	}
	seen := map[string]bool{}
	for i, a := range *plane.Addons {
		if seen[a.Name] {
			l.fail(l.infra.problem(fmt.Sprintf("spec.addons[%d].name", i), fmt.Sprintf("the add-on %s is there twice", a.Name), "remove one of them"))
		}
		seen[a.Name] = true
	}
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
		l.tellIdleRole(o, f.Spec.RolePath, f.Spec.RolePermissionsBoundary, 0)
	}
}

func (l *loader) checkSelectors(o *object, f *expinfrav1.AWSFargateProfile) {
	if n := len(f.Spec.Selectors); n == 0 || n > mostSelectors {
		l.fail(o.problem("spec.selectors", fmt.Sprintf("a Fargate profile has 1 to %d selectors, and this has %d", mostSelectors, n), "say which namespaces run on Fargate"))
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

// tellIdle warns about what has no effect in a cluster of EKS.
func (l *loader) tellIdle(cluster *object, plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for _, row := range []struct {
		o               *object
		path, what, fix string
	}{
		{cluster, "spec.clusterNetwork.pods", "EKS gives pods addresses of the VPC's subnets", "remove it, or choose other addresses with network.vpc.cidrBlock of the AWSManagedControlPlane"},
		{cluster, "spec.clusterNetwork.serviceDomain", "in EKS it is cluster.local", "remove it"},
		{cluster, "spec.controlPlaneEndpoint", "EKS says where the API server is", "remove it"},
		{cluster, "spec.clusterNetwork.apiServerPort", "EKS serves the API on port 443", "remove it"},
		{l.infra, "spec.network.cni", "EKS makes the security groups of nodes", "use additionalControlPlaneIngressRules"},
		{l.infra, "spec.network.additionalNodeIngressRules", "EKS makes the security groups of nodes", "use additionalControlPlaneIngressRules"},
		{l.infra, "spec.network.nodePortIngressRuleCidrBlocks", "EKS makes the security groups of nodes", "use additionalControlPlaneIngressRules"},
	} {
		if _, set := row.o.set[row.path]; set {
			l.warn(row.o.problem(row.path, "has no effect: "+row.what, row.fix))
		}
	}
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode == ekscontrolplanev1.EKSAuthenticationModeAPI && plane.IAMAuthenticatorConfig != nil {
		l.warn(l.infra.problem("spec.iamAuthenticatorConfig", "has no effect: with authenticationMode api nobody reads the ConfigMap aws-auth", "use accessEntries"))
	}
	policies := 0
	if plane.RoleAdditionalPolicies != nil {
		policies = len(*plane.RoleAdditionalPolicies)
	}
	l.tellIdleRole(l.infra, plane.RolePath, plane.RolePermissionsBoundary, policies)
}

// tellIdleRole warns about what is said of a role that is not ours to make.
func (l *loader) tellIdleRole(o *object, path, boundary string, policies int) {
	if l.cluster.EKS.EnableIAM {
		return
	}
	const what, fix = "has no effect: the role is used as it is", "set CAPA_EKS_IAM=true to have roles made"
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

// withoutAL2 tells whether EKS has no images of Amazon Linux 2 for the
// version of the cluster.
func (l *loader) withoutAL2() (version string, without bool) {
	if l.cluster.Version == "" {
		return "its newest version", true
	}
	v, err := semver.ParseTolerant(l.cluster.Version)
	return l.cluster.Version, err == nil && (v.Major > 1 || v.Minor >= al2Ends)
}
