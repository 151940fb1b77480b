package replica

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) routeTables(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeRouteTablesPaginator(c, &ec2.DescribeRouteTablesInput{}), func(p *ec2.DescribeRouteTablesOutput) {
		for _, t := range p.RouteTables {
			own := &sim.RouteTable{Thing: r.thing(t.RouteTableId, tagsOf(t.Tags)), VPC: aws.ToString(t.VpcId), Associations: map[string]string{}}
			for _, a := range t.Associations {
				id := aws.ToString(a.RouteTableAssociationId)
				switch {
				case aws.ToBool(a.Main):
					own.Main = id
				case a.SubnetId != nil:
					own.Associations[id] = *a.SubnetId
				}
			}
			if v := n.VPCs[own.VPC]; v != nil {
				own.Given = v.Default && own.Main != ""
			}
			for _, route := range t.Routes {
				if to, ok := routeOf(route); ok {
					own.Routes = append(own.Routes, to)
				}
			}
			n.RouteTables[own.ID] = own
		}
	})
}

// routeOf returns a route. Local routes and those of endpoints follow from other resources;
// routes to prefix lists are not simulated.
func routeOf(x types.Route) (sim.Route, bool) {
	to := sim.Route{Destination: cmp.Or(aws.ToString(x.DestinationCidrBlock), aws.ToString(x.DestinationIpv6CidrBlock))}
	for _, target := range []*string{
		x.GatewayId, x.NatGatewayId, x.EgressOnlyInternetGatewayId, x.CarrierGatewayId, x.TransitGatewayId, x.VpcPeeringConnectionId, x.LocalGatewayId,
		x.CoreNetworkArn, x.NetworkInterfaceId, x.InstanceId,
	} {
		to.Target = cmp.Or(to.Target, aws.ToString(target))
	}
	return to, to.Destination != "" && to.Target != "" && to.Target != "local"
}
