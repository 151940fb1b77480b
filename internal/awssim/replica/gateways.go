package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) internetGateways(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeInternetGatewaysPaginator(c, &ec2.DescribeInternetGatewaysInput{}), func(p *ec2.DescribeInternetGatewaysOutput) {
		for _, g := range p.InternetGateways {
			own := &sim.InternetGateway{Thing: r.thing(g.InternetGatewayId, tagsOf(g.Tags))}
			for _, a := range g.Attachments {
				own.VPC = aws.ToString(a.VpcId)
			}
			if v := n.VPCs[own.VPC]; v != nil {
				own.Given = v.Default
			}
			n.InternetGateways[own.ID] = own
		}
	})
}

func (r *reader) egressOnly(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(
		ctx,
		ec2.NewDescribeEgressOnlyInternetGatewaysPaginator(c, &ec2.DescribeEgressOnlyInternetGatewaysInput{}),
		func(p *ec2.DescribeEgressOnlyInternetGatewaysOutput) {
			for _, g := range p.EgressOnlyInternetGateways {
				own := &sim.EgressOnlyGateway{Thing: r.thing(g.EgressOnlyInternetGatewayId, tagsOf(g.Tags))}
				for _, a := range g.Attachments {
					own.VPC = aws.ToString(a.VpcId)
				}
				n.EgressOnlyGateways[own.ID] = own
			}
		},
	)
}

func (r *reader) carrierGateways(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeCarrierGatewaysPaginator(c, &ec2.DescribeCarrierGatewaysInput{}), func(p *ec2.DescribeCarrierGatewaysOutput) {
		for _, g := range p.CarrierGateways {
			if g.State == types.CarrierGatewayStateDeleted {
				continue
			}
			own := &sim.CarrierGateway{Thing: r.thing(g.CarrierGatewayId, tagsOf(g.Tags)), VPC: aws.ToString(g.VpcId)}
			n.CarrierGateways[own.ID] = own
		}
	})
}
