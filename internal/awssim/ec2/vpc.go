package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// BlocksPerVPC is the default quota of IPv4 CIDR blocks of a VPC.
const BlocksPerVPC = 5

// VPC is a virtual private cloud.
type VPC struct {
	Thing
	CIDR                     string
	Secondary                []Association
	IPv6                     *Association // from Amazon's pool
	Tenancy                  string
	DNSHostnames, DNSSupport bool
	Default                  bool
}

func (*VPC) kind() kind {
	return kind{
		prefix: "vpc", name: "vpc", missing: "InvalidVpcID.NotFound", tags: types.ResourceTypeVpc, title: "VPC",
		simulate: (*Service).simulateVPCs,
	}
}

func (v *VPC) name() string { return v.nameOr(v.CIDR) }

func (v *VPC) details(d printer) []string {
	secondary := core.Each(v.Secondary, func(b Association) string { return b.CIDR })
	return []string{
		fmt.Sprintf("CIDR %s %v", v.CIDR, slices.Sorted(slices.Values(secondary))), fmt.Sprintf("IPv6 %t", v.IPv6 != nil), "tenancy " + v.Tenancy,
		fmt.Sprintf("DNS hostnames %t support %t", v.DNSHostnames, v.DNSSupport), d.given(v),
	}
}

// Association is the association of a CIDR block with a VPC.
type Association struct {
	ID, CIDR string
	Born     time.Time
	Failed   string // why it fails; "" if it does not
}

