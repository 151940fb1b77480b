package ec2

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// GroupsPerInterface is the quota of security groups of an interface.
const GroupsPerInterface = 5

// SecurityGroup is a security group.
type SecurityGroup struct {
	Thing
	VPC, Name, Description string
	Ingress, Egress        []Rule
}

func (*SecurityGroup) kind() kind {
	return kind{
		prefix: "sg", name: "group", missing: "InvalidGroup.NotFound", tags: types.ResourceTypeSecurityGroup, title: "SecurityGroup",
		simulate: (*Service).simulateSecurityGroups,
	}
}

func (g *SecurityGroup) name() string { return g.nameOr(g.Name) }

// keepsVPC is "" for the default group, which is deleted with its VPC.
func (g *SecurityGroup) keepsVPC() string {
	if g.Name == "default" {
		return ""
	}
	return g.VPC
}

func (g *SecurityGroup) over(time.Time) bool { return g.Given || g.Name == "default" }

func (g *SecurityGroup) details(d printer) []string {
	return []string{g.VPC, g.Name, g.Description, "in " + d.rules(g.Ingress), "out " + d.rules(g.Egress)}
}

// Rule is one rule of a security group, with exactly one source.
type Rule struct {
	ID, Protocol      string
	From, To          int32
	CIDR, IPv6, Group string // exactly one is set
	Description       string
}

// groupRule is a rule of a group as a resource.
type groupRule struct {
	Thing
	of     *SecurityGroup
	rule   Rule
	egress bool
}

func (*groupRule) kind() kind {
	return kind{
		prefix:  "sgr",
		name:    "securityGroupRule",
		missing: "InvalidSecurityGroupRuleId.NotFound",
		tags:    types.ResourceTypeSecurityGroupRule,
		title:   "SecurityGroupRule",
		apart:   true,
	}
}

func (svc *Service) simulateSecurityGroups() {
	core.On(svc.Account, svc.createSecurityGroup, "GroupName", "Description", "VpcId", "TagSpecifications")
	core.On(svc.Account, svc.describeSecurityGroups, "GroupIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.describeSecurityGroupRules, "SecurityGroupRuleIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.authorizeIngress, "GroupId", "IpPermissions")
	core.On(svc.Account, svc.authorizeEgress, "GroupId", "IpPermissions")
	core.On(svc.Account, svc.revokeIngress, "GroupId", "IpPermissions", "SecurityGroupRuleIds")
	core.On(svc.Account, svc.revokeEgress, "GroupId", "IpPermissions", "SecurityGroupRuleIds")
	core.On(svc.Account, svc.describeIngressRules, "GroupId", "IpPermissions")
	core.On(svc.Account, svc.deleteSecurityGroup, "GroupId")
}

// NewGroup creates a group that permits all egress.
func (svc *Service) NewGroup(v *VPC, name, description string, tags map[string]string) *SecurityGroup {
	g := &SecurityGroup{Thing: svc.newThing("sg", tags), VPC: v.ID, Name: name, Description: description}
	g.Egress = []Rule{{ID: svc.ID("sgr"), Protocol: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}}
	if v.IPv6 != nil {
		g.Egress = append(g.Egress, Rule{ID: svc.ID("sgr"), Protocol: "-1", From: -1, To: -1, IPv6: "::/0"})
	}
	svc.state.SecurityGroups[g.ID] = g
	return g
}

// groupText reports whether a text is valid as name or description of a group.
func groupText(s string) bool {
	odd := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(". _-:/()#,@[]+=&;{}!$*", r)
	}
	return len(s) <= 255 && !strings.ContainsFunc(s, odd)
}

