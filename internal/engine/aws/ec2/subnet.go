package ec2

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// SubnetKind is the kind of subnets.
const SubnetKind = "subnet"

// Subnet is a subnet of spec.network.subnets, or one of CAPA's default subnets.
type Subnet struct {
	VPC  *graph.Ref[VPCState]
	CIDR string // "" for an IPv6-only subnet
	Zone string
	// IPv6Index is the number of the /64 in the IPv6 block of the VPC; 0 for no IPv6.
	// IPv6CIDR takes precedence if it is set.
	IPv6Index int
	IPv6CIDR  string
	Public    bool // instances get public addresses
	// HostnameType is ip-name, resource-name, or "" for AWS's default.
	HostnameType string
	Tags         cloud.Tags
	// Advice says what to do about another block than the existing one, if the manifest does not name the block.
	Advice string
}

// SubnetState is a subnet, as AWS describes it.
type SubnetState struct {
	identity.Object
	VPC, CIDR, IPv6CIDR, Zone      string
	MapPublicIP, AssignIPv6, DNS64 bool
	HostnameType                   string
	Free                           int // IPv4 addresses
	failure                        string
}

// Failure implements graph.Failing.
func (s SubnetState) Failure() string { return s.failure }

var (
	_ graph.Managed[SubnetState]   = (*Subnet)(nil)
	_ graph.Explained[SubnetState] = (*Subnet)(nil)
)

// Needs implements graph.Desired.
func (s *Subnet) Needs() []graph.Edge {
	if s.ipv6() {
		return graph.On(s.VPC) // its IPv6 block is known when it is associated
	}
	return graph.Exists(s.VPC)
}

func (s *Subnet) ipv6() bool { return s.IPv6Index > 0 || s.IPv6CIDR != "" }

// Find implements graph.Desired.
func (s *Subnet) Find(ctx context.Context, c *cloud.Clients) (*SubnetState, error) {
	vpc, ok := s.VPC.Found()
	if !ok {
		return nil, nil
	}
	all, err := Subnets(ctx, c)
	if err != nil {
		return nil, err
	}
	var here []SubnetState
	for _, x := range all {
		if x.VPC == vpc.ID {
			here = append(here, x)
		}
	}
	return identity.Find(identity.PreferMatching(here, func(x SubnetState) bool { return x.CIDR == s.CIDR }), s.Tags)
}

// Diff implements graph.Desired.
func (s *Subnet) Diff(have *SubnetState) (d plan.Diff) {
	if have.failure != "" { // it may have machines
		d.Fixed("state", have.failure, string(types.SubnetStateAvailable))
		d.Advise(fmt.Sprintf("'aws ec2 delete-subnet --subnet-id %s' deletes it; then the next run creates it again", have.ID))
		return d
	}
	d.Fixed("cidr", have.CIDR, s.CIDR, s.Advice)
	d.Fixed("zone", have.Zone, s.Zone)
	d.Set("mapPublicIP", have.MapPublicIP, s.Public)
	if s.ipv6() {
		d.Fixed("ipv6", have.IPv6CIDR, s.wantIPv6())
		d.Set("assignIPv6", have.AssignIPv6, true)
		d.Set("dns64", have.DNS64, s.CIDR == "" && !s.Public)
	}
	if s.HostnameType != "" {
		d.Set("hostnameType", have.HostnameType, s.HostnameType)
	}
	d.Tags(have.Tags, s.Tags)
	return d
}

// wantIPv6 returns the IPv6 block of the subnet. As in CAPA, the eighth byte of the
// address is the number of the /64 in the block of the VPC.
func (s *Subnet) wantIPv6() string {
	if s.IPv6CIDR != "" {
		return s.IPv6CIDR
	}
	vpc, _ := s.VPC.Found()
	block, err := netip.ParsePrefix(vpc.IPv6CIDR)
	if err != nil {
		return plan.Unknown
	}
	b := block.Addr().As16()
	b[7] += byte(s.IPv6Index) //nolint:gosec // a /56 contains 256 subnets of /64
	return netip.PrefixFrom(netip.AddrFrom16(b), 64).String()
}

