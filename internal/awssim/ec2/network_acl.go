package ec2

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// NetworkACL is a network ACL that somebody has created, or the default network ACL of a VPC if its rules were changed. The default
// network ACL of other VPCs permits everything ("Default network ACL", VPC user guide).
type NetworkACL struct {
	Thing
	VPC     string
	Default bool
	Subnets []string // not of a default, which has all subnets without another network ACL
	Rules   []ACLRule
}

// ACLRule is a rule of a network ACL. Of the rules that match, the one with the lowest number applies. The rule that denies everything,
// which each network ACL has at the end, is not one of NetworkACL.Rules.
type ACLRule struct {
	Number   int32
	Egress   bool
	Deny     bool
	Protocol string // a number; "-1" for all
	Block    string
	From, To int32 // ports; 0 and 0 for all
}

// LastRule is the number of the rule that denies everything.
const LastRule = 32767

func (*NetworkACL) kind() kind {
	return kind{
		prefix: "acl", name: "networkAcl", missing: "InvalidNetworkAclID.NotFound", tags: types.ResourceTypeNetworkAcl, title: "NetworkACL",
		simulate: (*Service).simulateNetworkACLs,
	}
}

// keepsVPC returns "" for a default, which is deleted with its VPC.
func (a *NetworkACL) keepsVPC() string {
	if a.Default {
		return ""
	}
	return a.VPC
}

func (a *NetworkACL) details(printer) []string { return []string{"of " + a.VPC} }

func (svc *Service) simulateNetworkACLs() {
	core.On(svc.Account, svc.describeNetworkACLs, "NetworkAclIds", "Filters", "NextToken", "MaxResults")
}

// networkACLs returns all network ACLs, with the defaults that nobody has changed.
func (svc *Service) networkACLs() map[string]*NetworkACL {
	all, changed := map[string]*NetworkACL{}, map[string]bool{}
	for id, a := range svc.state.NetworkACLs {
		all[id] = a
		changed[a.VPC] = changed[a.VPC] || a.Default
	}
	for id, v := range svc.state.VPCs {
		if changed[id] {
			continue
		}
		own := GivenID("acl", svc.Region, id)
		everything := []ACLRule{{Number: 100, Protocol: "-1", Block: "0.0.0.0/0"}, {Number: 100, Egress: true, Protocol: "-1", Block: "0.0.0.0/0"}}
		if v.IPv6 != nil {
			everything = append(
				everything, ACLRule{Number: 101, Protocol: "-1", Block: "::/0"}, ACLRule{Number: 101, Egress: true, Protocol: "-1", Block: "::/0"},
			)
		}
		all[own] = &NetworkACL{Thing: Thing{ID: own, Born: v.Born, Given: true}, VPC: id, Default: true, Rules: everything}
	}
	return all
}

// coveredBy returns the subnets of a network ACL.
func (svc *Service) coveredBy(a *NetworkACL) (out []string) {
	if !a.Default {
		return a.Subnets
	}
	for _, id := range core.SortedKeys(svc.state.Subnets) {
		taken := func(other *NetworkACL) bool { return !other.Default && slices.Contains(other.Subnets, id) }
		if svc.state.Subnets[id].VPC == a.VPC && !slices.ContainsFunc(core.ByKey(svc.state.NetworkACLs), taken) {
			out = append(out, id)
		}
	}
	return out
}

func (svc *Service) networkACLOut(a *NetworkACL) types.NetworkAcl {
	out := types.NetworkAcl{
		NetworkAclId: aws.String(a.ID),
		VpcId:        aws.String(a.VPC),
		IsDefault:    aws.Bool(a.Default),
		OwnerId:      aws.String(svc.Number()),
		Tags:         tagsOut(a.Tags),
	}
	for _, id := range svc.coveredBy(a) {
		out.Associations = append(out.Associations, types.NetworkAclAssociation{
			NetworkAclAssociationId: aws.String("aclassoc-" + id[len("subnet-"):]), NetworkAclId: aws.String(a.ID), SubnetId: aws.String(id),
		})
	}
	for _, r := range a.Rules {
		out.Entries = append(out.Entries, r.out())
	}
	for _, egress := range []bool{false, true} {
		out.Entries = append(out.Entries, ACLRule{Number: LastRule, Egress: egress, Deny: true, Protocol: "-1", Block: "0.0.0.0/0"}.out())
	}
	return out
}