// createSecurityGroup creates a group. The name is unique in the VPC. Without a VPC, AWS
// uses the default one; here the call is rejected.
func (svc *Service) createSecurityGroup(in *ec2.CreateSecurityGroupInput) (*ec2.CreateSecurityGroupOutput, error) {
	tags, err := tagged(in.TagSpecifications, types.ResourceTypeSecurityGroup)
	if err != nil {
		return nil, err
	}
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	name, description := aws.ToString(in.GroupName), aws.ToString(in.Description)
	switch {
	case name == "" || description == "":
		return nil, core.Fail("MissingParameter", "the request must contain the parameters groupName and groupDescription")
	case name == "default":
		return nil, core.Fail("InvalidGroup.Reserved", "the security group 'default' is reserved")
	case len(name) > 3 && name[:3] == "sg-" || !groupText(name):
		return nil, core.Fail("InvalidParameterValue", "invalid security group name: %q", name)
	case !groupText(description):
		return nil, core.Fail("InvalidParameterValue", "invalid security group description: %q", description)
	}
	for _, g := range svc.state.SecurityGroups {
		if g.VPC == v.ID && g.Name == name {
			return nil, core.Fail("InvalidGroup.Duplicate", "the security group '%s' already exists for VPC '%s'", name, v.ID)
		}
	}
	g := svc.NewGroup(v, name, description, tags)
	return &ec2.CreateSecurityGroupOutput{GroupId: aws.String(g.ID), Tags: tagsOut(g.Tags), SecurityGroupArn: aws.String(svc.groupARN(g))}, nil
}

func (svc *Service) groupARN(g *SecurityGroup) string {
	return svc.RegionalARN("ec2", "security-group/"+g.ID)
}

func (svc *Service) groupOut(g *SecurityGroup) types.SecurityGroup {
	return types.SecurityGroup{
		GroupId: aws.String(g.ID), GroupName: aws.String(g.Name), Description: aws.String(g.Description), VpcId: aws.String(g.VPC),
		OwnerId: aws.String(svc.Number()), SecurityGroupArn: aws.String(svc.groupARN(g)), Tags: tagsOut(g.Tags),
		IpPermissions: svc.permissions(g.Ingress), IpPermissionsEgress: svc.permissions(g.Egress),
	}
}

// permissions groups rules by protocol and ports, as in answers.
func (svc *Service) permissions(rules []Rule) (all []types.IpPermission) {
	for _, r := range rules {
		at := slices.IndexFunc(all, func(p types.IpPermission) bool {
			return aws.ToString(p.IpProtocol) == r.Protocol && (r.From == -1 && p.FromPort == nil && r.To == -1 ||
				p.FromPort != nil && *p.FromPort == r.From && *p.ToPort == r.To)
		})
		if at < 0 {
			p := types.IpPermission{IpProtocol: aws.String(r.Protocol)}
			if r.ported() {
				p.FromPort, p.ToPort = aws.Int32(r.From), aws.Int32(r.To)
			}
			all = append(all, p)
			at = len(all) - 1
		}
		p := &all[at]
		switch {
		case r.CIDR != "":
			p.IpRanges = append(p.IpRanges, types.IpRange{CidrIp: aws.String(r.CIDR), Description: core.Text(r.Description)})
		case r.IPv6 != "":
			p.Ipv6Ranges = append(p.Ipv6Ranges, types.Ipv6Range{CidrIpv6: aws.String(r.IPv6), Description: core.Text(r.Description)})
		default:
			p.UserIdGroupPairs = append(p.UserIdGroupPairs, types.UserIdGroupPair{
				GroupId: aws.String(r.Group), UserId: aws.String(svc.Number()), Description: core.Text(r.Description),
			})
		}
	}
	return all
}

func (svc *Service) describeSecurityGroups(in *ec2.DescribeSecurityGroupsInput) (*ec2.DescribeSecurityGroupsOutput, error) {
	rules := func(get func(Rule) string) func(*SecurityGroup) []string {
		return func(g *SecurityGroup) []string {
			return slices.DeleteFunc(core.Each(g.Ingress, get), func(s string) bool { return s == "" })
		}
	}
	groups, next, err := describe(svc, svc.state.SecurityGroups, query{in.GroupIds, in.Filters, in.NextToken, in.MaxResults}, fields[*SecurityGroup]{
		"group-id":                func(g *SecurityGroup) []string { return []string{g.ID} },
		"group-name":              func(g *SecurityGroup) []string { return []string{g.Name} },
		"description":             func(g *SecurityGroup) []string { return []string{g.Description} },
		"vpc-id":                  func(g *SecurityGroup) []string { return []string{g.VPC} },
		"owner-id":                func(*SecurityGroup) []string { return []string{svc.Number()} },
		"ip-permission.group-id":  rules(func(r Rule) string { return r.Group }),
		"ip-permission.cidr":      rules(func(r Rule) string { return r.CIDR }),
		"ip-permission.ipv6-cidr": rules(func(r Rule) string { return r.IPv6 }),
	}, svc.groupOut)
	return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: groups, NextToken: next}, err
}

