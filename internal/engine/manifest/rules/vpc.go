package rules

import (
	"fmt"
	"net/netip"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// Rules of Amazon VPC for blocks of addresses: "VPC CIDR blocks" and "Subnet CIDR blocks" in its
// user guide, and the operations CreateVpc, AssociateVpcCidrBlock and CreateSubnet.
const (
	widestBlock, narrowestBlock = 16, 28 // bits of an IPv4 block
	subnetBitsIPv6              = 64     // bits of the IPv6 block of a subnet
	mostSecondaryBlocks         = 49     // without the first one, if the quota L-83CA0A9D is raised
)

// checkVPCBlocks checks the blocks of a VPC that the run creates, and of its subnets.
func (c *checks) checkVPCBlocks() {
	vpc := &c.cluster.Infra.Spec.NetworkSpec.VPC
	c.checkIPv6Pool(vpc)
	if _, owned := vpc.Tags[infrav1.NameAWSProviderOwned+c.cluster.Name]; vpc.ID != "" && !owned {
		return
	}
	first, ok := c.ipv4Block("spec.network.vpc.cidrBlock", vpc.CidrBlock)
	if !ok {
		if vpc.CidrBlock != "" {
			return
		}
		first = netip.MustParsePrefix(defaultBlock)
	}
	all, whole := []netip.Prefix{first}, true
	for i, b := range vpc.SecondaryCidrBlocks {
		path := c.secondaryPath(i)
		block, ok := c.ipv4Block(path, b.IPv4CidrBlock)
		if !ok {
			whole = false
			continue
		}
		for _, other := range all {
			if block.Overlaps(other) {
				c.fail(c.infra.Problem(path, fmt.Sprintf("%s overlaps with %s, which the VPC has already", block, other), "use another block"))
				whole = false
				break
			}
		}
		if why := restrictedBlock(first, block); why != "" && whole {
			c.fail(
				c.infra.Problem(
					path,
					fmt.Sprintf("%s: AWS does not add %s to a VPC with %s", block, why, first),
					"use a block of the same private range, or of 100.64.0.0/10",
				),
			)
		}
		all = append(all, block)
	}
	if n := len(vpc.SecondaryCidrBlocks); n > mostSecondaryBlocks {
		c.fail(
			c.infra.Problem(
				"spec.network.vpc.secondaryCidrBlocks",
				fmt.Sprintf("%d blocks: a VPC has at most %d beside the first one", n, mostSecondaryBlocks),
				"remove some",
			),
		)
	}
	if whole {
		c.checkSubnetBlocks(all)
	}
}

// checkIPv6Pool refuses a block of IPv6 addresses without a pool; with poolId, it is refused already.
func (c *checks) checkIPv6Pool(vpc *infrav1.VPCSpec) {
	if vpc.ID == "" && vpc.IPv6 != nil && vpc.IPv6.CidrBlock != "" && vpc.IPv6.PoolID == "" {
		c.fail(
			c.infra.Problem(
				"spec.network.vpc.ipv6.cidrBlock",
				"EC2 takes a block of IPv6 addresses only from a pool (Ipv6Pool of CreateVpc), and pools are not supported yet",
				"write ipv6: {} for a block from Amazon",
			),
		)
	}
}

// secondaryPath is the place of a secondary block; that of EKS has a field of its own.
func (c *checks) secondaryPath(i int) string {
	path := fmt.Sprintf("spec.network.vpc.secondaryCidrBlocks[%d].ipv4CidrBlock", i)
	if _, set := c.infra.Lines[path]; !set && c.managed {
		return "spec.secondaryCidrBlock"
	}
	return path
}

// ipv4Block reads the IPv4 block of a VPC or of a subnet, and reports what AWS does not accept.
func (c *checks) ipv4Block(path, text string) (block netip.Prefix, ok bool) {
	block, err := netip.ParsePrefix(text)
	switch {
	case text == "":
		return block, false
	case err != nil || !block.Addr().Is4():
		c.fail(c.infra.Problem(path, fmt.Sprintf("%q is not a block of IPv4 addresses such as %s", text, defaultBlock), "change it"))
	case block != block.Masked():
		c.fail(
			c.infra.Problem(
				path,
				fmt.Sprintf("%s is not the beginning of a block: AWS would make %s of it", text, block.Masked()),
				fmt.Sprintf("write %s", block.Masked()),
			),
		)
	case block.Bits() < widestBlock || block.Bits() > narrowestBlock:
		c.fail(c.infra.Problem(path, fmt.Sprintf("%s: AWS permits blocks of /%d to /%d", text, widestBlock, narrowestBlock), "change the number of bits"))
	case unusableBlock(block):
		c.fail(c.infra.Problem(path, text+" contains addresses that no machine can have", "use a private block, such as "+defaultBlock))
	default:
		return block, true
	}
	return block, false
}

// unusableBlock reports whether a block has loopback, link-local, multicast or reserved addresses
// (RFC 6890), for which a VPC has no use.
func unusableBlock(block netip.Prefix) bool {
	for _, reserved := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"} {
		if block.Overlaps(netip.MustParsePrefix(reserved)) {
			return true
		}
	}
	return false
}

