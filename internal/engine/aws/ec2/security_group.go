package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// SecurityGroup is a security group. Its rules are a separate resource, because the rules
// of two groups may refer to each other.
type SecurityGroup struct {
	VPC         *graph.Ref[VPCState]
	Name        string
	Description string
	Tags        cloud.Tags
}

// SecurityGroupState is a security group, as AWS describes it.
type SecurityGroupState struct {
	identity.Object
	VPC, Name, Description string
	Ingress, Egress        []types.IpPermission

	// ReferencingRules are the rules of other groups that refer to this one, by group ID.
	// It is set only for groups that a controller created.
	ReferencingRules map[string][]string
	// Also are the IDs of the other groups that a lookup by filters has found.
	Also []string
}

var (
	_ graph.Managed[SecurityGroupState]   = (*SecurityGroup)(nil)
	_ graph.Explained[SecurityGroupState] = (*SecurityGroup)(nil)
)

// Needs implements graph.Desired.
func (g *SecurityGroup) Needs() []graph.Edge { return graph.Exists(g.VPC) }

// Find implements graph.Desired.
func (g *SecurityGroup) Find(ctx context.Context, c *cloud.Clients) (*SecurityGroupState, error) {
	vpc, ok := g.VPC.Found()
	if !ok {
		return nil, nil
	}
	all, err := SecurityGroups(ctx, c, vpc.ID)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		switch {
		case x.Name != g.Name: // a name is unique in a VPC
		case x.Tags[c.OwnerTag()] == cloud.Owned:
			return &x, nil
		default:
			return nil, fmt.Errorf(
				"security group %s is named %s, but does not have the tag %s=%s: add the tag, or set the group in securityGroupOverrides",
				x.ID,
				g.Name,
				c.OwnerTag(),
				cloud.Owned,
			)
		}
	}
	return nil, nil
}

// Diff implements graph.Desired.
func (g *SecurityGroup) Diff(have *SecurityGroupState) (d plan.Diff) {
	d.Fixed("name", have.Name, g.Name)
	d.Fixed("description", have.Description, g.Description)
	if have.ID != "" && len(have.Egress) == 0 {
		d.Fixed("egress", "none", "a rule", "nothing in the group can send anything but answers: permit what the machines need, for instance with "+
			"'aws ec2 authorize-security-group-egress --group-id "+have.ID+" --ip-permissions IpProtocol=-1,IpRanges=[{CidrIp=0.0.0.0/0}]', which AWS does for a new group")
	}
	d.Tags(have.Tags, g.Tags)
	return d
}

// Create implements graph.Creator.
func (g *SecurityGroup) Create(ctx context.Context, c *cloud.Clients) (*SecurityGroupState, error) {
	vpc := g.VPC.CloudID()
	out, err := c.EC2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		VpcId: &vpc, GroupName: &g.Name, Description: &g.Description, TagSpecifications: g.Tags.On(types.ResourceTypeSecurityGroup),
	}, cloud.SendOnce)
	if err != nil {
		return nil, err
	}
	everything := []types.IpPermission{{IpProtocol: aws.String("-1"), IpRanges: []types.IpRange{{CidrIp: aws.String(AnywhereIPv4)}}}}
	return &SecurityGroupState{
		Object: identity.Object{ID: aws.ToString(out.GroupId), Tags: g.Tags}, VPC: vpc, Name: g.Name, Description: g.Description, Egress: everything,
	}, nil
}

// Update implements graph.Updater.
func (g *SecurityGroup) Update(ctx context.Context, c *cloud.Clients, have *SecurityGroupState, d plan.Diff) (*SecurityGroupState, error) {
	after, err := *have, error(nil)
	after.Object, err = changeTags(ctx, c, have.Object, g.Tags, d)
	return &after, err
}

// Delete implements graph.Deleter.
func (g *SecurityGroup) Delete(ctx context.Context, c *cloud.Clients, have *SecurityGroupState) error {
	_, err := c.EC2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &have.ID})
	return err
}

// Blockers implements graph.Explained.
func (g *SecurityGroup) Blockers(ctx context.Context, c *cloud.Clients, have *SecurityGroupState) string {
	return blockingInterfaces(ctx, c, "group-id", have.ID)
}

// OwnedSecurityGroups lists the security groups of a VPC that the cluster owns.
func OwnedSecurityGroups(vpc string) kind.Listing[SecurityGroupState] {
	return func(ctx context.Context, c *cloud.Clients) ([]SecurityGroupState, error) {
		all, err := SecurityGroups(ctx, c, vpc)
		return slices.DeleteFunc(slices.Clone(all), func(s SecurityGroupState) bool { return !s.IsOwned(c) }), err
	}
}

// SecurityGroups lists all security groups of a VPC, owned or not.
func SecurityGroups(ctx context.Context, c *cloud.Clients, vpc string) ([]SecurityGroupState, error) {
	return cloud.Remember(ctx, c, "security groups of "+vpc, func(ctx context.Context) ([]SecurityGroupState, error) {
		return describeSecurityGroups(ctx, c, cloud.Filter("vpc-id", vpc))
	})
}

// groupsInVPC lists the security groups of a VPC without the default group, which is
// deleted with the VPC.
func groupsInVPC(ctx context.Context, c *cloud.Clients, vpc string) ([]SecurityGroupState, error) {
	all, err := SecurityGroups(ctx, c, vpc)
	return slices.DeleteFunc(slices.Clone(all), func(s SecurityGroupState) bool { return s.Name == "default" }), err
}