// Users lists what prevents the deletion of a group: interfaces in it, and rules of other
// groups that refer to it.
func (svc *Service) Users(g *SecurityGroup) (all []string) {
	for _, n := range svc.state.Interfaces {
		if slices.Contains(n.Groups, g.ID) {
			all = append(all, n.ID)
		}
	}
	for _, other := range svc.state.SecurityGroups {
		names := func(r Rule) bool { return r.Group == g.ID }
		if other != g && (slices.ContainsFunc(other.Ingress, names) || slices.ContainsFunc(other.Egress, names)) {
			all = append(all, other.ID)
		}
	}
	return all
}

func (svc *Service) deleteSecurityGroup(in *ec2.DeleteSecurityGroupInput) (*ec2.DeleteSecurityGroupOutput, error) {
	g, err := lookup(svc, svc.state.SecurityGroups, in.GroupId)
	if err != nil {
		return nil, err
	}
	if g.Name == "default" {
		return nil, core.Fail("CannotDelete", "the specified group: %q name: \"default\" cannot be deleted by a user", g.ID)
	}
	if users := svc.Users(g); len(users) > 0 {
		return nil, core.Fail("DependencyViolation", "resource %s has a dependent object: %s", g.ID, slices.Min(users))
	}
	delete(svc.state.SecurityGroups, g.ID)
	return &ec2.DeleteSecurityGroupOutput{Return: aws.Bool(true), GroupId: aws.String(g.ID)}, nil
}

// GroupsFor validates the groups of an interface in a VPC.
func (svc *Service) GroupsFor(vpc string, ids []string) ([]string, error) {
	if len(ids) > GroupsPerInterface {
		return nil, core.Fail("SecurityGroupsPerInterfaceLimitExceeded", "an interface can have %d security groups", GroupsPerInterface)
	}
	for n, id := range ids {
		g, err := lookup(svc, svc.state.SecurityGroups, &id)
		if err != nil {
			return nil, err
		}
		if g.VPC != vpc {
			return nil, core.Fail("InvalidParameter", "security group %s and the subnet belong to different networks", id)
		}
		if slices.Contains(ids[:n], id) {
			return nil, core.Fail("InvalidParameterValue", "the security group %s is there twice", id)
		}
	}
	if len(ids) > 0 {
		return slices.Clone(ids), nil
	}
	for _, g := range svc.state.SecurityGroups {
		if g.VPC == vpc && g.Name == "default" {
			return []string{g.ID}, nil
		}
	}
	return nil, nil
}

// SecurityGroup returns the security group with an ID, or nil.
func (svc *Service) SecurityGroup(id string) *SecurityGroup { return svc.state.SecurityGroups[id] }

// SecurityGroups returns all security groups, sorted by ID.
func (svc *Service) SecurityGroups() []*SecurityGroup { return core.ByKey(svc.state.SecurityGroups) }

// RemoveSecurityGroup removes a security group, even if it is in use.
func (svc *Service) RemoveSecurityGroup(g *SecurityGroup) { delete(svc.state.SecurityGroups, g.ID) }

// DefaultGroup returns the ID of a VPC's default security group, if it has one.
func (svc *Service) DefaultGroup(vpc string) []string {
	for _, g := range core.ByKey(svc.state.SecurityGroups) {
		if g.VPC == vpc && g.Name == "default" {
			return []string{g.ID}
		}
	}
	return nil
}

// ported reports whether the protocol of a rule has ports, or types and codes.
func (r Rule) ported() bool {
	return slices.Contains([]string{"tcp", "udp", "icmp", "icmpv6"}, r.Protocol)
}

