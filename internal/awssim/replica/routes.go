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

// groups reads security groups with their rules.
func (r *reader) groups(ctx context.Context) error {
	c, found := ec2.NewFromConfig(r.Config), sim.Table[*sim.SecurityGroup]{}
	err := pages(ctx, ec2.NewDescribeSecurityGroupsPaginator(c, &ec2.DescribeSecurityGroupsInput{}), func(p *ec2.DescribeSecurityGroupsOutput) {
		for _, g := range p.SecurityGroups {
			own := &sim.SecurityGroup{Thing: r.thing(g.GroupId, tagsOf(g.Tags)), VPC: aws.ToString(g.VpcId), Name: aws.ToString(g.GroupName), Description: aws.ToString(g.Description)}
			if v := r.to.EC2.VPCs[own.VPC]; v != nil {
				own.Given = v.Default && own.Name == "default"
			}
			found[own.ID] = own
		}
	})
	if err != nil {
		return err
	}
	err = pages(ctx, ec2.NewDescribeSecurityGroupRulesPaginator(c, &ec2.DescribeSecurityGroupRulesInput{}), func(p *ec2.DescribeSecurityGroupRulesOutput) {
		for _, x := range p.SecurityGroupRules {
			g := found[aws.ToString(x.GroupId)]
			if g == nil {
				continue
			}
			rules := &g.Ingress
			if aws.ToBool(x.IsEgress) {
				rules = &g.Egress
			}
			if own := ruleOf(x); own.CIDR+own.IPv6+own.Group != "" { // rules with prefix lists are not simulated
				*rules = append(*rules, own)
			}
		}
	})
	if err == nil {
		r.to.EC2.SecurityGroups = found
	}
	return err
}

func ruleOf(x types.SecurityGroupRule) sim.Rule {
	own := sim.Rule{
		ID: aws.ToString(x.SecurityGroupRuleId), Protocol: aws.ToString(x.IpProtocol), From: aws.ToInt32(x.FromPort), To: aws.ToInt32(x.ToPort),
		CIDR: aws.ToString(x.CidrIpv4), IPv6: aws.ToString(x.CidrIpv6), Description: aws.ToString(x.Description),
	}
	if own.Protocol == "-1" {
		own.From, own.To = -1, -1
	}
	if x.ReferencedGroupInfo != nil {
		own.Group = aws.ToString(x.ReferencedGroupInfo.GroupId)
	}
	return own
}
