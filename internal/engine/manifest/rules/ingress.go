package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Rules of Amazon EC2 for security groups: IpPermission, IpRange and AuthorizeSecurityGroupIngress in
// its API reference, and "Security group rules" in the VPC user guide.
const (
	longestDescription = 255
	mostPort           = 65535
	mostICMP           = 255
)

// checkIngressRules checks all inbound rules of the manifest.
func (c *checks) checkIngressRules() {
	spec := &c.cluster.Infra.Spec
	network := &spec.NetworkSpec
	c.checkRules("spec.network.additionalControlPlaneIngressRules", network.AdditionalControlPlaneIngressRules)
	c.checkRules("spec.network.additionalNodeIngressRules", network.AdditionalNodeIngressRules)
	if lb := spec.ControlPlaneLoadBalancer; lb != nil {
		c.checkRules("spec.controlPlaneLoadBalancer.ingressRules", lb.IngressRules)
	}
	if lb := spec.SecondaryControlPlaneLoadBalancer; lb != nil {
		c.checkRules("spec.secondaryControlPlaneLoadBalancer.ingressRules", lb.IngressRules)
	}
	if cni := network.CNI; cni != nil {
		for i, r := range cni.CNIIngressRules {
			c.checkRule(
				fmt.Sprintf("spec.network.cni.cniIngressRules[%d]", i),
				infrav1.IngressRule{Description: r.Description, Protocol: r.Protocol, FromPort: r.FromPort, ToPort: r.ToPort},
			)
		}
	}
	for i, block := range network.NodePortIngressRuleCidrBlocks {
		c.checkRuleBlock(fmt.Sprintf("spec.network.nodePortIngressRuleCidrBlocks[%d]", i), block, 0)
	}
}

func (c *checks) checkRules(path string, rules infrav1.IngressRules) {
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.checkRule(at, r)
		sources := len(r.CidrBlocks) + len(r.IPv6CidrBlocks) + len(r.SourceSecurityGroupIDs) + len(r.SourceSecurityGroupRoles)
		if c.managed && sources == 0 && !r.NatGatewaysIPsSource { // without EKS, the source is the security group of the control plane
			c.fail(c.infra.Problem(at, "the rule has no source, so it lets nobody through", "add cidrBlocks, or sourceSecurityGroupIds"))
		}
	}
}

// checkRule checks one inbound rule.
func (c *checks) checkRule(path string, r infrav1.IngressRule) {
	c.checkPorts(path, r)
	if bad := badDescription(r.Description); bad != "" {
		c.fail(c.infra.Problem(path+".description", bad, "change it"))
	}
	for i, block := range r.CidrBlocks {
		c.checkRuleBlock(fmt.Sprintf("%s.cidrBlocks[%d]", path, i), block, 4)
	}
	for i, block := range r.IPv6CidrBlocks {
		c.checkRuleBlock(fmt.Sprintf("%s.ipv6CidrBlocks[%d]", path, i), block, 6)
	}
	for i, id := range r.SourceSecurityGroupIDs {
		c.checkID(c.infra, fmt.Sprintf("%s.sourceSecurityGroupIds[%d]", path, i), id, "sg", "a security group")
	}
	if r.NatGatewaysIPsSource && c.hasNoNATGateways() { // processIngressRulesSGs in pkg/cloud/services/securitygroup of CAPA waits for them
		c.fail(c.infra.Problem(path+".natGatewaysIPsSource", "the VPC has no NAT gateways: none of its subnets is private", "remove it, and name sources"))
	}
	for i, role := range r.SourceSecurityGroupRoles {
		c.checkRole(fmt.Sprintf("%s.sourceSecurityGroupRoles[%d]", path, i), role)
	}
}

// hasNoNATGateways reports whether a VPC of the cluster has no NAT gateways: private subnets need them.
func (c *checks) hasNoNATGateways() bool {
	network := c.cluster.Infra.Spec.NetworkSpec
	return network.VPC.ID == "" && len(network.Subnets) > 0 &&
		!slices.ContainsFunc(network.Subnets, func(s infrav1.SubnetSpec) bool { return !s.IsPublic })
}

// checkRole refuses a role whose security group the cluster does not have: CAPA sends an empty ID, which EC2 refuses
// (securityGroupRolesForCluster in its controllers, processIngressRulesSGs in pkg/cloud/services/securitygroup).
func (c *checks) checkRole(path string, role infrav1.SecurityGroupRole) {
	roles := []infrav1.SecurityGroupRole{
		infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode, infrav1.SecurityGroupAPIServerLB, infrav1.SecurityGroupLB,
	}
	if c.managed {
		roles = []infrav1.SecurityGroupRole{infrav1.SecurityGroupEKSNodeAdditional}
	}
	bastion := c.cluster.Infra.Spec.Bastion.Enabled
	switch {
	case slices.Contains(roles, role) || role == infrav1.SecurityGroupBastion && bastion:
	case role == infrav1.SecurityGroupBastion:
		c.fail(c.infra.Problem(path, "there is no bastion, so no security group with this role", "set spec.bastion.enabled: true, or remove the role"))
	default:
		c.fail(c.infra.Problem(path, fmt.Sprintf("the cluster has no security group with the role %s", role), fmt.Sprintf("use one of %v, or remove it", roles)))
	}
}

