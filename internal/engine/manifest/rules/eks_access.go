package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// MostPublicBlocks is the number of blocks that may use the public endpoint ("Public endpoint access CIDR ranges per
// cluster" in "View and manage Amazon EKS and Fargate service quotas", EKS user guide).
const MostPublicBlocks = 40

// checkPublicBlocks checks who may use the public endpoint of the API server. EKS takes no reserved addresses, and
// IPv6 in IPv6 clusters only ("Cluster API server endpoint", EKS user guide).
func (c *checks) checkPublicBlocks(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	const path = "spec.endpointAccess.publicCIDRs"
	access, ipv6 := plane.EndpointAccess, c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled()
	for i, text := range access.PublicCIDRs {
		at := fmt.Sprintf("%s[%d]", path, i)
		block, err := netip.ParsePrefix(*text)
		switch reserved := reservedIn(block); {
		case err != nil:
			c.fail(c.infra.Problem(at, fmt.Sprintf("%q is not a CIDR block such as 192.0.2.0/24", *text), "change the value"))
		case block.Addr().Is6() && !ipv6:
			c.fail(c.infra.Problem(at, *text+": the endpoint of an IPv4 cluster has no IPv6 address", "remove it, or create an IPv6 cluster with vpc.ipv6"))
		case reserved != "":
			c.fail(
				c.infra.Problem(
					at,
					fmt.Sprintf("%s is in %s: nobody calls the public endpoint from reserved addresses, and EKS refuses them", *text, reserved),
					"write public addresses; from within the VPC, use endpointAccess.private: true",
				),
			)
		}
	}
	if n := len(access.PublicCIDRs); n > MostPublicBlocks {
		c.fail(c.infra.Problem(path, fmt.Sprintf("a cluster has at most %d blocks, this one has %d", MostPublicBlocks, n), "combine some"))
	}
	if len(access.PublicCIDRs) > 0 && access.Public != nil && !*access.Public {
		c.warn(c.infra.Problem(path, "has no effect: the API server has no public endpoint", "remove it, or set public: true"))
	}
}

// reservedIn returns the range of reserved addresses that contains a block; "" if none does ("IANA IPv4 Special-Purpose
// Address Registry", and the one for IPv6).
func reservedIn(block netip.Prefix) string {
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
		"fc00::/7", "fe80::/10", "ff00::/8",
	} {
		if p := netip.MustParsePrefix(text); block.IsValid() && p.Contains(block.Addr()) && block.Bits() >= p.Bits() {
			return text
		}
	}
	return ""
}

// isRestricted reports whether not all addresses may use the public endpoint.
func isRestricted(access ekscontrolplanev1.EndpointAccess) bool {
	return len(access.PublicCIDRs) > 0 && !slices.ContainsFunc(access.PublicCIDRs, func(text *string) bool {
		block, err := netip.ParsePrefix(*text)
		return err == nil && block.Bits() == 0
	})
}

// checkNATAddresses compares the annotation that adds the addresses of NAT gateways with the rest of the endpoint's settings.
// In IPv6 clusters, nodes use the endpoint with their own IPv6 addresses ("Cluster API server endpoint", EKS user guide).
func (c *checks) checkNATAddresses(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	const name = manifest.AnnotationNATAddresses
	access, o := plane.EndpointAccess, c.infra
	switch {
	case !c.cluster.EKS.NATAddresses:
	case access.Public != nil && !*access.Public:
		c.fail(o.AnnotationProblem(name, "the API server has no public endpoint", "remove it, or set spec.endpointAccess.public: true"))
	case !isRestricted(access):
		c.fail(o.AnnotationProblem(name, "all addresses may use the public endpoint", "remove it, or list those that may in spec.endpointAccess.publicCIDRs"))
	case c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled():
		c.fail(
			o.AnnotationProblem(name, "nodes of an IPv6 cluster do not call from the addresses of NAT gateways", "remove it, and set spec.endpointAccess.private: true"),
		)
	case access.Private != nil && *access.Private:
		c.warn(o.AnnotationProblem(name, "nodes do not need it: they use the private endpoint", "remove it, or set spec.endpointAccess.private: false"))
	}
}

