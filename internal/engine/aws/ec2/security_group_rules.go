package ec2

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// SecurityGroupRules are the ingress rules of one security group.
type SecurityGroupRules struct {
	Group *graph.Ref[SecurityGroupState]
	Rules []IngressRule
	// Shared: controllers add rules to the group, too, such as the cloud controller
	// manager for load balancers. Other rules are not revoked, unless their description begins with Own.
	Shared bool
	Own    string
}

// IngressRule allows traffic from one source: one of CIDR, From, FromID, Address and VPC
// is set.
type IngressRule struct {
	Protocol    string // tcp, udp, icmp, -1 or a number
	First, Last int32
	CIDR        string                         // an IPv4 or IPv6 block
	From        *graph.Ref[SecurityGroupState] // a security group of the cluster
	FromID      string                         // ID of an existing security group
	Address     *graph.Ref[ElasticIPState]     // the address of a NAT gateway
	VPC         *graph.Ref[VPCState]           // the CIDR block of the VPC
	IPv6        bool                           // with VPC: its IPv6 CIDR block
	Description string
}

// SecurityGroupRulesState are the rules that a group has.
type SecurityGroupRulesState struct {
	Group string
	Lines []string // as ruleLine returns them
}

// CloudID implements graph.State.
func (s SecurityGroupRulesState) CloudID() string { return s.Group }

var _ graph.Managed[SecurityGroupRulesState] = (*SecurityGroupRules)(nil)

// Needs implements graph.Desired.
func (r *SecurityGroupRules) Needs() []graph.Edge {
	needs := graph.Exists(r.Group)
	for _, rule := range r.Rules {
		if rule.From != r.Group {
			needs = append(needs, graph.Exists(rule.From)...)
		}
		needs = append(needs, graph.Reads(rule.Address)...)
		needs = append(needs, graph.Awaits(rule.VPC)...)
	}
	return needs
}

// Find implements graph.Desired.
func (r *SecurityGroupRules) Find(ctx context.Context, c *cloud.Clients) (*SecurityGroupRulesState, error) {
	group, ok := r.Group.Found()
	if !ok {
		return nil, nil
	}
	all, err := SecurityGroups(ctx, c, group.VPC)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.ID == group.ID {
			return &SecurityGroupRulesState{x.ID, PermissionLines(x.Ingress)}, nil
		}
	}
	return nil, nil
}

// Diff implements graph.Desired. Of a shared group, it compares only the rules that runs have added, which it knows by their description, and
// those that are desired, possibly with another description.
func (r *SecurityGroupRules) Diff(have *SecurityGroupRulesState) (d plan.Diff) {
	lines, want := have.Lines, r.lines()
	if r.Shared {
		lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			own := r.Own != "" && strings.HasPrefix(description(l), r.Own)
			return !own && !slices.ContainsFunc(want, func(w string) bool { return withoutDescription(w) == withoutDescription(l) })
		})
	}
	d.Lines("ingress", lines, want)
	return d
}

// withoutDescription removes the description from a line.
func withoutDescription(line string) string {
	return strings.Join(strings.SplitN(line, " ", 4)[:3], " ")
}

// description returns the description in a line.
func description(line string) string {
	return strings.TrimPrefix(strings.TrimPrefix(line, withoutDescription(line)), " ")
}

// lines lists the desired rules. Of rules that differ only in their description, it
// contains the first, because AWS does not accept both.
func (r *SecurityGroupRules) lines() (out []string) {
	seen := map[string]bool{}
	for _, rule := range r.Rules {
		l := rule.line()
		if key := withoutDescription(l); !seen[key] {
			seen[key] = true
			out = append(out, l)
		}
	}
	return out
}

// Create implements graph.Creator.
func (r *SecurityGroupRules) Create(ctx context.Context, c *cloud.Clients) (*SecurityGroupRulesState, error) {
	have := &SecurityGroupRulesState{Group: r.Group.CloudID()}
	if len(r.Rules) == 0 {
		return have, nil
	}
	return r.Update(ctx, c, have, r.Diff(have))
}

