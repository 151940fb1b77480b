package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// VPC is a virtual private cloud with DNS (CAPA: spec.network.vpc).
type VPC struct {
	CIDR string
	IPv6 bool // with a /56 block that Amazon provides
	Tags cloud.Tags
}

// VPCState is a VPC, as AWS describes it.
type VPCState struct {
	identity.Object
	CIDR, IPv6CIDR           string
	IPv6State                string
	IPv6Association          string
	IPv6Failure              string                   // its state and reason, if AWS could not associate the block
	FailedBlocks             map[string]VPCBlockState // secondary blocks that AWS could not associate, by CIDR
	Blocks                   map[string]string        // association IDs of the secondary IPv4 blocks, by CIDR
	DNSHostnames, DNSSupport bool
	Spare                    []string // IDs of empty VPCs with the same identity
}

var (
	_ graph.Managed[VPCState]   = (*VPC)(nil)
	_ graph.Explained[VPCState] = (*VPC)(nil)
	_ graph.Timed               = (*VPC)(nil)
)

// Needs implements graph.Desired.
func (v *VPC) Needs() []graph.Edge { return nil }

// Takes implements graph.Timed.
func (v *VPC) Takes() (create, remove time.Duration) {
	if v.IPv6 {
		return blockTakes, 0
	}
	return 0, 0
}

// Find implements graph.Desired.
func (v *VPC) Find(ctx context.Context, c *cloud.Clients) (*VPCState, error) {
	s, spare, err := v.find(ctx, c)
	if s == nil {
		return s, err
	}
	s.Spare = spare
	return s, s.describeAttributes(ctx, c)
}

// Identify implements graph.Identified.
func (v *VPC) Identify(ctx context.Context, c *cloud.Clients, _ *VPCState) (*VPCState, error) {
	s, _, err := v.find(ctx, c)
	return s, err
}

func (v *VPC) find(ctx context.Context, c *cloud.Clients) (s *VPCState, spare []string, err error) {
	all, err := VPCs(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	var owned []VPCState
	for _, x := range all {
		if s := vpcState(x); s.IsOwned(c) {
			owned = append(owned, s)
		} else if s.Tags["Name"] == v.Tags["Name"] {
			return nil, nil, fmt.Errorf("VPC %s is named %s, but does not have the tag %s=%s: add the tag, or set spec.network.vpc.id to use it as an existing VPC",
				s.ID, s.Tags["Name"], c.OwnerTag(), cloud.Owned)
		}
	}
	return identity.FindUsed(owned, v.Tags, func(x VPCState) (bool, error) { return hasContent(ctx, c, x.ID) })
}

// hasContent reports whether something is in a VPC that AWS has not created with it.
func hasContent(ctx context.Context, c *cloud.Clients, vpc string) (bool, error) {
	subnets, err := SubnetsOf(ctx, c, vpc)
	if len(subnets) > 0 || err != nil {
		return true, err
	}
	groups, err := groupsInVPC(ctx, c, vpc)
	if len(groups) > 0 || err != nil {
		return true, err
	}
	gateways, err := InternetGateways(ctx, c)
	return slices.ContainsFunc(gateways, func(g InternetGatewayState) bool { return g.VPC == vpc }), err
}

// Diff implements graph.Desired.
func (v *VPC) Diff(have *VPCState) (d plan.Diff) {
	if v.IPv6 {
		if have.Failure() != "" {
			d.Set("ipv6", have.Failure(), "associated again")
			return d
		}
		d.Await("ipv6", have.IPv6State, string(types.VpcCidrBlockStateCodeAssociated))
	}
	d.Fixed("cidr", have.CIDR, v.CIDR)
	d.Set("dnsSupport", have.DNSSupport, true)
	d.Set("dnsHostnames", have.DNSHostnames, true)
	d.Set("duplicate", strings.Join(have.Spare, ", "), "")
	d.Tags(have.Tags, v.Tags)
	return d
}

// Create implements graph.Creator.
func (v *VPC) Create(ctx context.Context, c *cloud.Clients) (*VPCState, error) {
	in := &ec2.CreateVpcInput{CidrBlock: &v.CIDR, TagSpecifications: v.Tags.On(types.ResourceTypeVpc)}
	if v.IPv6 {
		in.AmazonProvidedIpv6CidrBlock = aws.Bool(true)
	}
	out, err := c.EC2.CreateVpc(ctx, in, cloud.SendOnce)
	if err != nil {
		return nil, err
	}
	s := vpcState(*out.Vpc)
	s.Tags, s.DNSSupport = v.Tags, true // the default of a new VPC; DNS host names are off
	return &s, nil
}

// Update implements graph.Updater.
func (v *VPC) Update(ctx context.Context, c *cloud.Clients, have *VPCState, d plan.Diff) (*VPCState, error) {
	if d.Has("ipv6") {
		return nil, v.associateAgain(ctx, c, have)
	}
	after, yes := *have, &types.AttributeBooleanValue{Value: aws.Bool(true)}
	if d.Has("dnsSupport") {
		if _, err := c.EC2.ModifyVpcAttribute(ctx, &ec2.ModifyVpcAttributeInput{VpcId: &have.ID, EnableDnsSupport: yes}); err != nil {
			return nil, err
		}
		after.DNSSupport = true
	}
	if d.Has("dnsHostnames") {
		if _, err := c.EC2.ModifyVpcAttribute(ctx, &ec2.ModifyVpcAttributeInput{VpcId: &have.ID, EnableDnsHostnames: yes}); err != nil {
			return nil, err
		}
		after.DNSHostnames = true
	}
	if d.Has("duplicate") {
		for _, id := range have.Spare { // AWS refuses to delete a VPC that something is in
			if _, err := c.EC2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &id}); cloud.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("duplicate %s: %w", id, err)
			}
		}
		after.Spare = nil
	}
	var err error
	if d.HasTags() {
		after.Object, err = changeTags(ctx, c, have.Object, v.Tags, d)
	}
	return &after, err
}