// warnPublicNodes warns about node groups in public subnets, whose nodes call from addresses of their own.
func (c *checks) warnPublicNodes() {
	for _, p := range c.cluster.Pools {
		if p.Managed == nil || len(p.Managed.Spec.AvailabilityZones) == 0 {
			continue
		}
		kind := p.Managed.Spec.AvailabilityZoneSubnetType
		if o := c.lookup(manifest.KindManagedPool, p.Managed.Name); kind != nil && *kind != expinfrav1.AZSubnetTypePrivate && o != nil {
			c.warn(o.Problem(
				"spec.availabilityZoneSubnetType",
				"nodes in public subnets call the API server from addresses of their own, and are locked out if these are not in endpointAccess.publicCIDRs",
				"set private, or endpointAccess.private: true",
			))
		}
	}
}

// checkEntryType checks that an access entry has only the fields that its type supports. All types except standard are for nodes: their principal is
// an IAM role, and EKS sets the user name and the groups. They have no access policies, except for type ec2, the nodes of EKS Auto Mode
// (CreateAccessEntry in the EKS API reference; "Create access entries", "Associate access policies with access entries" and "Create a Node Class
// for Amazon EKS", EKS user guide). The webhook of CAPA checks the groups and policies of ec2_linux and ec2_windows already.
func (c *checks) checkEntryType(path string, e ekscontrolplanev1.AccessEntry) {
	before, _, session := strings.Cut(e.Username, "{{SessionName") // also {{SessionNameRaw}}
	if session && !strings.Contains(before, ":") {                 // "Set a custom username", EKS user guide
		c.fail(c.infra.Problem(
			path+".username",
			fmt.Sprintf("%q: EKS wants a colon before the name of the session", e.Username),
			"write a prefix, such as team:{{SessionName}}",
		))
	}
	if e.Type == "" || strings.EqualFold(string(e.Type), string(ekscontrolplanev1.AccessEntryTypeStandard)) {
		return
	}
	in := fmt.Sprintf("in an access entry of the type %s", e.Type)
	if strings.Contains(e.PrincipalARN, ":user/") {
		c.fail(c.infra.Problem(path+".principalARN", "EKS takes roles only "+in, "name the role of the nodes, or set type: standard"))
	}
	if e.Username != "" {
		c.fail(c.infra.Problem(path+".username", "EKS sets the username "+in, "remove it, or set type: standard"))
	}
	if e.Type == ekscontrolplanev1.AccessEntryTypeEC2Linux || e.Type == ekscontrolplanev1.AccessEntryTypeEC2Windows {
		return
	}
	if len(e.KubernetesGroups) > 0 {
		c.fail(c.infra.Problem(path+".kubernetesGroups", "EKS sets the groups "+in, "remove them, or set type: standard"))
	}
	if len(e.AccessPolicies) > 0 && e.Type != ekscontrolplanev1.AccessEntryTypeEC2 {
		c.fail(c.infra.Problem(path+".accessPolicies", "EKS associates no access policies "+in, "remove them, or set type: standard"))
	}
}

// checkScopes checks where access policies apply (AccessScope in the EKS API reference).
func (c *checks) checkScopes(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for i, e := range plane.AccessEntries {
		for k, p := range e.AccessPolicies {
			at := fmt.Sprintf("spec.accessEntries[%d].accessPolicies[%d].accessScope", i, k)
			names := p.AccessScope.Namespaces
			ofCluster := strings.EqualFold(string(p.AccessScope.Type), string(ekscontrolplanev1.AccessScopeTypeCluster))
			for n, name := range names { // a namespace may have a * at the end
				if stem := strings.TrimSuffix(name, "*"); stem != "" && len(validation.IsDNS1123Label(strings.TrimSuffix(stem, "-"))) > 0 {
					c.warn(c.infra.Problem(fmt.Sprintf("%s.namespaces[%d]", at, n), fmt.Sprintf("%q is not the name of a namespace", name), "use small letters, digits and -"))
				}
			}
			if ofCluster && len(names) > 0 { // the webhook requires that another scope names some
				c.fail(
					c.infra.Problem(at, "the policy applies to the whole cluster, and has namespaces, too", "remove namespaces, or set type: namespace"),
				)
			}
		}
	}
}
