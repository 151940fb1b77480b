package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// endpoints reads gateway endpoints. Interface endpoints are not simulated; their network
// interfaces are copied.
func (r *reader) endpoints(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeVpcEndpointsPaginator(c, &ec2.DescribeVpcEndpointsInput{}), func(p *ec2.DescribeVpcEndpointsOutput) {
		for _, e := range p.VpcEndpoints {
			if e.VpcEndpointType != types.VpcEndpointTypeGateway {
				continue
			}
			own := &sim.Endpoint{
				Thing:       r.thing(e.VpcEndpointId, tagsOf(e.Tags)),
				VPC:         aws.ToString(e.VpcId),
				Service:     aws.ToString(e.ServiceName),
				RouteTables: e.RouteTableIds,
			}
			if s := string(e.State); s == "deleting" || s == "Deleting" {
				own.Deleted = r.Now
			}
			n.Endpoints[own.ID] = own
		}
	})
}