// Create implements graph.Creator.
func (s *Subnet) Create(ctx context.Context, c *cloud.Clients) (*SubnetState, error) {
	in := &ec2.CreateSubnetInput{
		VpcId:             aws.String(s.VPC.CloudID()),
		AvailabilityZone:  &s.Zone,
		TagSpecifications: s.Tags.On(types.ResourceTypeSubnet),
	}
	if s.CIDR != "" {
		in.CidrBlock = &s.CIDR
	} else {
		in.Ipv6Native = aws.Bool(true)
	}
	if s.ipv6() {
		in.Ipv6CidrBlock = aws.String(s.wantIPv6())
	}
	out, err := c.EC2.CreateSubnet(ctx, in, cloud.SendOnce)
	if err != nil {
		return nil, err
	}
	created := subnetState(*out.Subnet)
	created.Tags, created.IPv6CIDR = s.Tags, aws.ToString(in.Ipv6CidrBlock)
	return &created, nil
}

// CheckCreation implements graph.CheckedCreation: subnets of a VPC do not overlap (InvalidSubnet.Conflict in "Error codes for the
// Amazon EC2 API"). If the manifest changes the zone or isPublic of a subnet, the run creates another one.
func (s *Subnet) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	block, err := netip.ParsePrefix(s.CIDR)
	vpc := KnownVPC(s.VPC)
	if err != nil || vpc == "" {
		return "", nil //nolint:nilerr // an IPv6-only subnet has none
	}
	all, err := SubnetsOf(ctx, c, vpc)
	for _, x := range all {
		if x.CIDR == s.CIDR && len(x.Tags) == 0 {
			return fmt.Sprintf(
				"the subnet %s has this block, and no tags. If it is the cluster's, restore them: %s; otherwise use another block",
				x.ID,
				cloud.TagCommand(x.ID, c.OwnerTag(), cloud.Owned, cloud.ResourceTag, s.Tags[cloud.ResourceTag]),
			), nil
		}
		if other, bad := netip.ParsePrefix(x.CIDR); bad == nil && other.Overlaps(block) {
			return fmt.Sprintf(
				"cidrBlock %s overlaps with %s of the subnet %s (%s), which exists in the VPC: use another block, or what the subnet has",
				s.CIDR,
				x.CIDR,
				x.ID,
				cmp.Or(x.Tags["Name"], x.Zone),
			), nil
		}
	}
	return "", err
}

// Update implements graph.Updater. ModifySubnetAttribute accepts one attribute per call.
func (s *Subnet) Update(ctx context.Context, c *cloud.Clients, have *SubnetState, d plan.Diff) (*SubnetState, error) {
	after := *have
	set := func(field string, in *ec2.ModifySubnetAttributeInput, note func()) error {
		if !d.Has(field) {
			return nil
		}
		in.SubnetId = &have.ID
		_, err := c.EC2.ModifySubnetAttribute(ctx, in)
		if err == nil {
			note()
		}
		return err
	}
	value := func(b bool) *types.AttributeBooleanValue { return &types.AttributeBooleanValue{Value: &b} }
	dns64 := s.CIDR == "" && !s.Public
	for _, err := range []error{
		set("mapPublicIP", &ec2.ModifySubnetAttributeInput{MapPublicIpOnLaunch: value(s.Public)}, func() { after.MapPublicIP = s.Public }),
		set("assignIPv6", &ec2.ModifySubnetAttributeInput{AssignIpv6AddressOnCreation: value(true)}, func() { after.AssignIPv6 = true }),
		set("dns64", &ec2.ModifySubnetAttributeInput{EnableDns64: value(dns64)}, func() { after.DNS64 = dns64 }),
		set("hostnameType", &ec2.ModifySubnetAttributeInput{PrivateDnsHostnameTypeOnLaunch: types.HostnameType(s.HostnameType)}, func() { after.HostnameType = s.HostnameType }),
	} {
		if err != nil {
			return nil, err
		}
	}
	var err error
	if d.HasTags() {
		after.Object, err = changeTags(ctx, c, have.Object, s.Tags, d)
	}
	return &after, err
}

