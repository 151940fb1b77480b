package ec2

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// groupsPerInterface is how many security groups an interface can have.
const groupsPerInterface = 5

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

// NewGroup makes a group, which lets everything out.
func (svc *Service) NewGroup(v *VPC, name, description string, tags map[string]string) *SecurityGroup {
	g := &SecurityGroup{Thing: svc.made("sg", tags), VPC: v.ID, Name: name, Description: description}
	g.Egress = []Rule{{ID: svc.ID("sgr"), Protocol: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}}
	if v.IPv6 != nil {
		g.Egress = append(g.Egress, Rule{ID: svc.ID("sgr"), Protocol: "-1", From: -1, To: -1, IPv6: "::/0"})
	}
	svc.state.SecurityGroups[g.ID] = g
	return g
}

// groupText reports whether names and descriptions of groups may be so.
func groupText(s string) bool {
	odd := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(". _-:/()#,@[]+=&;{}!$*", r)
	}
	return len(s) <= 255 && !strings.ContainsFunc(s, odd)
}

// createSecurityGroup makes a group. Its name is its own in the VPC. Without
// a VPC AWS takes the default one, which nobody wants here.
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
	return fmt.Sprintf("arn:aws:ec2:%s:%s:security-group/%s", svc.Region, core.AccountID, g.ID)
}

func (svc *Service) groupOut(g *SecurityGroup) types.SecurityGroup {
	return types.SecurityGroup{
		GroupId: aws.String(g.ID), GroupName: aws.String(g.Name), Description: aws.String(g.Description), VpcId: aws.String(g.VPC),
		OwnerId: aws.String(core.AccountID), SecurityGroupArn: aws.String(svc.groupARN(g)), Tags: tagsOut(g.Tags),
		IpPermissions: permissions(g.Ingress), IpPermissionsEgress: permissions(g.Egress),
	}
}

// permissions groups rules as answers hold them: by protocol and ports.
func permissions(rules []Rule) (all []types.IpPermission) {
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
				GroupId: aws.String(r.Group), UserId: aws.String(core.AccountID), Description: core.Text(r.Description),
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
		"owner-id":                func(*SecurityGroup) []string { return []string{core.AccountID} },
		"ip-permission.group-id":  rules(func(r Rule) string { return r.Group }),
		"ip-permission.cidr":      rules(func(r Rule) string { return r.CIDR }),
		"ip-permission.ipv6-cidr": rules(func(r Rule) string { return r.IPv6 }),
	}, svc.groupOut)
	return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: groups, NextToken: next}, err
}

// Users names what keeps a group from being deleted: interfaces that have it
// and rules of other groups that name it.
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

// GroupsFor checks the groups that an interface in a VPC is to have.
func (svc *Service) GroupsFor(vpc string, ids []string) ([]string, error) {
	if len(ids) > groupsPerInterface {
		return nil, core.Fail("SecurityGroupsPerInterfaceLimitExceeded", "an interface can have %d security groups", groupsPerInterface)
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

// SecurityGroup returns the security group of an ID, or nil.
func (svc *Service) SecurityGroup(id string) *SecurityGroup { return svc.state.SecurityGroups[id] }

// SecurityGroups returns all security groups, in the order of their IDs.
func (svc *Service) SecurityGroups() []*SecurityGroup { return core.ByKey(svc.state.SecurityGroups) }

// RemoveSecurityGroup removes a security group. It does not look who uses it.
func (svc *Service) RemoveSecurityGroup(g *SecurityGroup) { delete(svc.state.SecurityGroups, g.ID) }

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

// keepsVPC is none for the default group, which goes with its VPC.
func (g *SecurityGroup) keepsVPC() string {
	if g.Name == "default" {
		return ""
	}
	return g.VPC
}

func (g *SecurityGroup) over(time.Time) bool { return g.Given || g.Name == "default" }

func (g *SecurityGroup) details(d dump) []string {
	return []string{g.VPC, g.Name, g.Description, "in " + d.rules(g.Ingress), "out " + d.rules(g.Egress)}
}

// Rule is one rule of a security group, with exactly one source.
type Rule struct {
	ID, Protocol      string
	From, To          int32
	CIDR, IPv6, Group string // one of them
	Description       string
}

// DefaultGroup returns the default security group of a VPC, if it has one.
func (svc *Service) DefaultGroup(vpc string) []string {
	for _, g := range core.ByKey(svc.state.SecurityGroups) {
		if g.VPC == vpc && g.Name == "default" {
			return []string{g.ID}
		}
	}
	return nil
}
