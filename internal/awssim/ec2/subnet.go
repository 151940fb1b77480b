package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Subnet is a subnet of a VPC.
type Subnet struct {
	Thing
	VPC, CIDR, IPv6CIDR, Zone               string
	MapPublicIP, AssignIPv6, DNS64, Default bool
	Native                                  bool   // IPv6 only
	HostnameType                            string // ip-name or resource-name
	ResourceNameA, ResourceNameAAAA         bool
	Next                                    int    // number of the next address to try
	State, BlockFailure                     string // a state that is not available; why the IPv6 block fails
}

func (*Subnet) kind() kind {
	return kind{
		prefix: "subnet", name: "subnet", missing: "InvalidSubnetID.NotFound", tags: types.ResourceTypeSubnet, title: "Subnet",
		simulate: (*Service).simulateSubnets,
	}
}

func (s *Subnet) name() string { return s.nameOr(cmp.Or(s.CIDR, "IPv6-only")) }

func (s *Subnet) keepsVPC() string { return s.VPC }

// details contain the number of an IPv6 block within that of the VPC, because Amazon
// chooses the block.
func (s *Subnet) details(printer) []string {
	place := "none"
	if s.IPv6CIDR != "" {
		place = fmt.Sprintf("%d", prefix(s.IPv6CIDR).Addr().As16()[7])
	}
	return []string{
		s.VPC,
		fmt.Sprintf("CIDR %s IPv6 %s only %t", s.CIDR, place, s.Native),
		s.Zone,
		fmt.Sprintf("public addresses %t", s.MapPublicIP),
		fmt.Sprintf("assigns IPv6 %t", s.AssignIPv6),
		fmt.Sprintf("DNS64 %t", s.DNS64),
		fmt.Sprintf("hostnames %s A %t AAAA %t", s.HostnameType, s.ResourceNameA, s.ResourceNameAAAA),
	}
}

func (svc *Service) simulateSubnets() {
	core.On(svc.Account, svc.createSubnet, "VpcId", "CidrBlock", "Ipv6CidrBlock", "Ipv6Native", "AvailabilityZone", "TagSpecifications")
	core.On(svc.Account, svc.describeSubnets, "SubnetIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.modifySubnetAttribute, "SubnetId", "AssignIpv6AddressOnCreation", "MapPublicIpOnLaunch", "EnableDns64",
		"EnableResourceNameDnsARecordOnLaunch", "EnableResourceNameDnsAAAARecordOnLaunch", "PrivateDnsHostnameTypeOnLaunch")
	core.On(svc.Account, svc.deleteSubnet, "SubnetId")
}

// createSubnet creates a subnet. Without a zone, AWS chooses one; here the call is
// rejected. The call has no client token.
func (svc *Service) createSubnet(in *ec2.CreateSubnetInput) (*ec2.CreateSubnetOutput, error) {
	tags, err := tagged(in.TagSpecifications, types.ResourceTypeSubnet)
	if err != nil {
		return nil, err
	}
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	z, ok := svc.zone(cmp.Or(aws.ToString(in.AvailabilityZone), svc.zones()[0].name)) // AWS selects one, and does not say which
	if !ok {
		return nil, core.Fail("InvalidParameterValue", "value (%s) for parameter availabilityZone is invalid", aws.ToString(in.AvailabilityZone))
	}
	s := &Subnet{
		VPC:          v.ID,
		Zone:         z.name,
		Native:       aws.ToBool(in.Ipv6Native),
		HostnameType: string(types.HostnameTypeIpName),
		State:        svc.state.SubnetState,
		BlockFailure: svc.state.SubnetFailure,
	}
	if s.CIDR, err = svc.subnetBlock(v, in); err != nil {
		return nil, err
	}
	if s.IPv6CIDR, err = svc.subnetIPv6(v, in); err != nil {
		return nil, err
	}
	if s.Native {
		s.HostnameType = string(types.HostnameTypeResourceName)
	}
	s.Thing = svc.newThing("subnet", tags)
	svc.state.Subnets[s.ID] = s
	out := svc.subnetOut(s)
	return &ec2.CreateSubnetOutput{Subnet: &out}, nil
}