// Delete implements graph.Deleter.
func (s *Subnet) Delete(ctx context.Context, c *cloud.Clients, have *SubnetState) error {
	_, err := c.EC2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &have.ID})
	return err
}

// Blockers implements graph.Explained.
func (s *Subnet) Blockers(ctx context.Context, c *cloud.Clients, have *SubnetState) string {
	return blockingInterfaces(ctx, c, "subnet-id", have.ID)
}

// Subnets lists the subnets of the cluster.
func Subnets(ctx context.Context, c *cloud.Clients) ([]SubnetState, error) {
	return DescribeSubnets(ctx, c, "subnets", c.OwnedFilters())
}

// DescribeSubnets lists the subnets that match the filters; query is the key for
// cloud.Remember.
func DescribeSubnets(ctx context.Context, c *cloud.Clients, query string, filters []types.Filter) ([]SubnetState, error) {
	return cloud.Remember(ctx, c, query, func(ctx context.Context) ([]SubnetState, error) {
		p := ec2.NewDescribeSubnetsPaginator(c.EC2, &ec2.DescribeSubnetsInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeSubnetsOutput) (out []SubnetState) {
			for _, x := range o.Subnets {
				out = append(out, subnetState(x))
			}
			return out
		})
	})
}

func subnetState(x types.Subnet) SubnetState {
	s := SubnetState{
		Object: identity.Object{ID: aws.ToString(x.SubnetId), Tags: cloud.FromEC2(x.Tags)},
		VPC:    aws.ToString(x.VpcId), CIDR: aws.ToString(x.CidrBlock), Zone: aws.ToString(x.AvailabilityZone),
		MapPublicIP: aws.ToBool(x.MapPublicIpOnLaunch), AssignIPv6: aws.ToBool(x.AssignIpv6AddressOnCreation), DNS64: aws.ToBool(x.EnableDns64),
		Free: int(aws.ToInt32(x.AvailableIpAddressCount)),
	}
	for _, a := range x.Ipv6CidrBlockAssociationSet {
		state := a.Ipv6CidrBlockState
		if state == nil || state.State != types.SubnetCidrBlockStateCodeDisassociated {
			s.IPv6CIDR = aws.ToString(a.Ipv6CidrBlock)
		}
		if state != nil && (state.State == types.SubnetCidrBlockStateCodeFailing || state.State == types.SubnetCidrBlockStateCodeFailed) {
			s.failure = fmt.Sprintf("IPv6 block %s%s", state.State, text.Prefixed(": ", aws.ToString(state.StatusMessage)))
		}
	}
	if x.State == types.SubnetStateFailed || x.State == types.SubnetStateFailedInsufficientCapacity {
		s.failure = string(x.State)
	}
	if o := x.PrivateDnsNameOptionsOnLaunch; o != nil {
		s.HostnameType = string(o.HostnameType)
	}
	return s
}

// SubnetByID looks up an existing subnet in a VPC.
func SubnetByID(vpc *graph.Ref[VPCState], id string) graph.Lookup[SubnetState] {
	return func(ctx context.Context, c *cloud.Clients) (*SubnetState, error) {
		in := vpc.CloudID()
		if in == plan.Unknown {
			return nil, fmt.Errorf("subnet %s is not in the VPC, which the run creates: name a subnet of spec.network.subnets, or set spec.network.vpc.id", id)
		}
		all, err := DescribeSubnets(ctx, c, "subnets of "+in, []types.Filter{cloud.Filter("vpc-id", in)})
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			if x.ID == id {
				return &x, nil
			}
		}
		return nil, fmt.Errorf("subnet %s is not in VPC %s", id, in)
	}
}

// SubnetByBlock looks up the existing subnet of a VPC that has an IPv4 or IPv6 block.
func SubnetByBlock(vpc *graph.Ref[VPCState], block, ipv6 string) graph.Lookup[SubnetState] {
	return func(ctx context.Context, c *cloud.Clients) (*SubnetState, error) {
		in := vpc.CloudID()
		all, err := SubnetsOf(ctx, c, in)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			if x.HasBlock(block, ipv6) {
				return &x, nil
			}
		}
		return nil, fmt.Errorf("no subnet of VPC %s has the block %s", in, cmp.Or(block, ipv6))
	}
}

