package teardown

import (
	"context"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// goingGroups lists the security groups that go with the cluster: those that
// carry its tag, and those that were made in it.
func goingGroups(ctx context.Context, c *cloud.Clients) ([]ec2.SecurityGroupState, error) {
	return cloud.Remember(ctx, c, "security groups by tag", func(ctx context.Context) (out []ec2.SecurityGroupState, err error) {
		p := awsec2.NewDescribeSecurityGroupsPaginator(c.EC2, &awsec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
			cloud.Filter("tag-key", c.OwnerTag(), c.InsideTag(), balancerControllerTag),
		}})
		all, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*awsec2.DescribeSecurityGroupsOutput, error) { return p.NextPage(ctx) }, ec2.SecurityGroupsSeen)
		for _, s := range all {
			if goes(c, s.Tags) {
				out = append(out, s)
			}
		}
		return out, err
	})
}

// remainingGroups lists security groups; before one is removed its rules are,
// since they may name another that is to go too, and so are the rules that let
// in what was made in the cluster.
func remainingGroups(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := goingGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	vpcs, made := map[string][]string{}, []string{}
	for _, s := range all {
		if madeInside(c, s.Tags) {
			made = append(made, s.ID)
		} else {
			vpcs[s.VPC] = append(vpcs[s.VPC], s.ID)
		}
	}
	var naming map[string][]string
	if len(made) > 0 {
		if naming, err = rulesNaming(ctx, c, made); err != nil {
			return nil, err
		}
		out = append(out, sweepInterfaces("of-services", RankServedInterfaces, func(ctx context.Context, c *cloud.Clients) (*ec2.NetworkInterfacesState, error) {
			return ec2.Lingering(ctx, c, cloud.Filter("group-id", made...))
		}))
	}
	for _, s := range all {
		revoked := false
		out = append(out, remain("security-group", RankInVPC, s, s.Object, 0, listed(s.ID, goingGroups), func(ctx context.Context, c *cloud.Clients, have *ec2.SecurityGroupState) error {
			if !revoked {
				if err := revokeNaming(ctx, c, naming, have.ID); err != nil {
					return err
				}
				lines := &ec2.SecurityGroupRulesState{Group: have.ID, Lines: ec2.PermissionLines(have.Ingress)}
				if err := (&ec2.SecurityGroupRules{}).Delete(ctx, c, lines); err != nil {
					return err
				}
				revoked = true
			}
			return (&ec2.SecurityGroup{}).Delete(ctx, c, have)
		}).inside(c, s.Tags))
	}
	for vpc, groups := range vpcs {
		out = append(out, sweepInterfaces(vpc, RankInterfaces, func(ctx context.Context, c *cloud.Clients) (*ec2.NetworkInterfacesState, error) {
			return ec2.InGroups(ctx, c, vpc, groups)
		}))
	}
	return out, nil
}