// associateAgain replaces an IPv6 block that AWS could not associate.
func (v *VPC) associateAgain(ctx context.Context, c *cloud.Clients, have *VPCState) error {
	_, err := c.EC2.DisassociateVpcCidrBlock(ctx, &ec2.DisassociateVpcCidrBlockInput{AssociationId: &have.IPv6Association})
	if cloud.IgnoreNotFound(err) != nil {
		return err
	}
	_, err = c.EC2.AssociateVpcCidrBlock(ctx, &ec2.AssociateVpcCidrBlockInput{VpcId: &have.ID, AmazonProvidedIpv6CidrBlock: aws.Bool(true)}, cloud.SendOnce)
	return err
}

// Failure implements graph.Failing.
func (s VPCState) Failure() string { return s.IPv6Failure }

// Delete implements graph.Deleter.
func (v *VPC) Delete(ctx context.Context, c *cloud.Clients, have *VPCState) error {
	_, err := c.EC2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &have.ID})
	return err
}

// Blockers implements graph.Explained.
func (v *VPC) Blockers(ctx context.Context, c *cloud.Clients, have *VPCState) string {
	var names []string
	if in := blockingInterfaces(ctx, c, "vpc-id", have.ID); in != "" {
		names = append(names, in)
	}
	all, err := SecurityGroups(ctx, c, have.ID)
	if err != nil {
		return ""
	}
	for _, g := range all {
		if g.Name != "default" { // deleted with the VPC
			names = append(names, fmt.Sprintf("%s (security group %s)", g.ID, g.Name))
		}
	}
	return strings.Join(names, ", ")
}

// VPCs lists all VPCs of the region, because their number counts against a quota.
func VPCs(ctx context.Context, c *cloud.Clients) ([]types.Vpc, error) {
	return cloud.Remember(ctx, c, "VPCs", func(ctx context.Context) ([]types.Vpc, error) {
		p := ec2.NewDescribeVpcsPaginator(c.EC2, &ec2.DescribeVpcsInput{})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeVpcsOutput) []types.Vpc { return o.Vpcs })
	})
}

// countVPCs returns the number of VPCs in the region.
func countVPCs(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	all, err := VPCs(ctx, c)
	return map[string]int{"": len(all)}, err
}

// OwnedVPCs returns the IDs of the VPCs that the cluster owns: of several with the owned
// tag, those with an identity tag. If there are none, there are no resources in them to
// search for.
func OwnedVPCs(ctx context.Context, c *cloud.Clients) (ids []string, err error) {
	all, err := ownedVPCs(ctx, c)
	identified := func(v VPCState) bool { return v.Tags[cloud.ResourceTag] != "" }
	some := slices.ContainsFunc(all, identified)
	for _, v := range all {
		if identified(v) || !some {
			ids = append(ids, v.ID)
		}
	}
	return ids, err
}

// vpcState returns a VPC as DescribeVpcs returns it.
func vpcState(x types.Vpc) VPCState {
	s := VPCState{
		Object:       identity.Object{ID: aws.ToString(x.VpcId), Tags: cloud.FromEC2(x.Tags)},
		CIDR:         aws.ToString(x.CidrBlock),
		Blocks:       map[string]string{},
		FailedBlocks: map[string]VPCBlockState{},
	}
	for _, a := range x.Ipv6CidrBlockAssociationSet {
		if a.Ipv6CidrBlockState == nil || a.Ipv6CidrBlockState.State == types.VpcCidrBlockStateCodeDisassociated ||
			s.IPv6State == string(types.VpcCidrBlockStateCodeAssociated) {
			continue
		}
		s.IPv6CIDR, s.IPv6State, s.IPv6Association = aws.ToString(a.Ipv6CidrBlock), string(a.Ipv6CidrBlockState.State), aws.ToString(a.AssociationId)
		s.IPv6Failure = blockFailure(a.Ipv6CidrBlockState)
	}
	for _, a := range x.CidrBlockAssociationSet {
		block := aws.ToString(a.CidrBlock)
		if block == s.CIDR || a.CidrBlockState == nil {
			continue
		}
		if why := blockFailure(a.CidrBlockState); why != "" {
			s.FailedBlocks[block] = VPCBlockState{aws.ToString(a.AssociationId), block, why}
		} else if a.CidrBlockState.State == types.VpcCidrBlockStateCodeAssociated {
			s.Blocks[block] = aws.ToString(a.AssociationId)
		}
	}
	return s
}

