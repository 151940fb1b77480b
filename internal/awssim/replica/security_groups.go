package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// securityGroups reads security groups with their rules.
func (r *reader) securityGroups(ctx context.Context) error {
	c, found := ec2.NewFromConfig(r.Config), sim.Table[*sim.SecurityGroup]{}
	err := pages(ctx, ec2.NewDescribeSecurityGroupsPaginator(c, &ec2.DescribeSecurityGroupsInput{}), func(p *ec2.DescribeSecurityGroupsOutput) {
		for _, g := range p.SecurityGroups {
			own := &sim.SecurityGroup{
				Thing:       r.thing(g.GroupId, tagsOf(g.Tags)),
				VPC:         aws.ToString(g.VpcId),
				Name:        aws.ToString(g.GroupName),
				Description: aws.ToString(g.Description),
			}
			if v := r.to.EC2.VPCs[own.VPC]; v != nil {
				own.Given = v.Default && own.Name == "default"
			}
			found[own.ID] = own
		}
	})
	if err == nil {
		err = readRules(ctx, c, found)
	}
	if err == nil {
		r.to.EC2.SecurityGroups = found
	}
	return err
}

// readRules adds their rules to security groups.
func readRules(ctx context.Context, c *ec2.Client, found sim.Table[*sim.SecurityGroup]) error {
	return pages(ctx, ec2.NewDescribeSecurityGroupRulesPaginator(c, &ec2.DescribeSecurityGroupRulesInput{}), func(p *ec2.DescribeSecurityGroupRulesOutput) {
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
