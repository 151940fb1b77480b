package awssim

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tcp(port int32, groups ...string) []types.IpPermission {
	p := types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: &port, ToPort: &port}
	for _, g := range groups {
		p.UserIdGroupPairs = append(p.UserIdGroupPairs, types.UserIdGroupPair{GroupId: &g, Description: aws.String("peers")})
	}
	if len(groups) == 0 {
		p.IpRanges = []types.IpRange{{CidrIp: aws.String("0.0.0.0/0"), Description: aws.String("all")}}
	}
	return []types.IpPermission{p}
}

func TestSecurityGroupRules(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, other := t.Context(), n.newGroup("demo-controlplane")
		allow := func(group string, p []types.IpPermission) string {
			_, err := n.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &group, IpPermissions: p})
			return code(err)
		}
		revoke := func(group string, p []types.IpPermission) string {
			_, err := n.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &group, IpPermissions: p})
			return code(err)
		}
		remove := func(group string) string {
			_, err := n.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &group})
			return code(err)
		}
		_, err := n.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{VpcId: &n.vpc, GroupName: aws.String("demo-node"), Description: aws.String("twin")})
		assert.Equal(t, "InvalidGroup.Duplicate", code(err))
		assert.Equal(t, "InvalidGroup.NotFound", allow(n.group, tcp(22, "sg-00000000000000000")))
		assert.Empty(t, allow(n.group, tcp(6443, other)))
		assert.Empty(t, allow(n.group, tcp(22)))
		assert.Equal(t, "InvalidPermission.Duplicate", allow(n.group, append(tcp(23), tcp(22)...)))
		assert.Equal(t, "InvalidParameterValue", allow(n.group, append(tcp(23), tcp(23)...)))
		assert.Empty(t, allow(n.group, []types.IpPermission{{
			IpProtocol: aws.String("4"), FromPort: aws.Int32(-1), ToPort: aws.Int32(65535), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &n.group}},
		}}))

		out, err := n.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{n.group}})
		require.NoError(t, err)
		require.Len(t, out.SecurityGroups[0].IpPermissions, 3, "refused calls have changed nothing")
		assert.Nil(t, out.SecurityGroups[0].IpPermissions[2].FromPort, "protocol 4 has no ports")
		assert.Equal(t, "DependencyViolation", remove(other), "a rule of another group names it")

		text := tcp(22)
		text[0].IpRanges[0].Description = aws.String("changed")
		_, err = n.ec2.UpdateSecurityGroupRuleDescriptionsIngress(ctx, &ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{GroupId: &n.group, IpPermissions: text})
		require.NoError(t, err)
		rules, err := n.ec2.DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{Filters: filter("group-id", n.group)})
		require.NoError(t, err)
		assert.Len(t, rules.SecurityGroupRules, 4)
		assert.True(t, slices.ContainsFunc(rules.SecurityGroupRules, func(r types.SecurityGroupRule) bool { return aws.ToString(r.Description) == "changed" }))

		assert.Equal(t, "InvalidPermission.NotFound", revoke(n.group, append(tcp(6443, other), tcp(24)...)))
		assert.Equal(t, "DependencyViolation", remove(other), "a refused call has revoked nothing")
		assert.Empty(t, revoke(n.group, tcp(6443, other)))
		assert.Empty(t, remove(other))
		assert.Empty(t, remove(n.group), "its own rules do not keep a group")
	})
}
