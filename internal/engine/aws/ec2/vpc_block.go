package ec2

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// VPCBlock is a secondary IPv4 block of a VPC, owned or existing (CAPA:
// spec.network.vpc.secondaryCidrBlocks).
type VPCBlock struct {
	VPC  *graph.Ref[VPCState]
	CIDR string
	// ExistingVPC: the VPC is an existing resource. As in CAPA, the block is not deleted:
	// it may have existed before, or others may use it.
	ExistingVPC bool
}

// VPCBlockState is an associated secondary block.
type VPCBlockState struct {
	Association, CIDR string
	failure           string
}

// Failure implements graph.Failing.
func (s VPCBlockState) Failure() string { return s.failure }

// CloudID implements graph.State.
func (s VPCBlockState) CloudID() string { return s.Association }

var (
	_ graph.Desired[VPCBlockState] = (*VPCBlock)(nil)
	_ graph.Creator[VPCBlockState] = (*VPCBlock)(nil)
	_ graph.Updater[VPCBlockState] = (*VPCBlock)(nil)
	_ graph.Deleter[VPCBlockState] = (*VPCBlock)(nil)
	_ graph.Timed                  = (*VPCBlock)(nil)
)

// Needs implements graph.Desired.
func (b *VPCBlock) Needs() []graph.Edge { return graph.On(b.VPC) }

// Takes implements graph.Timed.
func (b *VPCBlock) Takes() (create, remove time.Duration) { return blockTakes, 0 }

// Identify implements graph.Identified. The block of an existing VPC is not deleted.
func (b *VPCBlock) Identify(ctx context.Context, c *cloud.Clients, _ *VPCBlockState) (*VPCBlockState, error) {
	if b.ExistingVPC {
		return nil, nil
	}
	return b.Find(ctx, c)
}

// Find implements graph.Desired.
func (b *VPCBlock) Find(ctx context.Context, c *cloud.Clients) (*VPCBlockState, error) {
	vpc, ok := b.VPC.Found()
	if !ok {
		return nil, nil
	}
	all, err := VPCs(ctx, c)
	for _, x := range all {
		if aws.ToString(x.VpcId) != vpc.ID {
			continue
		}
		s := vpcState(x)
		if id, ok := s.Blocks[b.CIDR]; ok {
			return &VPCBlockState{Association: id, CIDR: b.CIDR}, nil
		}
		if failed, ok := s.FailedBlocks[b.CIDR]; ok {
			return &failed, nil
		}
	}
	return nil, err
}

// Diff implements graph.Desired.
func (b *VPCBlock) Diff(have *VPCBlockState) (d plan.Diff) {
	d.Fixed("cidr", have.CIDR, b.CIDR)
	switch {
	case have.failure != "" && b.ExistingVPC: // somebody else may have tried
		d.Fixed(
			"state", have.failure, "associated",
			fmt.Sprintf("'aws ec2 disassociate-vpc-cidr-block --association-id %s' removes it; then the next run associates the block again", have.Association),
		)
	case have.failure != "":
		d.Set("state", have.failure, "associated again")
	}
	return d
}

// Update implements graph.Updater. It removes a block that AWS could not associate; Create follows.
func (b *VPCBlock) Update(ctx context.Context, c *cloud.Clients, have *VPCBlockState, _ plan.Diff) (*VPCBlockState, error) {
	return nil, cloud.IgnoreNotFound(b.Delete(ctx, c, have))
}

// Create implements graph.Creator.
func (b *VPCBlock) Create(ctx context.Context, c *cloud.Clients) (*VPCBlockState, error) {
	vpc := b.VPC.CloudID()
	_, err := c.EC2.AssociateVpcCidrBlock(ctx, &ec2.AssociateVpcCidrBlockInput{VpcId: &vpc, CidrBlock: &b.CIDR}, cloud.SendOnce)
	return nil, err // Find returns it when it is associated
}

// Delete implements graph.Deleter.
func (b *VPCBlock) Delete(ctx context.Context, c *cloud.Clients, have *VPCBlockState) error {
	_, err := c.EC2.DisassociateVpcCidrBlock(ctx, &ec2.DisassociateVpcCidrBlockInput{AssociationId: &have.Association})
	return err
}

// scopeOfNew is the scope of the quota of blocks for a VPC that the run creates.
const scopeOfNew = "the VPC"

func blockScope(vpc string) string {
	if vpc == "" {
		return scopeOfNew
	}
	return scopeOfNew + " " + vpc
}

func blockTaken(desired any) (n int, scope string) {
	b, ok := desired.(*VPCBlock)
	if !ok {
		return 0, ""
	}
	return 1, blockScope(KnownVPC(b.VPC))
}

// countBlocks returns the number of IPv4 blocks by the scope of their VPC.
func countBlocks(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	all, err := VPCs(ctx, c)
	used := map[string]int{scopeOfNew: 1} // the first block
	for _, v := range all {
		used[blockScope(aws.ToString(v.VpcId))] = 1 + len(vpcState(v).Blocks)
	}
	return used, err
}

// vpcBlockKind declares secondary IPv4 blocks of VPCs.
func vpcBlockKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        "vpc-block",
		Rehearsed:   true,
		Area:        plan.AreaNetwork,
		ReadActions: []string{"ec2:DescribeVpcs"},
		Statement:   kind.Network,
		Actions:     []string{"ec2:AssociateVpcCidrBlock", "ec2:DisassociateVpcCidrBlock"},
		Quota:       &kind.Quota{Service: "vpc", Code: "L-83CA0A9D", Name: "IPv4 blocks", Default: 5, Rare: true, Takes: blockTaken, Used: countBlocks},
	}, kind.Functions[VPCBlockState]{})
}