// Update implements graph.Updater. It revokes rules last, so that no connection is refused
// between the calls. Only a rule of which the description changes is revoked first: the new one
// is a duplicate in AWS.
func (r *SecurityGroupRules) Update(ctx context.Context, c *cloud.Clients, have *SecurityGroupRulesState, d plan.Diff) (*SecurityGroupRulesState, error) {
	added, first, last := d.Added("ingress"), []string(nil), []string(nil)
	for _, gone := range d.Removed("ingress") {
		if slices.ContainsFunc(added, func(l string) bool { return withoutDescription(l) == withoutDescription(gone) }) {
			first = append(first, gone)
		} else {
			last = append(last, gone)
		}
	}
	if err := revokeThose(ctx, c, have.Group, first); err != nil {
		return nil, err
	}
	err := authorize(ctx, c, have.Group, added)
	if cloud.Is(err, "RulesPerSecurityGroupLimitExceeded") && len(last) > 0 { // there is no room for both
		if err = revokeThose(ctx, c, have.Group, last); err == nil {
			err, last = authorize(ctx, c, have.Group, added), nil
		}
	}
	if err == nil {
		err = revokeThose(ctx, c, have.Group, last)
	}
	if err != nil {
		return nil, err
	}
	return &SecurityGroupRulesState{have.Group, r.lines()}, nil
}

// Delete implements graph.Deleter. AWS deletes rules with their group. Only rules that
// refer to another group are revoked, because they prevent the deletion of that group.
func (r *SecurityGroupRules) Delete(ctx context.Context, c *cloud.Clients, have *SecurityGroupRulesState) error {
	referencing := slices.DeleteFunc(slices.Clone(have.Lines), func(l string) bool {
		source := strings.Fields(l)[2]
		return !strings.HasPrefix(source, "sg-") || source == have.Group
	})
	if len(referencing) == 0 {
		return nil
	}
	err := revoke(ctx, c, have.Group, referencing)
	if !cloud.Is(err, "InvalidPermission.NotFound", "InvalidGroup.NotFound") {
		return err
	}
	for _, l := range referencing { // one of them does not exist; the others may
		if err := revoke(ctx, c, have.Group, []string{l}); err != nil && !cloud.Is(err, "InvalidPermission.NotFound", "InvalidGroup.NotFound") {
			return err
		}
	}
	return nil
}

// revokeThose revokes rules that may be gone already.
func revokeThose(ctx context.Context, c *cloud.Clients, group string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	if err := revoke(ctx, c, group, lines); !cloud.Is(err, "InvalidPermission.NotFound") {
		return err
	}
	return nil
}

// authorize adds rules.
func authorize(ctx context.Context, c *cloud.Clients, group string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := c.EC2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &group, IpPermissions: permissions(lines)})
	if cloud.Is(err, "InvalidPermission.Duplicate") {
		return graph.NotYet(err) // an earlier call succeeded, but DescribeSecurityGroups does not return it yet
	}
	return err
}

func revoke(ctx context.Context, c *cloud.Clients, group string, lines []string) error {
	_, err := c.EC2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &group, IpPermissions: permissions(lines)})
	return err
}

// line returns a rule as text for comparison and output: "tcp 6443 sg-0123 Kubernetes
// API".
func (r IngressRule) line() string {
	source := canonicalBlock(r.CIDR) + r.FromID
	switch {
	case r.From != nil:
		if source = r.From.CloudID(); source == plan.Unknown {
			source = string(r.From.ID())
		}
	case r.Address != nil:
		source = blockOf(r.Address)
	case r.VPC != nil:
		source = vpcBlock(r.VPC, r.IPv6)
	}
	return ruleLine(r.Protocol, r.First, r.Last, source, r.Description)
}

// canonicalBlock returns a CIDR block as AWS stores it: in lower case, and without host
// bits.
func canonicalBlock(block string) string {
	if p, err := netip.ParsePrefix(block); err == nil {
		return p.Masked().String()
	}
	return block
}

// blockOf returns the CIDR block of an address, or the resource ID if it is not known
// yet.
func blockOf(ref *graph.Ref[ElasticIPState]) string {
	if a, known := ref.Found(); known && a.PublicIP != "" {
		return HostBlock(a.PublicIP)
	}
	return string(ref.ID())
}

// HostBlock returns the CIDR block of one IPv4 address.
func HostBlock(address string) string { return address + "/32" }

// vpcBlock returns the CIDR block of a VPC, or the resource ID if it is not known yet.
func vpcBlock(vpc *graph.Ref[VPCState], ipv6 bool) string {
	s, _ := vpc.Found()
	block := s.CIDR
	if ipv6 {
		block = s.IPv6CIDR
	}
	if block == "" {
		return string(vpc.ID())
	}
	return block
}