// subnetBlock validates the IPv4 block of a new subnet.
func (svc *Service) subnetBlock(v *VPC, in *ec2.CreateSubnetInput) (string, error) {
	native := aws.ToBool(in.Ipv6Native)
	if native != (in.CidrBlock == nil) {
		return "", core.Fail("InvalidParameterCombination", "a subnet has an IPv4 CIDR block, or is IPv6-only")
	}
	if native {
		return "", nil
	}
	block, err := cidr(in.CidrBlock)
	if err != nil {
		return "", err
	}
	inside := false
	for _, b := range v.Blocks() {
		inside = inside || within(b, block)
	}
	if !inside || !block.Addr().Is4() || block.Bits() < 16 || block.Bits() > 28 {
		return "", core.Fail("InvalidSubnet.Range", "the CIDR '%s' is invalid", block)
	}
	for _, other := range svc.subnetsOf(v.ID) {
		if other.CIDR != "" && prefix(other.CIDR).Overlaps(block) {
			return "", core.Fail("InvalidSubnet.Conflict", "the CIDR '%s' conflicts with another subnet", block)
		}
	}
	return block.String(), nil
}

// subnetIPv6 validates the IPv6 block of a new subnet, a /64.
func (svc *Service) subnetIPv6(v *VPC, in *ec2.CreateSubnetInput) (string, error) {
	if in.Ipv6CidrBlock == nil {
		if aws.ToBool(in.Ipv6Native) {
			return "", core.Fail("MissingParameter", "an IPv6-only subnet needs the parameter ipv6CidrBlock")
		}
		return "", nil
	}
	block, err := cidr(in.Ipv6CidrBlock)
	if err != nil {
		return "", err
	}
	outer, ok := svc.ipv6(v)
	if !ok || !within(outer, block) || block.Bits() != 64 {
		return "", core.Fail("InvalidSubnet.Range", "the CIDR '%s' is invalid", block)
	}
	for _, other := range svc.subnetsOf(v.ID) {
		if other.IPv6CIDR == block.String() {
			return "", core.Fail("InvalidSubnet.Conflict", "the CIDR '%s' conflicts with another subnet", block)
		}
	}
	return block.String(), nil
}

func (svc *Service) subnetsOf(vpc string) (all []*Subnet) {
	for _, s := range svc.state.Subnets {
		if s.VPC == vpc {
			all = append(all, s)
		}
	}
	return all
}

// reserved is the number of addresses in a subnet that AWS reserves: the first four and
// the last.
const reserved = 5

// Free returns the number of free IPv4 addresses of a subnet.
func (svc *Service) Free(s *Subnet) int { return svc.freeAddresses(s) }

// freeAddresses returns the number of free IPv4 addresses of a subnet.
func (svc *Service) freeAddresses(s *Subnet) int {
	if s.CIDR == "" {
		return 0
	}
	free := 1<<(32-prefix(s.CIDR).Bits()) - reserved
	for _, n := range svc.state.Interfaces {
		if n.Subnet == s.ID && n.PrivateIP != "" {
			free--
		}
	}
	return free
}

// address takes the next free IPv4 address of a subnet; "" if there is none.
func (svc *Service) address(s *Subnet) string {
	if s.CIDR == "" {
		return ""
	}
	block := prefix(s.CIDR)
	size := 1 << (32 - block.Bits())
	taken := map[string]bool{}
	for _, n := range svc.state.Interfaces {
		if n.Subnet == s.ID {
			taken[n.PrivateIP] = true
		}
	}
	for range size {
		s.Next++
		if s.Next < reserved-1 || s.Next > size-2 {
			s.Next = reserved - 1
		}
		if ip := nthAddress(block, s.Next); !taken[ip] {
			return ip
		}
	}
	return ""
}

// nthAddress returns the n-th address of a block, counted from 0.
func nthAddress(block netip.Prefix, n int) string {
	b := block.Addr().As4()
	for at := 3; at >= 0; at-- {
		n += int(b[at])
		b[at] = byte(n) //nolint:gosec // the lowest byte
		n >>= 8
	}
	return netip.AddrFrom4(b).String()
}

// ipv6Address takes the next IPv6 address of a subnet.
func (svc *Service) ipv6Address(s *Subnet) string {
	b := prefix(s.IPv6CIDR).Addr().As16()
	for at, n := 15, svc.NextSerial(); at > 11; at, n = at-1, n>>8 {
		b[at] = byte(n) //nolint:gosec // the lowest byte
	}
	return netip.AddrFrom16(b).String()
}

