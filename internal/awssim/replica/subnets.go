package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) subnets(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeSubnetsPaginator(c, &ec2.DescribeSubnetsInput{}), func(p *ec2.DescribeSubnetsOutput) {
		for _, s := range p.Subnets {
			own := &sim.Subnet{
				Thing: r.thing(s.SubnetId, tagsOf(s.Tags)), VPC: aws.ToString(s.VpcId), CIDR: aws.ToString(s.CidrBlock), Zone: aws.ToString(s.AvailabilityZone),
				MapPublicIP: aws.ToBool(s.MapPublicIpOnLaunch), AssignIPv6: aws.ToBool(s.AssignIpv6AddressOnCreation), DNS64: aws.ToBool(s.EnableDns64),
				Default: aws.ToBool(s.DefaultForAz), Native: aws.ToBool(s.Ipv6Native), HostnameType: string(types.HostnameTypeIpName),
			}
			own.Given = own.Default
			for _, b := range s.Ipv6CidrBlockAssociationSet {
				if b.Ipv6CidrBlockState == nil || b.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated {
					own.IPv6CIDR = aws.ToString(b.Ipv6CidrBlock)
				}
			}
			if o := s.PrivateDnsNameOptionsOnLaunch; o != nil {
				own.HostnameType = string(o.HostnameType)
				own.ResourceNameA, own.ResourceNameAAAA = aws.ToBool(o.EnableResourceNameDnsARecord), aws.ToBool(o.EnableResourceNameDnsAAAARecord)
			}
			n.Subnets[own.ID] = own
		}
	})
}
