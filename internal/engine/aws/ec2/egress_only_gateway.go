package ec2

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EgressOnlyGateway is an egress-only internet gateway, for IPv6 in private subnets.
type EgressOnlyGateway struct {
	VPC  *graph.Ref[VPCState]
	Tags cloud.Tags
}

// EgressOnlyGatewayState is an egress-only internet gateway, as AWS describes it.
type EgressOnlyGatewayState struct {
	identity.Object
	VPC string
}

var _ graph.Managed[EgressOnlyGatewayState] = (*EgressOnlyGateway)(nil)

// Needs implements graph.Desired.
func (g *EgressOnlyGateway) Needs() []graph.Edge { return graph.Exists(g.VPC) }

// Find implements graph.Desired.
func (g *EgressOnlyGateway) Find(ctx context.Context, c *cloud.Clients) (*EgressOnlyGatewayState, error) {
	if _, ok := g.VPC.Found(); !ok {
		return nil, nil
	}
	return identity.FindListed(ctx, c, EgressOnlyGateways, g.Tags)
}

// Diff implements graph.Desired.
func (g *EgressOnlyGateway) Diff(have *EgressOnlyGatewayState) (d plan.Diff) {
	d.Fixed("vpc", have.VPC, g.VPC.CloudID())
	d.Tags(have.Tags, g.Tags)
	return d
}

// Create implements graph.Creator.
func (g *EgressOnlyGateway) Create(ctx context.Context, c *cloud.Clients) (*EgressOnlyGatewayState, error) {
	vpc := g.VPC.CloudID()
	out, err := c.EC2.CreateEgressOnlyInternetGateway(ctx, &ec2.CreateEgressOnlyInternetGatewayInput{
		VpcId:             &vpc,
		ClientToken:       c.Token("egress-only-gateway", vpc),
		TagSpecifications: g.Tags.On(types.ResourceTypeEgressOnlyInternetGateway),
	})
	if err != nil {
		return nil, err
	}
	return &EgressOnlyGatewayState{identity.Object{ID: aws.ToString(out.EgressOnlyInternetGateway.EgressOnlyInternetGatewayId), Tags: g.Tags}, vpc}, nil
}

// Update implements graph.Updater.
func (g *EgressOnlyGateway) Update(ctx context.Context, c *cloud.Clients, have *EgressOnlyGatewayState, d plan.Diff) (*EgressOnlyGatewayState, error) {
	o, err := changeTags(ctx, c, have.Object, g.Tags, d)
	return &EgressOnlyGatewayState{o, have.VPC}, err
}

// Delete implements graph.Deleter.
func (g *EgressOnlyGateway) Delete(ctx context.Context, c *cloud.Clients, have *EgressOnlyGatewayState) error {
	_, err := c.EC2.DeleteEgressOnlyInternetGateway(ctx, &ec2.DeleteEgressOnlyInternetGatewayInput{EgressOnlyInternetGatewayId: &have.ID})
	return err
}

// EgressOnlyGateways lists the egress-only internet gateways of the cluster.
func EgressOnlyGateways(ctx context.Context, c *cloud.Clients) ([]EgressOnlyGatewayState, error) {
	return describeEgressOnlyGateways(ctx, c, "egress-only gateways", c.OwnedFilters())
}

// egressOnlyGatewaysIn lists the egress-only internet gateways of a VPC. EC2 has no filter
// for that.
func egressOnlyGatewaysIn(ctx context.Context, c *cloud.Clients, vpc string) ([]EgressOnlyGatewayState, error) {
	all, err := describeEgressOnlyGateways(ctx, c, "egress-only gateways of the region", nil)
	return slices.DeleteFunc(slices.Clone(all), func(s EgressOnlyGatewayState) bool { return s.VPC != vpc }), err
}

func describeEgressOnlyGateways(ctx context.Context, c *cloud.Clients, what string, filters []types.Filter) ([]EgressOnlyGatewayState, error) {
	return cloud.Remember(ctx, c, what, func(ctx context.Context) ([]EgressOnlyGatewayState, error) {
		p := ec2.NewDescribeEgressOnlyInternetGatewaysPaginator(c.EC2, &ec2.DescribeEgressOnlyInternetGatewaysInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeEgressOnlyInternetGatewaysOutput) (out []EgressOnlyGatewayState) {
			for _, x := range o.EgressOnlyInternetGateways {
				s := EgressOnlyGatewayState{Object: identity.Object{ID: aws.ToString(x.EgressOnlyInternetGatewayId), Tags: cloud.FromEC2(x.Tags)}}
				for _, a := range x.Attachments {
					s.VPC = aws.ToString(a.VpcId)
				}
				out = append(out, s)
			}
			return out
		})
	})
}

// egressOnlyGatewayKind declares egress-only internet gateways.
func egressOnlyGatewayKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "egress-only-gateway", Area: plan.AreaNetwork, Type: types.ResourceTypeEgressOnlyInternetGateway,
		ReadActions: []string{"ec2:DescribeEgressOnlyInternetGateways"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateEgressOnlyInternetGateway", "ec2:CreateTags", "ec2:DeleteEgressOnlyInternetGateway", "ec2:DeleteTags"},
	}, kind.Functions[EgressOnlyGatewayState]{
		List: kind.Tagged(EgressOnlyGateways), InVPC: egressOnlyGatewaysIn, Delete: &EgressOnlyGateway{},
		Refers: func(s EgressOnlyGatewayState) []string { return []string{s.VPC} },
	})
}
