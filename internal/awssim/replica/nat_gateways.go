package replica

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) natGateways(ctx context.Context) error {
	found := sim.Table[*sim.NATGateway]{}
	p := ec2.NewDescribeNatGatewaysPaginator(ec2.NewFromConfig(r.Config), &ec2.DescribeNatGatewaysInput{})
	err := pages(ctx, p, func(p *ec2.DescribeNatGatewaysOutput) {
		for _, n := range p.NatGateways {
			own := &sim.NATGateway{Thing: r.thing(n.NatGatewayId, tagsOf(n.Tags)), VPC: aws.ToString(n.VpcId), Subnet: aws.ToString(n.SubnetId)}
			own.Born = r.since(n.CreateTime)
			own.Ready = own.Born
			switch n.State {
			case types.NatGatewayStateDeleted, types.NatGatewayStateFailed:
				continue // AWS forgets them within an hour
			case types.NatGatewayStatePending:
				own.Ready = r.Now.Add(time.Minute)
			case types.NatGatewayStateDeleting:
				own.Deleted, own.Gone = r.Now, r.Now.Add(time.Minute)
			case types.NatGatewayStateAvailable:
			}
			for _, a := range n.NatGatewayAddresses {
				if aws.ToBool(a.IsPrimary) || own.Address == "" {
					own.Address, own.Interface = aws.ToString(a.AllocationId), aws.ToString(a.NetworkInterfaceId)
				}
			}
			found[own.ID] = own
		}
	})
	if err == nil {
		r.to.EC2.NATGateways = found
	}
	return err
}