func (r ACLRule) out() types.NetworkAclEntry {
	e := types.NetworkAclEntry{
		RuleNumber: aws.Int32(r.Number),
		Egress:     aws.Bool(r.Egress),
		Protocol:   aws.String(r.Protocol),
		RuleAction: types.RuleActionAllow,
	}
	if r.Deny {
		e.RuleAction = types.RuleActionDeny
	}
	if prefix(r.Block).Addr().Is4() {
		e.CidrBlock = aws.String(r.Block)
	} else {
		e.Ipv6CidrBlock = aws.String(r.Block)
	}
	if r.From+r.To > 0 {
		e.PortRange = &types.PortRange{From: aws.Int32(r.From), To: aws.Int32(r.To)}
	}
	return e
}

func (svc *Service) describeNetworkACLs(in *ec2.DescribeNetworkAclsInput) (*ec2.DescribeNetworkAclsOutput, error) {
	acls, next, err := describe(svc, svc.networkACLs(), query{in.NetworkAclIds, in.Filters, in.NextToken, in.MaxResults}, fields[*NetworkACL]{
		"network-acl-id":        func(a *NetworkACL) []string { return []string{a.ID} },
		"vpc-id":                func(a *NetworkACL) []string { return []string{a.VPC} },
		"default":               func(a *NetworkACL) []string { return flag(a.Default) },
		"association.subnet-id": func(a *NetworkACL) []string { return svc.coveredBy(a) },
	}, svc.networkACLOut)
	return &ec2.DescribeNetworkAclsOutput{NetworkAcls: acls, NextToken: next}, err
}

// passes reports whether the network ACL of a subnet permits TCP to or from a port at an address.
func (svc *Service) passes(subnet string, egress bool, address string, port int32) bool {
	addr := netip.MustParseAddr(address)
	for _, a := range svc.state.NetworkACLs {
		if !slices.Contains(svc.coveredBy(a), subnet) {
			continue
		}
		rules := slices.SortedFunc(slices.Values(a.Rules), func(x, y ACLRule) int { return cmp.Compare(x.Number, y.Number) })
		for _, r := range rules {
			ports := r.From+r.To == 0 || port >= r.From && port <= r.To
			if r.Egress == egress && (r.Protocol == "-1" || r.Protocol == "6") && ports && prefix(r.Block).Contains(addr) {
				return !r.Deny
			}
		}
		return false
	}
	return true // the default, which nobody has changed
}

// An IPv4 and an IPv6 address on the internet, and the first and the last port from which Linux connects, to which answers are sent
// ("Ephemeral ports", VPC user guide).
const (
	somewhere                 = "52.94.0.1"
	somewhereIPv6             = "2600:9000::1"
	firstPort, lastPort       = 32768, 60999
	httpsPort           int32 = 443
)

// PassesClients reports whether the network ACL of a subnet lets a client on the internet connect to a port there.
func (svc *Service) PassesClients(subnet string, port int32) bool {
	answers := svc.passes(subnet, true, somewhere, firstPort) || svc.passes(subnet, true, somewhere, lastPort)
	return answers && svc.passes(subnet, false, somewhere, port)
}

// passesOut reports whether the network ACL of a subnet lets machines there, or a NAT gateway, connect to AWS.
func (svc *Service) passesOut(subnet string, ipv6 bool) bool {
	to := func(address string) bool {
		answers := svc.passes(subnet, false, address, firstPort) || svc.passes(subnet, false, address, lastPort)
		return answers && svc.passes(subnet, true, address, httpsPort)
	}
	return to(somewhere) || ipv6 && to(somewhereIPv6)
}
