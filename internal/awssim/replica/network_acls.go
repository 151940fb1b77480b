package replica

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) networkACLs(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeNetworkAclsPaginator(c, &ec2.DescribeNetworkAclsInput{}), func(p *ec2.DescribeNetworkAclsOutput) {
		for _, a := range p.NetworkAcls {
			own := &sim.NetworkACL{Thing: r.thing(a.NetworkAclId, tagsOf(a.Tags)), VPC: aws.ToString(a.VpcId), Default: aws.ToBool(a.IsDefault)}
			own.Given = own.Default
			for _, x := range a.Associations {
				own.Subnets = append(own.Subnets, aws.ToString(x.SubnetId))
			}
			for _, e := range a.Entries {
				if number := aws.ToInt32(e.RuleNumber); number != sim.LastRule {
					rule := sim.ACLRule{
						Number: number, Egress: aws.ToBool(e.Egress), Deny: e.RuleAction == types.RuleActionDeny, Protocol: aws.ToString(e.Protocol),
						Block: cmp.Or(aws.ToString(e.CidrBlock), aws.ToString(e.Ipv6CidrBlock)),
					}
					if e.PortRange != nil {
						rule.From, rule.To = aws.ToInt32(e.PortRange.From), aws.ToInt32(e.PortRange.To)
					}
					own.Rules = append(own.Rules, rule)
				}
			}
			n.NetworkACLs[own.ID] = own
		}
	})
}