func securityGroupStates(o *ec2.DescribeSecurityGroupsOutput) (out []SecurityGroupState) {
	for _, x := range o.SecurityGroups {
		out = append(out, SecurityGroupState{
			Object: identity.Object{ID: aws.ToString(x.GroupId), Tags: cloud.FromEC2(x.Tags)}, VPC: aws.ToString(x.VpcId),
			Name: aws.ToString(x.GroupName), Description: aws.ToString(x.Description), Ingress: x.IpPermissions, Egress: x.IpPermissionsEgress,
		})
	}
	return out
}

// SecurityGroupByID looks up an existing security group.
func SecurityGroupByID(vpc *graph.Ref[VPCState], id string) graph.Lookup[SecurityGroupState] {
	return func(ctx context.Context, c *cloud.Clients) (*SecurityGroupState, error) {
		in := vpc.CloudID()
		all, err := SecurityGroups(ctx, c, in)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			if x.ID == id {
				return &x, nil
			}
		}
		return nil, fmt.Errorf("security group %s is not in VPC %s", id, in)
	}
}

// SecurityGroupKind is the kind of security groups.
const SecurityGroupKind = "security-group"

// securityGroupKind declares security groups.
func securityGroupKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: SecurityGroupKind, Rehearsed: true, Area: plan.AreaSecurity, Type: types.ResourceTypeSecurityGroup, InCluster: true,
		ReadActions: []string{"ec2:DescribeSecurityGroups"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateSecurityGroup", "ec2:CreateTags", "ec2:DeleteSecurityGroup", "ec2:DeleteTags"},
	}, kind.Functions[SecurityGroupState]{
		List: securityGroupsOf, InVPC: groupsInVPC, Delete: &leftoverGroup{},
		Refers: func(s SecurityGroupState) []string { return []string{s.VPC} },
	})
}

// leftoverGroup deletes a security group whose rules are not in the graph. Rules may
// refer to another group that is also deleted, and rules of other groups may refer to
// this one.
type leftoverGroup struct{ SecurityGroup }

// Delete implements graph.Deleter. It revokes rules only at the first attempt.
func (g *leftoverGroup) Delete(ctx context.Context, c *cloud.Clients, have *SecurityGroupState) error {
	for _, in := range slices.Sorted(maps.Keys(have.ReferencingRules)) {
		if err := revokeLines(ctx, c, in, have.ReferencingRules[in]); err != nil {
			return err
		}
	}
	if err := revokeLines(ctx, c, have.ID, PermissionLines(have.Ingress)); err != nil {
		return err
	}
	have.ReferencingRules, have.Ingress = nil, nil
	return g.SecurityGroup.Delete(ctx, c, have)
}

func revokeLines(ctx context.Context, c *cloud.Clients, group string, lines []string) error {
	return (&SecurityGroupRules{}).Delete(ctx, c, &SecurityGroupRulesState{Group: group, Lines: lines})
}

// securityGroupsOf lists the security groups that are deleted with a cluster.
func securityGroupsOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]SecurityGroupState, error) {
	return cloud.Remember(ctx, c, "security groups by tag", func(ctx context.Context) (out []SecurityGroupState, err error) {
		all, err := describeSecurityGroups(ctx, c, cloud.Filter("tag-key", c.OwnerTag(), of.Tag(), kind.LoadBalancerControllerTag))
		if err != nil {
			return nil, err
		}
		var created []string
		for _, s := range all {
			if of.Has(s.Tags) {
				out = append(out, s)
			}
			if of.Created(s.Tags) {
				created = append(created, s.ID)
			}
		}
		if len(created) == 0 {
			return out, nil
		}
		referencing, err := describeSecurityGroups(ctx, c, cloud.Filter("ip-permission.group-id", created...))
		for n, s := range out {
			if of.Created(s.Tags) {
				out[n].ReferencingRules = rulesReferencing(s.ID, referencing, created)
			}
		}
		return out, err
	})
}

// rulesReferencing lists the rules with a group as their source, by group ID, without
// those of groups that are also deleted.
func rulesReferencing(id string, all []SecurityGroupState, deleted []string) map[string][]string {
	rules := map[string][]string{}
	for _, g := range all {
		if slices.Contains(deleted, g.ID) {
			continue
		}
		for _, line := range PermissionLines(g.Ingress) {
			if strings.Fields(line)[2] == id {
				rules[g.ID] = append(rules[g.ID], line)
			}
		}
	}
	return rules
}

func describeSecurityGroups(ctx context.Context, c *cloud.Clients, filters ...types.Filter) ([]SecurityGroupState, error) {
	p := ec2.NewDescribeSecurityGroupsPaginator(c.EC2, &ec2.DescribeSecurityGroupsInput{Filters: filters})
	return cloud.Pages(ctx, p, securityGroupStates)
}

// SecurityGroupsByFilters looks up all existing security groups that match EC2 filters
// (CAPA: spec.additionalSecurityGroups[].filters). With created, the run creates some of them,
// and it is no error if there are none yet: then the state has no ID.
func SecurityGroupsByFilters(vpc *graph.Ref[VPCState], filters map[string][]string, created bool) graph.Lookup[SecurityGroupState] {
	return func(ctx context.Context, c *cloud.Clients) (*SecurityGroupState, error) {
		query, ec2Filters := filterList(filters)
		all, err := cloud.Remember(ctx, c, "security groups "+query, func(ctx context.Context) ([]SecurityGroupState, error) {
			return describeSecurityGroups(ctx, c, ec2Filters...)
		})
		if err != nil {
			return nil, err
		}
		var first *SecurityGroupState
		for _, g := range all {
			switch {
			case g.VPC != vpc.CloudID():
			case first == nil:
				first = &g
			default:
				first.Also = append(first.Also, g.ID)
			}
		}
		switch {
		case first == nil && created:
			return &SecurityGroupState{}, nil
		case first == nil:
			return nil, fmt.Errorf("no security group of VPC %s matches %s", vpc.CloudID(), query)
		}
		return first, nil
	}
}
