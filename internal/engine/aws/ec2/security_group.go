package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// SecurityGroup is a security group; its rules are a resource of their own,
// since groups name each other in them.
type SecurityGroup struct {
	VPC         *graph.Ref[VPCState]
	Name        string
	Description string
	Tags        cloud.Tags
}

// SecurityGroupState is a security group that exists.
type SecurityGroupState struct {
	identity.Object
	VPC, Name, Description string
	Ingress, Egress        []types.IpPermission
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
			return nil, fmt.Errorf("security group %s is named %s, but does not carry the tag %s=%s: add the tag, or bring the group as an override", x.ID, g.Name, c.OwnerTag(), cloud.Owned)
		}
	}
	return nil, nil
}

// Diff implements graph.Desired.
func (g *SecurityGroup) Diff(have *SecurityGroupState) (d graph.Diff) {
	d.Fixed("name", have.Name, g.Name)
	d.Fixed("description", have.Description, g.Description)
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
	return &SecurityGroupState{Object: identity.Object{ID: aws.ToString(out.GroupId), Tags: g.Tags}, VPC: vpc, Name: g.Name, Description: g.Description}, nil
}

// Update implements graph.Updater.
func (g *SecurityGroup) Update(ctx context.Context, c *cloud.Clients, have *SecurityGroupState, _ graph.Diff) (*SecurityGroupState, error) {
	after, err := *have, error(nil)
	after.Object, err = retagged(ctx, c, have.Object, g.Tags)
	return &after, err
}

// Delete implements graph.Deleter.
func (g *SecurityGroup) Delete(ctx context.Context, c *cloud.Clients, have *SecurityGroupState) error {
	_, err := c.EC2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &have.ID})
	return err
}

// Blockers implements graph.Explained.
func (g *SecurityGroup) Blockers(ctx context.Context, c *cloud.Clients, have *SecurityGroupState) string {
	return interfacesIn(ctx, c, "group-id", have.ID)
}

// SecurityGroups lists the security groups of a VPC, whoever they belong to.
func SecurityGroups(ctx context.Context, c *cloud.Clients, vpc string) ([]SecurityGroupState, error) {
	return cloud.Remember(ctx, c, "security groups of "+vpc, func(ctx context.Context) ([]SecurityGroupState, error) {
		p := ec2.NewDescribeSecurityGroupsPaginator(c.EC2, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{cloud.Filter("vpc-id", vpc)}})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*ec2.DescribeSecurityGroupsOutput, error) { return p.NextPage(ctx) },
			SecurityGroupsSeen)
	})
}

func SecurityGroupsSeen(o *ec2.DescribeSecurityGroupsOutput) (out []SecurityGroupState) {
	for _, x := range o.SecurityGroups {
		out = append(out, SecurityGroupState{
			Object: identity.Object{ID: aws.ToString(x.GroupId), Tags: cloud.FromEC2(x.Tags)}, VPC: aws.ToString(x.VpcId),
			Name: aws.ToString(x.GroupName), Description: aws.ToString(x.Description), Ingress: x.IpPermissions, Egress: x.IpPermissionsEgress,
		})
	}
	return out
}

// SecurityGroupByID looks up a security group that is somebody else's.
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
