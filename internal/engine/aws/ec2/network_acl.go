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

// Ports to which answers come: those from which any system connects, and those from which Linux does ("Ephemeral ports", VPC user guide;
// net.ipv4.ip_local_port_range).
const (
	firstEphemeral, lastEphemeral        = 1024, 65535
	firstLinuxEphemeral, lastOfEphemeral = 32768, 60999
	httpsPort                            = 443
)

// networkACL is the network ACL of a subnet: its rules, in their order.
type networkACL struct {
	id    string
	rules []types.NetworkAclEntry
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
			return &networkACL{aws.ToString(a.NetworkAclId), rules}, nil
		}
	}
	return nil, nil
}

// portSpan is a range of ports.
type portSpan struct{ from, to int32 }

// permitted returns the parts of a range of TCP ports that rules permit, for some address at least. What a rule denies for all addresses
// that a later one permits is not permitted.
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

// covers reports whether a rule is about all addresses of another one, and all of some ports.
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

// closedACL says why nothing in an existing subnet can connect to the APIs of AWS: its network ACL permits no such connections, or not
// their answers, as it keeps no state ("Network ACL basics", VPC user guide). "" if it may.
func closedACL(ctx context.Context, c *cloud.Clients, vpc, subnet string) (why string, err error) {
	a, err := networkACLOf(ctx, c, vpc, subnet)
	switch {
	case a == nil || err != nil:
		return "", err
	case len(a.permitted(true, portSpan{httpsPort, httpsPort})) == 0:
		return fmt.Sprintf("the network ACL %s of %s permits no outbound connections to port %d", a.id, subnet, httpsPort), nil
	case len(a.permitted(false, portSpan{firstEphemeral, lastEphemeral})) == 0:
		return fmt.Sprintf("the network ACL %s of %s permits no answers: no inbound TCP to ports %d-%d", a.id, subnet, firstEphemeral, lastEphemeral), nil
	}
	return "", nil
}

// ClosedToClients says why no client reaches a port of a load balancer in an existing subnet; "" if one may.
func ClosedToClients(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState], port int32) (why string, err error) {
	if subnet == nil || subnet.Desired() != nil {
		return "", nil // a subnet of the run has the network ACL that permits everything
	}
	state, ok := subnet.Found()
	if !ok {
		return "", nil
	}
	a, err := networkACLOf(ctx, c, state.VPC, state.ID)
	switch {
	case a == nil || err != nil:
		return "", err
	case len(a.permitted(false, portSpan{port, port})) == 0:
		return fmt.Sprintf("the network ACL %s of %s permits no inbound TCP to port %d", a.id, state.ID, port), nil
	case len(a.permitted(true, portSpan{firstEphemeral, lastEphemeral})) == 0:
		return fmt.Sprintf("the network ACL %s of %s permits no answers: no outbound TCP to ports %d-%d", a.id, state.ID, firstEphemeral, lastEphemeral), nil
	}
	return "", nil
}

// losesAnswers warns of a network ACL of an existing subnet that lets only a part of the answers in: those to other ports of a machine are
// lost, and connections fail by chance.
func losesAnswers(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState]) (warnings []string, err error) {
	if subnet == nil || subnet.Desired() != nil {
		return nil, nil
	}
	state, ok := subnet.Found()
	if !ok {
		return nil, nil
	}
	a, err := networkACLOf(ctx, c, state.VPC, state.ID)
	if a == nil || err != nil {
		return nil, err
	}
	parts := a.permitted(false, portSpan{firstLinuxEphemeral, lastOfEphemeral})
	slices.SortFunc(parts, func(x, y portSpan) int { return cmp.Compare(x.from, y.from) })
	next := int32(firstLinuxEphemeral)
	for _, p := range parts {
		if p.from <= next {
			next = max(next, p.to+1)
		}
	}
	if next > lastOfEphemeral {
		return nil, nil
	}
	return []string{fmt.Sprintf(
		"the network ACL %s of the subnet %s does not permit inbound TCP to all of the ports %d-%d, where machines get answers: connections fail by chance",
		a.id, state.ID, firstLinuxEphemeral, lastOfEphemeral,
	)}, nil
}
