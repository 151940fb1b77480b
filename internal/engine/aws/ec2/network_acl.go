package ec2

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Ports to which answers are sent: those from which any system connects, and those from which Linux connects ("Ephemeral ports", VPC user
// guide; net.ipv4.ip_local_port_range).
const (
	firstEphemeral, lastEphemeral           = 1024, 65535
	firstLinuxEphemeral, lastLinuxEphemeral = 32768, 60999
	httpsPort                               = 443
)

// networkACL is the network ACL of a subnet.
type networkACL struct {
	id, subnet string
	rules      []types.NetworkAclEntry // in the order in which they apply
}

// networkACLOf returns the network ACL of a subnet of an existing VPC; nil if there is none, or if the caller may not read it.
func networkACLOf(ctx context.Context, c *cloud.Clients, vpc, subnet string) (*networkACL, error) {
	all, err := cloud.Remember(ctx, c, "network ACLs of "+vpc, func(ctx context.Context) ([]types.NetworkAcl, error) {
		p := ec2.NewDescribeNetworkAclsPaginator(c.EC2, &ec2.DescribeNetworkAclsInput{Filters: []types.Filter{cloud.Filter("vpc-id", vpc)}})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeNetworkAclsOutput) []types.NetworkAcl { return o.NetworkAcls })
	})
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if slices.ContainsFunc(a.Associations, func(x types.NetworkAclAssociation) bool { return aws.ToString(x.SubnetId) == subnet }) {
			rules := slices.Clone(a.Entries)
			slices.SortStableFunc(rules, func(x, y types.NetworkAclEntry) int {
				return cmp.Compare(aws.ToInt32(x.RuleNumber), aws.ToInt32(y.RuleNumber))
			})
			return &networkACL{aws.ToString(a.NetworkAclId), subnet, rules}, nil
		}
	}
	return nil, nil
}

// portSpan is a range of ports.
type portSpan struct{ from, to int32 }

// permitted returns the parts of a range of TCP ports that the rules permit for at least one address. It leaves out what an earlier rule
// denies for all addresses of a rule that permits it.
func (a *networkACL) permitted(egress bool, all portSpan) (parts []portSpan) {
	var denied []types.NetworkAclEntry
	for _, r := range a.rules {
		concerned := portsOf(r)
		if aws.ToBool(r.Egress) != egress || !isTCP(r) || concerned.from > all.to || concerned.to < all.from {
			continue
		}
		if r.RuleAction == types.RuleActionDeny {
			denied = append(denied, r)
			continue
		}
		part := portSpan{max(concerned.from, all.from), min(concerned.to, all.to)}
		if !slices.ContainsFunc(denied, func(d types.NetworkAclEntry) bool { return covers(d, r, part) }) {
			parts = append(parts, part)
		}
	}
	return parts
}

// covers reports whether a rule applies to all addresses of another rule and to all ports of a range.
func covers(rule, other types.NetworkAclEntry, part portSpan) bool {
	of := portsOf(rule)
	wide, err := netip.ParsePrefix(cmp.Or(aws.ToString(rule.CidrBlock), aws.ToString(rule.Ipv6CidrBlock)))
	narrow, err2 := netip.ParsePrefix(cmp.Or(aws.ToString(other.CidrBlock), aws.ToString(other.Ipv6CidrBlock)))
	return err == nil && err2 == nil && wide.Bits() <= narrow.Bits() && wide.Contains(narrow.Addr()) && of.from <= part.from && of.to >= part.to
}

func isTCP(r types.NetworkAclEntry) bool {
	const all, tcp = "-1", "6"
	return aws.ToString(r.Protocol) == all || aws.ToString(r.Protocol) == tcp
}

func portsOf(r types.NetworkAclEntry) portSpan {
	if r.PortRange == nil || aws.ToString(r.Protocol) == "-1" {
		return portSpan{0, lastEphemeral}
	}
	return portSpan{aws.ToInt32(r.PortRange.From), aws.ToInt32(r.PortRange.To)}
}

// closed returns why a network ACL prevents all connections to a port, outbound or inbound; "" if it does not. It also has to permit
// the answers, because it keeps no state ("Network ACL basics", VPC user guide).
func (a *networkACL) closed(egress bool, port int32) string {
	connections, answers := "inbound TCP", "outbound TCP"
	if egress {
		connections, answers = "outbound connections", "inbound TCP"
	}
	switch {
	case len(a.permitted(egress, portSpan{port, port})) == 0:
		return fmt.Sprintf("the network ACL %s of %s permits no %s to port %d", a.id, a.subnet, connections, port)
	case len(a.permitted(!egress, portSpan{firstEphemeral, lastEphemeral})) == 0:
		return fmt.Sprintf("the network ACL %s of %s permits no answers: no %s to ports %d-%d", a.id, a.subnet, answers, firstEphemeral, lastEphemeral)
	}
	return ""
}

// closedACL returns why nothing in an existing subnet can connect to the APIs of AWS, if its network ACL prevents it.
func closedACL(ctx context.Context, c *cloud.Clients, vpc, subnet string) (why string, err error) {
	a, err := networkACLOf(ctx, c, vpc, subnet)
	if a == nil || err != nil {
		return "", err
	}
	return a.closed(true, httpsPort), nil
}

// existingACL returns the network ACL of an existing subnet. It returns nil for a subnet that the run creates: its network ACL permits
// everything.
func existingACL(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState]) (*networkACL, error) {
	if subnet == nil || subnet.Desired() != nil {
		return nil, nil
	}
	state, ok := subnet.Found()
	if !ok {
		return nil, nil
	}
	return networkACLOf(ctx, c, state.VPC, state.ID)
}

// ClosedToClients returns why no client can connect to a port of a load balancer in an existing subnet; "" if some can.
func ClosedToClients(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState], port int32) (why string, err error) {
	a, err := existingACL(ctx, c, subnet)
	if a == nil || err != nil {
		return "", err
	}
	return a.closed(false, port), nil
}

// losesAnswers warns if the network ACL of an existing subnet permits answers to only some of the ports from which Linux connects:
// connections from the other ports fail.
func losesAnswers(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState]) (warnings []string, err error) {
	a, err := existingACL(ctx, c, subnet)
	if a == nil || err != nil {
		return nil, err
	}
	parts := a.permitted(false, portSpan{firstLinuxEphemeral, lastLinuxEphemeral})
	slices.SortFunc(parts, func(x, y portSpan) int { return cmp.Compare(x.from, y.from) })
	next := int32(firstLinuxEphemeral)
	for _, p := range parts {
		if p.from <= next {
			next = max(next, p.to+1)
		}
	}
	if next > lastLinuxEphemeral {
		return nil, nil
	}
	return []string{fmt.Sprintf(
		"the network ACL %s of the subnet %s does not permit inbound TCP to all of the ports %d-%d, where machines get answers: connections fail by chance",
		a.id, a.subnet, firstLinuxEphemeral, lastLinuxEphemeral,
	)}, nil
}