// restrictedBlock says why AWS does not add a block to a VPC: "IPv4 CIDR block association
// restrictions" in the VPC user guide; "" if it does.
func restrictedBlock(first, block netip.Prefix) string {
	const shared, benchmark = "100.64.0.0/10", "198.19.0.0/16"
	private := []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}
	if within(first, benchmark) || within(block, benchmark) {
		return "a block of " + benchmark + " or to it"
	}
	for _, p := range private {
		if within(block, p) && !within(first, p) {
			return "a block of " + p
		}
	}
	if within(first, "10.0.0.0/15") && block == netip.MustParsePrefix("10.0.0.0/16") && !within(block, shared) {
		return "the block 10.0.0.0/16"
	}
	return ""
}

// checkSubnetBlocks checks the blocks of listed subnets against those of the VPC and each other.
func (c *checks) checkSubnetBlocks(vpc []netip.Prefix) {
	type placed struct {
		netip.Prefix
		path string
	}
	var all []placed
	for i, s := range c.cluster.Infra.Spec.NetworkSpec.Subnets {
		path := fmt.Sprintf("spec.network.subnets[%d].cidrBlock", i)
		block, ok := c.ipv4Block(path, s.CidrBlock)
		if s.CidrBlock == "" && s.IPv6CidrBlock == "" && !c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled() {
			c.fail(c.infra.Problem(fmt.Sprintf("spec.network.subnets[%d]", i), "the subnet has no addresses", "set cidrBlock"))
		}
		c.checkBalancerSubnet(i, s)
		if c.checkSubnetIPv6(i, s); !ok {
			continue
		}
		inside := false
		for _, v := range vpc {
			inside = inside || v.Overlaps(block) && v.Bits() <= block.Bits()
		}
		if !inside {
			c.fail(
				c.infra.Problem(
					path,
					fmt.Sprintf("%s is not within the VPC, %v", block, vpc),
					"use a part of the VPC, or add a block to spec.network.vpc.secondaryCidrBlocks",
				),
			)
		}
		for _, other := range all {
			if block.Overlaps(other.Prefix) {
				c.fail(c.infra.Problem(path, fmt.Sprintf("%s overlaps with %s of %s", block, other.Prefix, other.path), "change one of them"))
			}
		}
		all = append(all, placed{block, path})
	}
}

// checkBalancerSubnet refuses subnets without IPv6 addresses for the load balancer of a VPC that has them:
// it is of the IP address type dualstack ("Subnets" in CreateLoadBalancer, ELB API reference).
func (c *checks) checkBalancerSubnet(i int, s infrav1.SubnetSpec) {
	lb := c.cluster.Infra.Spec.ControlPlaneLoadBalancer
	if !c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled() || c.managed || lb == nil || lb.LoadBalancerType != infrav1.LoadBalancerTypeNLB || s.IsIPv6 ||
		s.IPv6CidrBlock != "" {
		return
	}
	if internal := lb.Scheme != nil && *lb.Scheme == infrav1.ELBSchemeInternal; internal != s.IsPublic {
		c.fail(
			c.infra.Problem(
				fmt.Sprintf("spec.network.subnets[%d]", i),
				"the load balancer has IPv6 addresses in its subnets, and this one has none",
				"set isIpv6: true, or remove spec.network.vpc.ipv6",
			),
		)
	}
}

// checkSubnetIPv6 checks the IPv6 block of a subnet, which is a /64 of the VPC's.
func (c *checks) checkSubnetIPv6(i int, s infrav1.SubnetSpec) {
	path := fmt.Sprintf("spec.network.subnets[%d].ipv6CidrBlock", i)
	block, err := netip.ParsePrefix(s.IPv6CidrBlock)
	switch at := fmt.Sprintf("spec.network.subnets[%d].isIpv6", i); {
	case s.IsIPv6 && s.IPv6CidrBlock == "" && !c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled():
		c.fail(c.infra.Problem(at, "the VPC has no IPv6 addresses", "set spec.network.vpc.ipv6: {}, or remove it"))
	case s.IPv6CidrBlock == "":
	case err != nil || !block.Addr().Is6() || block != block.Masked() || block.Bits() != subnetBitsIPv6:
		c.fail(
			c.infra.Problem(
				path,
				fmt.Sprintf("%q is not a block of IPv6 addresses with %d bits", s.IPv6CidrBlock, subnetBitsIPv6),
				"change it, or remove it to let the run choose",
			),
		)
	case !c.cluster.Infra.Spec.NetworkSpec.VPC.IsIPv6Enabled():
		c.fail(c.infra.Problem(path, "the VPC has no IPv6 addresses", "set spec.network.vpc.ipv6: {}, or remove the block"))
	}
}