// DuplicateKey is equal for two rules that differ only in their description. AWS does not
// accept both.
func (r IngressRule) DuplicateKey() string {
	r.Description = ""
	if r.From != nil {
		return fmt.Sprint(r.Protocol, r.First, r.Last, r.From.ID())
	}
	if r.Address != nil {
		return fmt.Sprint(r.Protocol, r.First, r.Last, r.Address.ID())
	}
	if r.VPC != nil {
		return fmt.Sprint(r.Protocol, r.First, r.Last, r.VPC.ID(), r.IPv6)
	}
	return r.line()
}

func ruleLine(protocol string, first, last int32, source, description string) string {
	ports := fmt.Sprintf("%d-%d", first, last)
	if protocol == "58" {
		protocol = "icmpv6" // the name that DescribeSecurityGroups returns
	}
	switch {
	case protocol == "-1" || !slices.Contains([]string{"tcp", "udp", "icmp", "icmpv6"}, protocol):
		ports = "all" // rules for other protocols have no ports
	case first == last:
		ports = fmt.Sprint(first)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", protocol, ports, source, description))
}

// PermissionLines returns ingress rules as text, one line for each source.
func PermissionLines(all []types.IpPermission) (out []string) {
	for _, p := range all {
		add := func(source, description string) {
			out = append(out, ruleLine(aws.ToString(p.IpProtocol), aws.ToInt32(p.FromPort), aws.ToInt32(p.ToPort), source, description))
		}
		for _, s := range p.IpRanges {
			add(aws.ToString(s.CidrIp), aws.ToString(s.Description))
		}
		for _, s := range p.Ipv6Ranges {
			add(aws.ToString(s.CidrIpv6), aws.ToString(s.Description))
		}
		for _, s := range p.UserIdGroupPairs {
			add(aws.ToString(s.GroupId), aws.ToString(s.Description))
		}
	}
	slices.Sort(out)
	return out
}

// permissions converts lines for the EC2 API.
func permissions(lines []string) (out []types.IpPermission) {
	for _, l := range lines {
		f := strings.SplitN(l, " ", 4)
		p := types.IpPermission{IpProtocol: &f[0]}
		if f[1] != "all" {
			first, last := ports(f[1])
			p.FromPort, p.ToPort = &first, &last
		}
		var description *string
		if len(f) == 4 {
			description = &f[3]
		}
		switch {
		case strings.HasPrefix(f[2], "sg-"):
			p.UserIdGroupPairs = []types.UserIdGroupPair{{GroupId: &f[2], Description: description}}
		case strings.Contains(f[2], ":"):
			p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: &f[2], Description: description}}
		default:
			p.IpRanges = []types.IpRange{{CidrIp: &f[2], Description: description}}
		}
		out = append(out, p)
	}
	return out
}

func ports(s string) (first, last int32) {
	if n, _ := fmt.Sscanf(s, "%d-%d", &first, &last); n == 1 {
		last = first
	}
	return first, last
}

// securityGroupRulesKind declares rules of security groups.
func securityGroupRulesKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        "security-group-rules",
		Rehearsed:   true,
		Borrowed:    true,
		Area:        plan.AreaSecurity,
		ReadActions: []string{"ec2:DescribeSecurityGroups"},
		Statement:   kind.Network,
		Actions:     []string{"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"},
		Quota:       &kind.Quota{Service: "vpc", Code: "L-0EA8095F", Name: "inbound rules", Default: 60, Takes: countRules},
	}, kind.Functions[SecurityGroupRulesState]{})
}

// countRules returns the number of rules of a security group. AWS counts those for IPv4 and
// for IPv6 separately, and rules that refer to a group in both ("Amazon VPC quotas").
func countRules(desired any) (n int, scope string) {
	r, ok := desired.(*SecurityGroupRules)
	if !ok {
		return 0, ""
	}
	v4, v6 := 0, 0
	seen := map[string]bool{}
	for _, rule := range r.Rules {
		key := rule.DuplicateKey()
		if seen[key] {
			continue
		}
		seen[key] = true
		isV6, isV4 := rule.IPv6 || strings.Contains(rule.CIDR, ":"), strings.Contains(rule.CIDR, ".") || rule.Address != nil || rule.VPC != nil && !rule.IPv6
		if !isV6 {
			v4++
		}
		if !isV4 {
			v6++
		}
	}
	return max(v4, v6), string(r.Group.ID())
}