func (svc *Service) subnetOut(s *Subnet) types.Subnet {
	out := types.Subnet{
		SubnetId: aws.String(s.ID), VpcId: aws.String(s.VPC), CidrBlock: core.Text(s.CIDR), AvailabilityZone: aws.String(s.Zone),
		AvailableIpAddressCount: aws.Int32(int32(svc.freeAddresses(s))), //nolint:gosec // at most 65,531
		State:                   types.SubnetState(cmp.Or(s.State, string(types.SubnetStateAvailable))), OwnerId: aws.String(svc.Number()),
		SubnetArn:    aws.String(svc.RegionalARN("ec2", "subnet/"+s.ID)),
		DefaultForAz: aws.Bool(s.Default), MapPublicIpOnLaunch: aws.Bool(s.MapPublicIP), AssignIpv6AddressOnCreation: aws.Bool(s.AssignIPv6),
		EnableDns64: aws.Bool(s.DNS64), Ipv6Native: aws.Bool(s.Native), MapCustomerOwnedIpOnLaunch: aws.Bool(false), Tags: tagsOut(s.Tags),
		PrivateDnsNameOptionsOnLaunch: &types.PrivateDnsNameOptionsOnLaunch{
			HostnameType: types.HostnameType(s.HostnameType), EnableResourceNameDnsARecord: aws.Bool(s.ResourceNameA),
			EnableResourceNameDnsAAAARecord: aws.Bool(s.ResourceNameAAAA),
		},
	}
	if z, ok := svc.zone(s.Zone); ok {
		out.AvailabilityZoneId = aws.String(z.id)
	}
	if s.IPv6CIDR != "" {
		state := types.SubnetCidrBlockStateCodeAssociated
		switch {
		case svc.Now().Sub(s.Born) < SubnetIPv6Takes:
			state = types.SubnetCidrBlockStateCodeAssociating
		case s.BlockFailure != "":
			state = types.SubnetCidrBlockStateCode(svc.state.failed())
		}
		out.Ipv6CidrBlockAssociationSet = []types.SubnetIpv6CidrBlockAssociation{{
			AssociationId: aws.String("subnet-cidr-assoc-" + s.ID[len("subnet-"):]), Ipv6CidrBlock: aws.String(s.IPv6CIDR),
			Ipv6CidrBlockState: &types.SubnetCidrBlockState{State: state, StatusMessage: core.Text(s.BlockFailure)},
		}}
	}
	return out
}

func (svc *Service) describeSubnets(in *ec2.DescribeSubnetsInput) (*ec2.DescribeSubnetsOutput, error) {
	zone := func(s *Subnet) []string { return []string{s.Zone} }
	block := func(s *Subnet) []string { return oneValue(s.CIDR) }
	byDefault := func(s *Subnet) []string { return flag(s.Default) }
	subnets, next, err := describe(svc, svc.state.Subnets, query{in.SubnetIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Subnet]{
		"subnet-id":               func(s *Subnet) []string { return []string{s.ID} },
		"vpc-id":                  func(s *Subnet) []string { return []string{s.VPC} },
		"state":                   func(*Subnet) []string { return []string{"available"} },
		"availability-zone":       zone,
		"availabilityZone":        zone,
		"cidr":                    block,
		"cidr-block":              block,
		"cidrBlock":               block,
		"default-for-az":          byDefault,
		"defaultForAz":            byDefault,
		"map-public-ip-on-launch": func(s *Subnet) []string { return flag(s.MapPublicIP) },
		"ipv6-native":             func(s *Subnet) []string { return flag(s.Native) },
		"owner-id":                func(*Subnet) []string { return []string{svc.Number()} },
		"ipv6-cidr-block-association.ipv6-cidr-block": func(s *Subnet) []string { return oneValue(s.IPv6CIDR) },
	}, svc.subnetOut)
	return &ec2.DescribeSubnetsOutput{Subnets: subnets, NextToken: next}, err
}