// Same reports whether two rules permit the same traffic, whatever their IDs and
// descriptions.
func (r Rule) Same(other Rule) bool {
	r.ID, r.Description, other.ID, other.Description = "", "", "", ""
	return r == other
}

func protocol(p string) (string, bool) {
	p = strings.ToLower(p)
	for number, name := range map[string]string{"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": "-1"} {
		if p == number {
			p = name
		}
	}
	n, err := strconv.Atoi(p)
	return p, Rule{Protocol: p}.ported() || err == nil && n >= -1 && n <= 255
}

// rules splits permissions into rules with one source each.
func (svc *Service) rules(g *SecurityGroup, perms []types.IpPermission) (all []Rule, err error) {
	for _, p := range perms {
		if err := core.Only("security group rules", &p, "IpProtocol", "FromPort", "ToPort", "IpRanges", "Ipv6Ranges", "UserIdGroupPairs"); err != nil {
			return nil, err
		}
		base, err := rule(p)
		if err != nil {
			return nil, err
		}
		sources, err := svc.sources(g, p)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			s.Protocol, s.From, s.To = base.Protocol, base.From, base.To
			if slices.ContainsFunc(all, s.Same) {
				return nil, core.Fail("InvalidParameterValue", "the same permission must not appear multiple times")
			}
			if !groupText(s.Description) {
				return nil, core.Fail("InvalidParameterValue", "invalid rule description: %q", s.Description)
			}
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, core.Fail("MissingParameter", "the request must contain the parameter ipPermissions, with sources")
	}
	return all, nil
}

// rule validates the protocol and the ports of a permission. Protocols other than TCP,
// UDP and ICMP have no ports; AWS ignores ports in the call.
func rule(p types.IpPermission) (Rule, error) {
	name, ok := protocol(aws.ToString(p.IpProtocol))
	r := Rule{Protocol: name, From: -1, To: -1}
	if !ok {
		return r, core.Fail("InvalidParameterValue", "invalid value '%s' for IP protocol", aws.ToString(p.IpProtocol))
	}
	if !r.ported() {
		return r, nil
	}
	if p.FromPort == nil || p.ToPort == nil {
		return r, core.Fail("MissingParameter", "the request must contain the parameters fromPort and toPort")
	}
	r.From, r.To = *p.FromPort, *p.ToPort
	if strings.HasPrefix(name, "icmp") {
		if r.From < -1 || r.From > 255 || r.To < -1 || r.To > 255 || r.From == -1 && r.To != -1 {
			return r, core.Fail("InvalidParameterValue", "invalid ICMP type and code: %d, %d", r.From, r.To)
		}
		return r, nil
	}
	if r.From < 0 || r.To > 65535 || r.From > r.To {
		return r, core.Fail("InvalidParameterValue", "invalid port range: %d to %d", r.From, r.To)
	}
	return r, nil
}

// sources returns one rule for each source of a permission.
func (svc *Service) sources(g *SecurityGroup, p types.IpPermission) (all []Rule, err error) {
	malformed := func(s *string) error {
		return core.Fail("InvalidParameterValue", "CIDR block %s is malformed", aws.ToString(s))
	}
	for _, r := range p.IpRanges {
		block, err := netip.ParsePrefix(aws.ToString(r.CidrIp))
		if err != nil || !block.Addr().Is4() {
			return nil, malformed(r.CidrIp)
		}
		all = append(all, Rule{CIDR: block.Masked().String(), Description: aws.ToString(r.Description)})
	}
	for _, r := range p.Ipv6Ranges {
		block, err := netip.ParsePrefix(aws.ToString(r.CidrIpv6))
		if err != nil || !block.Addr().Is6() {
			return nil, malformed(r.CidrIpv6)
		}
		all = append(all, Rule{IPv6: block.Masked().String(), Description: aws.ToString(r.Description)})
	}
	for _, pair := range p.UserIdGroupPairs {
		if err := core.Only("security group rules", &pair, "GroupId", "UserId", "Description", "VpcId"); err != nil {
			return nil, err
		}
		other, err := lookup(svc, svc.state.SecurityGroups, pair.GroupId)
		if err != nil {
			return nil, err
		}
		if other.VPC != g.VPC || pair.UserId != nil && *pair.UserId != svc.Number() {
			return nil, core.Fail("InvalidGroup.NotFound", "you have specified two resources that belong to different networks")
		}
		all = append(all, Rule{Group: other.ID, Description: aws.ToString(pair.Description)})
	}
	return all, nil
}