// blockFailure returns the state and AWS's reason if a block cannot be associated; otherwise "".
func blockFailure(s *types.VpcCidrBlockState) string {
	if s.State != types.VpcCidrBlockStateCodeFailing && s.State != types.VpcCidrBlockStateCodeFailed {
		return ""
	}
	return string(s.State) + text.Prefixed(": ", aws.ToString(s.StatusMessage))
}

// describeAttributes sets the attributes that DescribeVpcs does not return.
func (s *VPCState) describeAttributes(ctx context.Context, c *cloud.Clients) error {
	attribute := func(name types.VpcAttributeName) (*ec2.DescribeVpcAttributeOutput, error) {
		return cloud.Remember(ctx, c, "VPC attribute "+string(name)+" of "+s.ID, func(ctx context.Context) (*ec2.DescribeVpcAttributeOutput, error) {
			return c.EC2.DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &s.ID, Attribute: name})
		})
	}
	names, err := attribute(types.VpcAttributeNameEnableDnsHostnames)
	if err != nil {
		return err
	}
	support, err := attribute(types.VpcAttributeNameEnableDnsSupport)
	if err != nil {
		return err
	}
	s.DNSHostnames = names.EnableDnsHostnames != nil && aws.ToBool(names.EnableDnsHostnames.Value)
	s.DNSSupport = support.EnableDnsSupport != nil && aws.ToBool(support.EnableDnsSupport.Value)
	return nil
}

// WithoutDNS returns the VPC of existing subnets, and those of its DNS attributes that are off: enableDnsHostnames, enableDnsSupport. It returns
// nothing for the VPC of the cluster itself, because the run sets the attributes of that one.
func WithoutDNS(ctx context.Context, c *cloud.Clients, subnets []*graph.Ref[SubnetState]) (vpc string, off []string, err error) {
	existing := slices.IndexFunc(subnets, func(s *graph.Ref[SubnetState]) bool {
		_, found := s.Found()
		return found && s.Desired() == nil
	})
	if existing < 0 {
		return "", nil, nil
	}
	subnet, _ := subnets[existing].Found()
	s := VPCState{Object: identity.Object{ID: subnet.VPC}}
	if err := s.describeAttributes(ctx, c); err != nil {
		return "", nil, err
	}
	if !s.DNSHostnames {
		off = append(off, "enableDnsHostnames")
	}
	if !s.DNSSupport {
		off = append(off, "enableDnsSupport")
	}
	return s.ID, off, nil
}

// VPCByID looks up an existing VPC.
func VPCByID(id string) graph.Lookup[VPCState] {
	return func(ctx context.Context, c *cloud.Clients) (*VPCState, error) {
		all, err := VPCs(ctx, c)
		for _, x := range all {
			if aws.ToString(x.VpcId) == id {
				s := vpcState(x)
				return &s, err
			}
		}
		return nil, err
	}
}

// vpcKind declares VPCs.
func vpcKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "vpc", Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeVpc,
		ReadActions: []string{"ec2:DescribeVpcAttribute", "ec2:DescribeVpcs"}, Statement: kind.Network,
		Actions: []string{
			"ec2:AssociateVpcCidrBlock", "ec2:CreateTags", "ec2:CreateVpc", "ec2:DeleteTags", "ec2:DeleteVpc", "ec2:DisassociateVpcCidrBlock", "ec2:ModifyVpcAttribute",
		},
		Quota: &kind.Quota{Service: "vpc", Code: "L-F678F1CE", Name: "VPCs", Default: 5, Used: countVPCs},
	}, kind.Functions[VPCState]{
		List: kind.Tagged(ownedVPCs), Delete: &VPC{},
		Status: func(s VPCState) (state, detail string) { return "", kind.Join(s.CIDR, s.IPv6CIDR) },
	})
}

// ownedVPCs lists the VPCs of the cluster.
func ownedVPCs(ctx context.Context, c *cloud.Clients) (out []VPCState, err error) {
	all, err := VPCs(ctx, c)
	for _, x := range all {
		if s := vpcState(x); s.IsOwned(c) {
			out = append(out, s)
		}
	}
	return out, err
}

// blockTakes is how long AWS usually takes to associate a CIDR block with a VPC.
const blockTakes = 2 * time.Second