// checkPorts compares the ports of a rule with its protocol. Protocols other than TCP, UDP and ICMP
// have none.
func (c *checks) checkPorts(path string, r infrav1.IngressRule) {
	if !slices.Contains([]string{"-1", "4", "50", "58", "tcp", "udp", "icmp"}, string(r.Protocol)) { // those of CAPA
		c.fail(c.infra.Problem(path+".protocol", fmt.Sprintf("%q is not a protocol of rules", r.Protocol), protocolFix(string(r.Protocol))))
		return
	}
	switch r.Protocol {
	case "tcp", "udp":
		switch {
		case r.FromPort < 0 || r.FromPort > mostPort:
			c.fail(c.infra.Problem(path+".fromPort", fmt.Sprintf("%d is not a port", r.FromPort), fmt.Sprintf("use 0 to %d", mostPort)))
		case r.ToPort < 0 || r.ToPort > mostPort:
			c.fail(c.infra.Problem(path+".toPort", fmt.Sprintf("%d is not a port", r.ToPort), fmt.Sprintf("use 0 to %d", mostPort)))
		case r.FromPort > r.ToPort:
			c.fail(c.infra.Problem(path+".toPort", fmt.Sprintf("is less than fromPort, %d", r.FromPort), "swap them"))
		}
	case "icmp", "58":
		if r.FromPort < -1 || r.FromPort > mostICMP || r.ToPort < -1 || r.ToPort > mostICMP || r.FromPort == -1 && r.ToPort != -1 {
			c.fail(c.infra.Problem(path+".fromPort", fmt.Sprintf("%d and %d are not a type and a code of ICMP", r.FromPort, r.ToPort), "use -1 and -1 for all"))
		}
	}
}

// protocolFix returns the advice for a protocol that CAPA does not know.
func protocolFix(protocol string) string {
	if name := map[string]string{"6": "tcp", "17": "udp", "1": "icmp"}[protocol]; name != "" { // numbers of IANA
		return "write " + name
	}
	if name := strings.ToLower(protocol); name == "tcp" || name == "udp" || name == "icmp" {
		return "write " + name
	}
	return `use tcp, udp, icmp, "58" (ICMPv6), "4" (IP in IP), "50" (ESP), or "-1" for all`
}

// badDescription says why EC2 does not accept the description of a rule; "" if it does.
func badDescription(text string) string {
	switch {
	case len(text) > longestDescription:
		return fmt.Sprintf("AWS permits %d characters, this text has %d", longestDescription, len(text))
	case !regex.Of(`^[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]*$`).MatchString(text):
		return fmt.Sprintf("%q: AWS permits letters a to z, digits, spaces and ._-:/()#,@[]+=&;{}!$* in descriptions", text)
	}
	return ""
}

// checkRuleBlock checks the source of a rule. A family of 0 permits both.
func (c *checks) checkRuleBlock(path, text string, family int) {
	block, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		c.fail(
			c.infra.Problem(
				path,
				fmt.Sprintf("%q is not a block of addresses such as 192.0.2.0/24 or 2001:db8::/32", text),
				"change it; one address has the suffix /32, or /128",
			),
		)
	case family == 4 && !block.Addr().Is4():
		c.fail(c.infra.Problem(path, text+" is a block of IPv6 addresses", "list it in ipv6CidrBlocks"))
	case family == 6 && block.Addr().Is4():
		c.fail(c.infra.Problem(path, text+" is a block of IPv4 addresses", "list it in cidrBlocks"))
	}
}

// checkID checks the form of an ID of EC2: a prefix, and 8 or 17 hexadecimal digits ("Resource IDs"
// in the EC2 user guide).
func (c *checks) checkID(o *manifest.Entry, path, id, prefix, what string) {
	digits, ok := strings.CutPrefix(id, prefix+"-")
	if !ok || !regex.Of(`^([0-9a-f]{8}|[0-9a-f]{17})$`).MatchString(digits) {
		c.fail(o.Problem(path, fmt.Sprintf("%q is not the ID of %s", id, what), fmt.Sprintf("set an ID such as %s-0123456789abcdef0", prefix)))
	}
}