// tooMany reports whether the rules of one direction and one IP version exceed the quota.
// A rule that refers to a group counts for both versions.
func (svc *Service) tooMany(rules []Rule) bool {
	v4, v6 := 0, 0
	for _, r := range rules {
		if r.IPv6 == "" {
			v4++
		}
		if r.CIDR == "" {
			v6++
		}
	}
	return max(v4, v6) > svc.state.Limits.RulesPerGroup
}

// authorize adds rules to one direction of a group, all or none.
func (svc *Service) authorize(g *SecurityGroup, direction *[]Rule, perms []types.IpPermission) ([]types.SecurityGroupRule, error) {
	rules, err := svc.rules(g, perms)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if slices.ContainsFunc(*direction, r.Same) {
			return nil, core.Fail(
				"InvalidPermission.Duplicate",
				"the specified rule \"peer: %s%s%s, %s, from port: %d, to port: %d, ALLOW\" already exists",
				r.CIDR,
				r.IPv6,
				r.Group,
				r.Protocol,
				r.From,
				r.To,
			)
		}
	}
	if svc.tooMany(append(slices.Clone(*direction), rules...)) {
		return nil, core.Fail("RulesPerSecurityGroupLimitExceeded", "the maximum number of rules per security group has been reached")
	}
	for n := range rules {
		rules[n].ID = svc.ID("sgr")
	}
	*direction = append(*direction, rules...)
	return core.Each(rules, func(r Rule) types.SecurityGroupRule { return svc.ruleOut(g, r, direction == &g.Egress) }), nil
}

func (svc *Service) ruleOut(g *SecurityGroup, r Rule, egress bool) types.SecurityGroupRule {
	out := types.SecurityGroupRule{
		SecurityGroupRuleId: aws.String(r.ID), GroupId: aws.String(g.ID), GroupOwnerId: aws.String(svc.Number()), IsEgress: aws.Bool(egress),
		IpProtocol: aws.String(r.Protocol), FromPort: aws.Int32(r.From), ToPort: aws.Int32(r.To),
		CidrIpv4: core.Text(r.CIDR), CidrIpv6: core.Text(r.IPv6), Description: core.Text(r.Description),
	}
	if r.Group != "" {
		out.ReferencedGroupInfo = &types.ReferencedSecurityGroup{GroupId: aws.String(r.Group), UserId: aws.String(svc.Number())}
	}
	return out
}

// revoke removes rules from one direction of a group, all or none.
func (svc *Service) revoke(g *SecurityGroup, direction *[]Rule, perms []types.IpPermission, ids []string) error {
	if len(perms) == 0 == (len(ids) == 0) {
		return core.Fail("InvalidParameterCombination", "rules are named by their IDs or by their permissions")
	}
	left := slices.Clone(*direction)
	for _, id := range ids {
		n := len(left)
		left = slices.DeleteFunc(left, func(r Rule) bool { return r.ID == id })
		if len(left) == n {
			return core.Fail("InvalidSecurityGroupRuleId.NotFound", "the security group rule ID '%s' does not exist", id)
		}
	}
	if len(perms) > 0 {
		rules, err := svc.rules(g, perms)
		if err != nil {
			return err
		}
		for _, r := range rules {
			n := len(left)
			left = slices.DeleteFunc(left, r.Same)
			if len(left) == n {
				return core.Fail("InvalidPermission.NotFound", "the specified rule does not exist in this security group")
			}
		}
	}
	*direction = left
	return nil
}