// modifySubnetAttribute changes one attribute: AWS rejects calls with several.
func (svc *Service) modifySubnetAttribute(in *ec2.ModifySubnetAttributeInput) (*ec2.ModifySubnetAttributeOutput, error) {
	s, err := lookup(svc, svc.state.Subnets, in.SubnetId)
	if err != nil {
		return nil, err
	}
	if err := core.Exactly(in.AssignIpv6AddressOnCreation != nil, in.MapPublicIpOnLaunch != nil, in.EnableDns64 != nil,
		in.EnableResourceNameDnsARecordOnLaunch != nil, in.EnableResourceNameDnsAAAARecordOnLaunch != nil,
		in.PrivateDnsHostnameTypeOnLaunch != ""); err != nil {
		return nil, err
	}
	on := func(v *types.AttributeBooleanValue) bool { return aws.ToBool(v.Value) }
	needsIPv6 := func(v *types.AttributeBooleanValue) error {
		if on(v) && s.IPv6CIDR == "" {
			return core.Fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", s.ID)
		}
		return nil
	}
	switch {
	case in.AssignIpv6AddressOnCreation != nil:
		err = needsIPv6(in.AssignIpv6AddressOnCreation)
		s.AssignIPv6 = err == nil && on(in.AssignIpv6AddressOnCreation)
	case in.EnableDns64 != nil:
		err = needsIPv6(in.EnableDns64)
		s.DNS64 = err == nil && on(in.EnableDns64)
	case in.MapPublicIpOnLaunch != nil:
		if z, _ := svc.zone(s.Zone); z.wavelength && on(in.MapPublicIpOnLaunch) { // they have carrier IP addresses; the error code is not verified
			return nil, core.Fail("InvalidParameterValue", "subnets in Wavelength Zones assign no public addresses")
		}
		if s.Native && on(in.MapPublicIpOnLaunch) {
			return nil, core.Fail("InvalidParameterValue", "the subnet %s is IPv6-only", s.ID)
		}
		s.MapPublicIP = on(in.MapPublicIpOnLaunch)
	case in.EnableResourceNameDnsARecordOnLaunch != nil:
		s.ResourceNameA = on(in.EnableResourceNameDnsARecordOnLaunch)
	case in.EnableResourceNameDnsAAAARecordOnLaunch != nil:
		err = needsIPv6(in.EnableResourceNameDnsAAAARecordOnLaunch)
		s.ResourceNameAAAA = err == nil && on(in.EnableResourceNameDnsAAAARecordOnLaunch)
	default:
		return &ec2.ModifySubnetAttributeOutput{}, s.setHostnameType(in.PrivateDnsHostnameTypeOnLaunch)
	}
	return &ec2.ModifySubnetAttributeOutput{}, err
}

func (s *Subnet) setHostnameType(t types.HostnameType) error {
	if t != types.HostnameTypeIpName && t != types.HostnameTypeResourceName || s.Native && t == types.HostnameTypeIpName {
		return core.Fail("InvalidParameterValue", "value (%s) for parameter privateDnsHostnameTypeOnLaunch is invalid", t)
	}
	s.HostnameType = string(t)
	return nil
}

func (svc *Service) deleteSubnet(in *ec2.DeleteSubnetInput) (*ec2.DeleteSubnetOutput, error) {
	s, err := lookup(svc, svc.state.Subnets, in.SubnetId)
	if err != nil {
		return nil, err
	}
	for _, n := range svc.state.Interfaces {
		if n.Subnet == s.ID {
			return nil, core.Fail("DependencyViolation", "the subnet '%s' has dependencies and cannot be deleted: %s", s.ID, n.ID)
		}
	}
	for _, n := range svc.state.NATGateways {
		if n.Subnet == s.ID && !n.dead(svc.Now()) {
			return nil, core.Fail("DependencyViolation", "the subnet '%s' has dependencies and cannot be deleted: %s", s.ID, n.ID)
		}
	}
	for _, t := range svc.state.RouteTables {
		for id, subnet := range t.Associations {
			if subnet == s.ID {
				delete(t.Associations, id)
			}
		}
	}
	delete(svc.state.Subnets, s.ID)
	return &ec2.DeleteSubnetOutput{}, nil
}

// Subnet returns the subnet with an ID, or nil.
func (svc *Service) Subnet(id string) *Subnet { return svc.state.Subnets[id] }

// Subnets lists the subnets, sorted by ID.
func (svc *Service) Subnets() []*Subnet { return core.ByKey(svc.state.Subnets) }

// ZoneOf returns the zone of a subnet.
func (svc *Service) ZoneOf(subnet string) string {
	if s, ok := svc.state.Subnets[subnet]; ok {
		return s.Zone
	}
	return ""
}

// LeadsToInternetGateway reports whether a subnet's own route table has a route to an
// internet gateway.
func (svc *Service) LeadsToInternetGateway(s *Subnet) bool {
	for _, t := range svc.state.RouteTables {
		own := slices.Contains(slices.Collect(maps.Values(t.Associations)), s.ID)
		if own && slices.ContainsFunc(t.Routes, func(r Route) bool { return prefixOf(r.Target) == "igw" }) {
			return true
		}
	}
	return false
}