func (svc *Service) simulateVPCs() {
	core.On(svc.Account, svc.createVPC, "CidrBlock", "AmazonProvidedIpv6CidrBlock", "InstanceTenancy", "TagSpecifications")
	core.On(svc.Account, svc.describeVPCs, "VpcIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.describeVPCAttribute, "VpcId", "Attribute")
	core.On(svc.Account, svc.modifyVPCAttribute, "VpcId", "EnableDnsHostnames", "EnableDnsSupport")
	core.On(svc.Account, svc.associateVPCCIDRBlock, "VpcId", "CidrBlock", "AmazonProvidedIpv6CidrBlock")
	core.On(svc.Account, svc.disassociateVPCCIDRBlock, "AssociationId")
	core.On(svc.Account, svc.deleteVPC, "VpcId")
}

// createVPC creates a VPC. The call has no client token, and a pending VPC can be used.
func (svc *Service) createVPC(in *ec2.CreateVpcInput) (*ec2.CreateVpcOutput, error) {
	s := svc.state
	tags, err := tagged(in.TagSpecifications, types.ResourceTypeVpc)
	if err != nil {
		return nil, err
	}
	block, err := vpcBlock(in.CidrBlock)
	if err != nil {
		return nil, err
	}
	tenancy := in.InstanceTenancy
	switch tenancy { //nolint:exhaustive // the others are rejected
	case "":
		tenancy = types.TenancyDefault
	case types.TenancyDefault, types.TenancyDedicated:
	default:
		return nil, core.Fail("InvalidParameterValue", "the tenancy value %s is not supported for VPCs", tenancy)
	}
	if len(s.VPCs) >= s.Limits.VPCs {
		return nil, core.Fail("VpcLimitExceeded", "the maximum number of VPCs has been reached")
	}
	v := &VPC{Thing: svc.newThing("vpc", tags), CIDR: block.String(), Tenancy: string(tenancy), DNSSupport: true}
	if aws.ToBool(in.AmazonProvidedIpv6CidrBlock) {
		v.IPv6 = svc.amazonBlock()
	}
	s.VPCs[v.ID] = v
	table := &RouteTable{Thing: svc.newThing("rtb", nil), VPC: v.ID, Main: svc.ID("rtbassoc"), Associations: map[string]string{}}
	s.RouteTables[table.ID] = table
	group := svc.NewGroup(v, "default", "default VPC security group", nil)
	group.Ingress = []Rule{{ID: svc.ID("sgr"), Protocol: "-1", From: -1, To: -1, Group: group.ID}}
	out := svc.vpcOut(v)
	return &ec2.CreateVpcOutput{Vpc: &out}, nil
}

// vpcBlock validates an IPv4 block of a VPC.
func vpcBlock(s *string) (netip.Prefix, error) {
	if aws.ToString(s) == "" {
		return netip.Prefix{}, core.Fail("MissingParameter", "the request must contain the parameter cidrBlock")
	}
	block, err := cidr(s)
	if err != nil {
		return block, err
	}
	if !block.Addr().Is4() || block.Bits() < 16 || block.Bits() > 28 {
		return block, core.Fail("InvalidVpc.Range", "the CIDR '%s' is invalid: it must be between /16 and /28", *s)
	}
	return block, nil
}

// amazonBlock returns the next free block of Amazon's IPv6 pool.
func (svc *Service) amazonBlock() *Association {
	id := svc.ID("vpc-cidr-assoc")
	n := svc.Serial()
	addr := netip.AddrFrom16([16]byte{0x26, 0x00, 0x1f, 0x18, byte(n >> 16), byte(n >> 8), byte(n)}) //nolint:gosec // bytes of a number
	return &Association{ID: id, CIDR: netip.PrefixFrom(addr, 56).String(), Born: svc.Now(), Failed: svc.state.BlockFailure}
}

// Blocks returns the IPv4 blocks of a VPC.
func (v *VPC) Blocks() []netip.Prefix {
	all := []netip.Prefix{prefix(v.CIDR)}
	for _, s := range v.Secondary {
		if s.Failed == "" {
			all = append(all, prefix(s.CIDR))
		}
	}
	return all
}

// primary returns the association ID of a VPC's first block.
func (v *VPC) primary() string { return "vpc-cidr-assoc-" + v.ID[len("vpc-"):] }

// ipv6 returns the IPv6 block of a VPC after it is associated.
func (svc *Service) ipv6(v *VPC) (netip.Prefix, bool) {
	if v.IPv6 == nil || v.IPv6.Failed != "" || svc.Now().Sub(v.IPv6.Born) < IPv6BlockTakes {
		return netip.Prefix{}, false
	}
	return prefix(v.IPv6.CIDR), true
}

func (svc *Service) vpcState(v *VPC) types.VpcState {
	if svc.Now().Sub(v.Born) < VPCTakes {
		return types.VpcStatePending
	}
	return types.VpcStateAvailable
}

func (svc *Service) blockState(s Association) *types.VpcCidrBlockState {
	if svc.Now().Sub(s.Born) < IPv6BlockTakes {
		return &types.VpcCidrBlockState{State: types.VpcCidrBlockStateCodeAssociating}
	}
	if s.Failed != "" {
		return &types.VpcCidrBlockState{State: types.VpcCidrBlockStateCode(svc.state.failed()), StatusMessage: &s.Failed}
	}
	return &types.VpcCidrBlockState{State: types.VpcCidrBlockStateCodeAssociated}
}

func (svc *Service) vpcOut(v *VPC) types.Vpc {
	out := types.Vpc{
		VpcId: aws.String(v.ID), CidrBlock: aws.String(v.CIDR), DhcpOptionsId: aws.String(GivenID("dopt", svc.Region, "")),
		InstanceTenancy: types.Tenancy(v.Tenancy), IsDefault: aws.Bool(v.Default), OwnerId: aws.String(svc.Number()), State: svc.vpcState(v), Tags: tagsOut(v.Tags),
		CidrBlockAssociationSet: []types.VpcCidrBlockAssociation{{
			AssociationId: aws.String(v.primary()), CidrBlock: aws.String(v.CIDR),
			CidrBlockState: &types.VpcCidrBlockState{State: types.VpcCidrBlockStateCodeAssociated},
		}},
	}
	for _, s := range v.Secondary {
		out.CidrBlockAssociationSet = append(out.CidrBlockAssociationSet, types.VpcCidrBlockAssociation{
			AssociationId: aws.String(s.ID), CidrBlock: aws.String(s.CIDR), CidrBlockState: svc.blockState(s),
		})
	}
	if v.IPv6 != nil {
		out.Ipv6CidrBlockAssociationSet = []types.VpcIpv6CidrBlockAssociation{svc.ipv6Out(v)}
	}
	return out
}

func (svc *Service) ipv6Out(v *VPC) types.VpcIpv6CidrBlockAssociation {
	block := ""
	if p, ok := svc.ipv6(v); ok {
		block = p.String()
	}
	return types.VpcIpv6CidrBlockAssociation{
		AssociationId: aws.String(v.IPv6.ID), Ipv6CidrBlock: aws.String(block), Ipv6CidrBlockState: svc.blockState(*v.IPv6),
		Ipv6Pool: aws.String("Amazon"), NetworkBorderGroup: aws.String(svc.Region),
	}
}

func (svc *Service) describeVPCs(in *ec2.DescribeVpcsInput) (*ec2.DescribeVpcsOutput, error) {
	blocks := func(v *VPC) []string { return core.Each(v.Blocks(), netip.Prefix.String) }
	vpcs, next, err := describe(svc, svc.state.VPCs, query{in.VpcIds, in.Filters, in.NextToken, in.MaxResults}, fields[*VPC]{
		"vpc-id":                            func(v *VPC) []string { return []string{v.ID} },
		"state":                             func(v *VPC) []string { return []string{string(svc.vpcState(v))} },
		"cidr":                              func(v *VPC) []string { return []string{v.CIDR} },
		"cidr-block-association.cidr-block": blocks,
		"is-default":                        func(v *VPC) []string { return flag(v.Default) },
		"owner-id":                          func(*VPC) []string { return []string{svc.Number()} },
	}, svc.vpcOut)
	return &ec2.DescribeVpcsOutput{Vpcs: vpcs, NextToken: next}, err
}

func (svc *Service) describeVPCAttribute(in *ec2.DescribeVpcAttributeInput) (*ec2.DescribeVpcAttributeOutput, error) {
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	if !svc.shows(v) {
		return nil, v.kind().notFound(v.ID)
	}
	out := &ec2.DescribeVpcAttributeOutput{VpcId: in.VpcId}
	switch in.Attribute { //nolint:exhaustive // the others are not simulated
	case types.VpcAttributeNameEnableDnsHostnames:
		out.EnableDnsHostnames = &types.AttributeBooleanValue{Value: aws.Bool(v.DNSHostnames)}
	case types.VpcAttributeNameEnableDnsSupport:
		out.EnableDnsSupport = &types.AttributeBooleanValue{Value: aws.Bool(v.DNSSupport)}
	default:
		return nil, core.NotSimulated("the VPC attribute %q", in.Attribute)
	}
	return out, nil
}

func (svc *Service) modifyVPCAttribute(in *ec2.ModifyVpcAttributeInput) (*ec2.ModifyVpcAttributeOutput, error) {
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	if err := core.Exactly(in.EnableDnsHostnames != nil, in.EnableDnsSupport != nil); err != nil {
		return nil, err
	}
	if in.EnableDnsHostnames != nil {
		v.DNSHostnames = aws.ToBool(in.EnableDnsHostnames.Value)
	} else {
		v.DNSSupport = aws.ToBool(in.EnableDnsSupport.Value)
	}
	return &ec2.ModifyVpcAttributeOutput{}, nil
}

func (svc *Service) associateVPCCIDRBlock(in *ec2.AssociateVpcCidrBlockInput) (*ec2.AssociateVpcCidrBlockOutput, error) {
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	if err := core.Exactly(in.CidrBlock != nil, aws.ToBool(in.AmazonProvidedIpv6CidrBlock)); err != nil {
		return nil, err
	}
	if in.CidrBlock == nil {
		if v.IPv6 != nil {
			return nil, core.Fail("CidrLimitExceeded", "this network '%s' has met its maximum number of allowed CIDRs: 1", v.ID)
		}
		v.IPv6 = svc.amazonBlock()
		out := svc.ipv6Out(v)
		return &ec2.AssociateVpcCidrBlockOutput{VpcId: in.VpcId, Ipv6CidrBlockAssociation: &out}, nil
	}
	block, err := vpcBlock(in.CidrBlock)
	if err != nil {
		return nil, err
	}
	switch {
	case slices.ContainsFunc(v.Blocks(), block.Overlaps), slices.ContainsFunc(v.Secondary, func(a Association) bool { return block.Overlaps(prefix(a.CIDR)) }):
		return nil, core.Fail("InvalidVpc.Range", "the CIDR '%s' conflicts with another one of the VPC", block)
	case len(v.Blocks()) >= BlocksPerVPC:
		return nil, core.Fail("CidrLimitExceeded", "this network '%s' has met its maximum number of allowed CIDRs: %d", v.ID, BlocksPerVPC)
	case restricted(prefix(v.CIDR), block):
		return nil, core.Fail("InvalidVpc.Range", "the CIDR '%s' is restricted: use one from the same private address range as the current VPC CIDR", block)
	}
	s := Association{ID: svc.ID("vpc-cidr-assoc"), CIDR: block.String(), Born: svc.Now(), Failed: svc.state.BlockFailure}
	v.Secondary = append(v.Secondary, s)
	return &ec2.AssociateVpcCidrBlockOutput{VpcId: in.VpcId, CidrBlockAssociation: &types.VpcCidrBlockAssociation{
		AssociationId: aws.String(s.ID), CidrBlock: aws.String(s.CIDR), CidrBlockState: svc.blockState(s),
	}}, nil
}

// restricted reports whether a VPC cannot have another block, because of the first one:
// some private ranges cannot be combined ("VPC CIDR blocks" in the user guide).
func restricted(first, other netip.Prefix) bool {
	for _, private := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"} {
		if p := prefix(private); p.Overlaps(other) && !p.Overlaps(first) {
			return slices.ContainsFunc([]string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}, func(s string) bool { return prefix(s).Overlaps(first) })
		}
	}
	return prefix("198.19.0.0/16").Overlaps(other)
}