func (svc *Service) authorizeIngress(in *ec2.AuthorizeSecurityGroupIngressInput) (*ec2.AuthorizeSecurityGroupIngressOutput, error) {
	g, err := lookup(svc, svc.state.SecurityGroups, in.GroupId)
	if err != nil {
		return nil, err
	}
	rules, err := svc.authorize(g, &g.Ingress, in.IpPermissions)
	return &ec2.AuthorizeSecurityGroupIngressOutput{Return: aws.Bool(true), SecurityGroupRules: rules}, err
}

func (svc *Service) authorizeEgress(in *ec2.AuthorizeSecurityGroupEgressInput) (*ec2.AuthorizeSecurityGroupEgressOutput, error) {
	g, err := lookup(svc, svc.state.SecurityGroups, in.GroupId)
	if err != nil {
		return nil, err
	}
	rules, err := svc.authorize(g, &g.Egress, in.IpPermissions)
	return &ec2.AuthorizeSecurityGroupEgressOutput{Return: aws.Bool(true), SecurityGroupRules: rules}, err
}

func (svc *Service) revokeIngress(in *ec2.RevokeSecurityGroupIngressInput) (*ec2.RevokeSecurityGroupIngressOutput, error) {
	g, err := lookup(svc, svc.state.SecurityGroups, in.GroupId)
	if err != nil {
		return nil, err
	}
	return &ec2.RevokeSecurityGroupIngressOutput{Return: aws.Bool(true)}, svc.revoke(g, &g.Ingress, in.IpPermissions, in.SecurityGroupRuleIds)
}

func (svc *Service) revokeEgress(in *ec2.RevokeSecurityGroupEgressInput) (*ec2.RevokeSecurityGroupEgressOutput, error) {
	g, err := lookup(svc, svc.state.SecurityGroups, in.GroupId)
	if err != nil {
		return nil, err
	}
	return &ec2.RevokeSecurityGroupEgressOutput{Return: aws.Bool(true)}, svc.revoke(g, &g.Egress, in.IpPermissions, in.SecurityGroupRuleIds)
}

// describeIngressRules changes the descriptions of existing rules.
func (svc *Service) describeIngressRules(
	in *ec2.UpdateSecurityGroupRuleDescriptionsIngressInput,
) (*ec2.UpdateSecurityGroupRuleDescriptionsIngressOutput, error) {
	g, err := lookup(svc, svc.state.SecurityGroups, in.GroupId)
	if err != nil {
		return nil, err
	}
	rules, err := svc.rules(g, in.IpPermissions)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if !slices.ContainsFunc(g.Ingress, r.Same) {
			return nil, core.Fail("InvalidPermission.NotFound", "the specified rule does not exist in this security group")
		}
	}
	for _, r := range rules {
		g.Ingress[slices.IndexFunc(g.Ingress, r.Same)].Description = r.Description
	}
	return &ec2.UpdateSecurityGroupRuleDescriptionsIngressOutput{Return: aws.Bool(true)}, nil
}

func (svc *Service) describeSecurityGroupRules(in *ec2.DescribeSecurityGroupRulesInput) (*ec2.DescribeSecurityGroupRulesOutput, error) {
	all := map[string]*groupRule{}
	for _, g := range svc.state.SecurityGroups {
		for _, r := range g.Ingress {
			all[r.ID] = &groupRule{Thing{ID: r.ID, Born: g.Born}, g, r, false}
		}
		for _, r := range g.Egress {
			all[r.ID] = &groupRule{Thing{ID: r.ID, Born: g.Born}, g, r, true}
		}
	}
	rules, next, err := describe(svc, all, query{in.SecurityGroupRuleIds, in.Filters, in.NextToken, in.MaxResults}, fields[*groupRule]{
		"group-id":               func(r *groupRule) []string { return []string{r.of.ID} },
		"security-group-rule-id": func(r *groupRule) []string { return []string{r.ID} },
	}, func(r *groupRule) types.SecurityGroupRule { return svc.ruleOut(r.of, r.rule, r.egress) })
	return &ec2.DescribeSecurityGroupRulesOutput{SecurityGroupRules: rules, NextToken: next}, err
}
