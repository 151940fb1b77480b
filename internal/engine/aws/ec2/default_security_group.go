package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// DefaultGroup is the default security group of a VPC without its default rules (CAPA:
// spec.network.vpc.emptyRoutesDefaultVPCSecurityGroup). AWS deletes it with the VPC.
type DefaultGroup struct {
	VPC *graph.Ref[VPCState]
}

// DefaultGroupState is the group with the default rules that it still has.
type DefaultGroupState struct {
	ID    string
	Rules []string // "ingress from itself", "egress to 0.0.0.0/0"
}

// CloudID implements graph.State.
func (s DefaultGroupState) CloudID() string { return s.ID }

var (
	_ graph.Desired[DefaultGroupState] = (*DefaultGroup)(nil)
	_ graph.Updater[DefaultGroupState] = (*DefaultGroup)(nil)
)

const (
	fromItself = "ingress from itself"
	toAnywhere = "egress to 0.0.0.0/0"
)

// Needs implements graph.Desired.
func (g *DefaultGroup) Needs() []graph.Edge { return graph.Exists(g.VPC) }

// Identify implements graph.Identified: AWS deletes the group with the VPC.
func (*DefaultGroup) Identify(context.Context, *cloud.Clients, *DefaultGroupState) (*DefaultGroupState, error) {
	return nil, nil
}

// Find implements graph.Desired.
func (g *DefaultGroup) Find(ctx context.Context, c *cloud.Clients) (*DefaultGroupState, error) {
	vpc, ok := g.VPC.Found()
	if !ok {
		return nil, nil
	}
	all, err := SecurityGroups(ctx, c, vpc.ID)
	for _, x := range all {
		if x.Name == "default" {
			return &DefaultGroupState{x.ID, defaultRules(x)}, err
		}
	}
	return nil, err
}

// defaultRules lists the default rules of the group.
func defaultRules(x SecurityGroupState) (rules []string) {
	for _, p := range x.Ingress {
		for _, pair := range p.UserIdGroupPairs {
			if aws.ToString(p.IpProtocol) == "-1" && aws.ToString(pair.GroupId) == x.ID {
				rules = append(rules, fromItself)
			}
		}
	}
	for _, p := range x.Egress {
		for _, r := range p.IpRanges {
			if aws.ToString(p.IpProtocol) == "-1" && aws.ToString(r.CidrIp) == AnywhereIPv4 {
				rules = append(rules, toAnywhere)
			}
		}
	}
	return rules
}

// Diff implements graph.Desired.
func (g *DefaultGroup) Diff(have *DefaultGroupState) (d plan.Diff) {
	d.Lines("rule", have.Rules, nil)
	return d
}

// Update implements graph.Updater.
func (g *DefaultGroup) Update(ctx context.Context, c *cloud.Clients, have *DefaultGroupState, d plan.Diff) (*DefaultGroupState, error) {
	for _, rule := range d.Removed("rule") {
		var err error
		if rule == fromItself {
			_, err = c.EC2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &have.ID, IpPermissions: []types.IpPermission{
				{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &have.ID}}},
			}})
		} else {
			_, err = c.EC2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: &have.ID, IpPermissions: []types.IpPermission{
				{IpProtocol: aws.String("-1"), IpRanges: []types.IpRange{{CidrIp: aws.String(AnywhereIPv4)}}},
			}})
		}
		if err != nil && !cloud.Is(err, "InvalidPermission.NotFound") {
			return nil, err
		}
	}
	return &DefaultGroupState{ID: have.ID}, nil
}

// AnywhereIPv4 is every IPv4 address.
const AnywhereIPv4 = "0.0.0.0/0"

// anywhereIPv6 is the block of all IPv6 addresses.
const anywhereIPv6 = "::/0"

// IsAnywhere reports whether a CIDR block has every address.
func IsAnywhere(block string) bool { return block == AnywhereIPv4 || block == anywhereIPv6 }

// DefaultGroupKind is the name of the kind of default security groups.
const DefaultGroupKind = "default-group"

// defaultGroupKind declares default security groups.
func defaultGroupKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: DefaultGroupKind, Borrowed: true, Area: plan.AreaSecurity, ReadActions: []string{"ec2:DescribeSecurityGroups"}, Statement: kind.Network,
		Actions: []string{"ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress"},
	}, kind.Functions[DefaultGroupState]{})
}