func (svc *Service) disassociateVPCCIDRBlock(in *ec2.DisassociateVpcCidrBlockInput) (*ec2.DisassociateVpcCidrBlockOutput, error) {
	id := aws.ToString(in.AssociationId)
	for _, v := range svc.state.VPCs {
		used := func(block string) bool {
			return slices.ContainsFunc(svc.subnetsOf(v.ID), func(s *Subnet) bool {
				return s.CIDR != "" && within(prefix(block), prefix(s.CIDR)) || s.IPv6CIDR != "" && within(prefix(block), prefix(s.IPv6CIDR))
			})
		}
		if id == v.primary() {
			return nil, core.Fail(
				"OperationNotPermitted",
				"the vpc CIDR block with association ID %s may not be disassociated: it is the primary IPv4 CIDR block of the VPC",
				id,
			)
		}
		if v.IPv6 != nil && v.IPv6.ID == id {
			if used(v.IPv6.CIDR) {
				return nil, core.Fail("DependencyViolation", "the CIDR block %s has subnets in it", v.IPv6.CIDR)
			}
			v.IPv6 = nil
			return &ec2.DisassociateVpcCidrBlockOutput{VpcId: aws.String(v.ID)}, nil
		}
		for n, s := range v.Secondary {
			if s.ID != id {
				continue
			}
			if used(s.CIDR) {
				return nil, core.Fail("DependencyViolation", "the CIDR block %s has subnets in it", s.CIDR)
			}
			v.Secondary = slices.Delete(v.Secondary, n, n+1)
			return &ec2.DisassociateVpcCidrBlockOutput{VpcId: aws.String(v.ID)}, nil
		}
	}
	return nil, core.Fail("InvalidVpcCidrBlockAssociationIdError.NotFound", "the vpc CIDR block association ID '%s' does not exist", id)
}

// inVPC returns a resource that prevents the deletion of a VPC; "" for none.
func (svc *Service) inVPC(id string) string {
	for _, t := range svc.tables {
		for r := range t.all() {
			if r.keepsVPC() == id {
				return r.thing().ID
			}
		}
	}
	return ""
}

func (svc *Service) deleteVPC(in *ec2.DeleteVpcInput) (*ec2.DeleteVpcOutput, error) {
	s := svc.state
	v, err := lookup(svc, s.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	if user := svc.inVPC(v.ID); user != "" {
		return nil, core.Fail("DependencyViolation", "the vpc '%s' has dependencies and cannot be deleted: %s", v.ID, user)
	}
	for id, t := range s.RouteTables {
		if t.VPC == v.ID {
			delete(s.RouteTables, id)
		}
	}
	for id, g := range s.SecurityGroups {
		if g.VPC == v.ID {
			delete(s.SecurityGroups, id)
		}
	}
	delete(s.VPCs, v.ID)
	return &ec2.DeleteVpcOutput{}, nil
}

// VPC returns the VPC with an ID, or nil.
func (svc *Service) VPC(id string) *VPC { return svc.state.VPCs[id] }