// HasBlock reports whether a subnet has an IPv4 or an IPv6 block. "" is none.
func (s SubnetState) HasBlock(block, ipv6 string) bool {
	return block != "" && s.CIDR == block || ipv6 != "" && s.IPv6CIDR == ipv6
}

// SubnetsOf lists all subnets of a VPC, owned or not.
func SubnetsOf(ctx context.Context, c *cloud.Clients, vpc string) ([]SubnetState, error) {
	return DescribeSubnets(ctx, c, "subnets of "+vpc, []types.Filter{cloud.Filter("vpc-id", vpc)})
}

// subnetKind declares subnets.
func subnetKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: SubnetKind, Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeSubnet,
		ReadActions: []string{"ec2:DescribeSubnets"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateSubnet", "ec2:CreateTags", "ec2:DeleteSubnet", "ec2:DeleteTags", "ec2:ModifySubnetAttribute"},
	}, kind.Functions[SubnetState]{
		List: kind.Tagged(Subnets), Delete: &Subnet{},
		Refers:  func(s SubnetState) []string { return []string{s.VPC} },
		Aliases: func(s SubnetState) []string { return []string{SubnetsAlias(s.VPC)} },
		InVPC:   SubnetsOf,
		Status:  func(s SubnetState) (state, detail string) { return "", kind.Join(s.CIDR, s.IPv6CIDR) },
	})
}

// SubnetsAlias is an alias of all subnets of a VPC (kind.Functions.Aliases).
func SubnetsAlias(vpc string) string { return "subnets of " + vpc }

// SubnetByFilters looks up the first existing subnet that matches EC2 filters and, if
// given, the zone (CAPA: spec.subnet.filters). Subnets of the cluster's VPC come first.
func SubnetByFilters(vpc *graph.Ref[VPCState], filters map[string][]string, zone string) graph.Lookup[SubnetState] {
	return func(ctx context.Context, c *cloud.Clients) (*SubnetState, error) {
		query, ec2Filters := filterList(filters)
		all, err := DescribeSubnets(ctx, c, "subnets "+query, ec2Filters)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(slices.Clone(all), func(s SubnetState) bool { return zone != "" && s.Zone != zone })
		slices.SortStableFunc(all, func(a, b SubnetState) int {
			return cmp.Or(identity.TrueFirst(a.VPC == vpc.CloudID(), b.VPC == vpc.CloudID()), cmp.Compare(a.ID, b.ID))
		})
		switch {
		case len(all) == 0:
			return nil, fmt.Errorf("no subnet matches %s%s", query, text.Prefixed(" in ", zone))
		case all[0].VPC != vpc.CloudID(): // the security groups of the machine are in the VPC of the cluster
			return nil, fmt.Errorf("no subnet of the cluster's VPC matches %s%s: %s does, in the VPC %s", query, text.Prefixed(" in ", zone), all[0].ID, all[0].VPC)
		}
		return &all[0], nil
	}
}

// SubnetsWith lists the subnets that match all filters. A filter may be repeated.
func SubnetsWith(ctx context.Context, c *cloud.Clients, filters []types.Filter) ([]SubnetState, error) {
	query := "subnets"
	for _, f := range filters {
		query += fmt.Sprintf(" %s=%s", aws.ToString(f.Name), strings.Join(f.Values, ","))
	}
	return DescribeSubnets(ctx, c, query, filters)
}

// zonesOfSubnets returns the zone of every subnet in the region.
func zonesOfSubnets(ctx context.Context, c *cloud.Clients) (map[string]string, error) {
	zones, p := map[string]string{}, ec2.NewDescribeSubnetsPaginator(c.EC2, &ec2.DescribeSubnetsInput{})
	ctx = cloud.Listing(ctx)
	for p.HasMorePages() {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Subnets {
			zones[aws.ToString(s.SubnetId)] = aws.ToString(s.AvailabilityZone)
		}
	}
	return zones, nil
}
