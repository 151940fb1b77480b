package awssim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func TestClientTokens(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, address := t.Context(), n.newAddress()
		nat := n.newNAT(address, "one")
		assert.Equal(t, nat, n.newNAT(address, "one"), "the same token makes no twin")
		_, err := n.ec2.CreateNatGateway(
			ctx,
			&ec2.CreateNatGatewayInput{SubnetId: &n.subnet, AllocationId: aws.String("eipalloc-other"), ClientToken: aws.String("one")},
		)
		assert.Equal(t, "IdempotentParameterMismatch", code(err))

		run := n.launch(2, "a")
		run.ClientToken = aws.String("two")
		first := n.run(run)
		ids := []string{*first[0].InstanceId, *first[1].InstanceId}
		other := *run
		other.InstanceType = "t3.large"
		_, err = n.ec2.RunInstances(ctx, &other)
		assert.Equal(t, "IdempotentParameterMismatch", code(err))
		_, err = n.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		require.NoError(t, err)
		time.Sleep(ec2sim.InstanceStops)
		_, err = n.ec2.RunInstances(ctx, run) // "Error codes for the Amazon EC2 API"
		assert.Equal(t, "IdempotentInstanceTerminated", code(err))
		time.Sleep(ec2sim.InstanceShown)
		_, err = n.ec2.RunInstances(ctx, run)
		assert.Equal(t, "IdempotentInstanceTerminated", code(err), "a token outlives what was made")

		twins := func(names ...string) int {
			out, err := n.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: filter("tag:Name", names...)})
			require.NoError(t, err)
			return len(out.Vpcs)
		}
		_, err = n.ec2.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: named("vpc", "demo-vpc")})
		require.NoError(t, err)
		assert.Equal(t, 2, twins("demo-vpc"), "CreateVpc knows no token")
	})
}

func TestFailedCallsUseNoToken(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		run := n.launch(1, "a")
		run.ClientToken, run.KeyName = aws.String("one"), aws.String("late")
		_, err := n.ec2.RunInstances(t.Context(), run)
		assert.Equal(t, "InvalidKeyPair.NotFound", code(err))
		n.aws.Edit(func(s *State) { s.EC2.KeyPairs["late"] = true })
		assert.Len(t, n.run(run), 1)
	})
}

func TestLimits(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		var err error
		for range 4 {
			_, err = n.ec2.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.1.0.0/16")})
		}
		assert.Equal(t, "VpcLimitExceeded", code(err), "the default VPC counts")
		for range 6 {
			_, err = n.ec2.AllocateAddress(ctx, &ec2.AllocateAddressInput{})
		}
		assert.Equal(t, "AddressLimitExceeded", code(err))
		for port := range int32(61) {
			_, err = n.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &n.group, IpPermissions: tcp(port)})
		}
		assert.Equal(t, "RulesPerSecurityGroupLimitExceeded", code(err))

		n.aws.Edit(func(s *State) { s.EC2.Limits.VCPUs = 7 })
		four := n.launch(4, "a")
		_, err = n.ec2.RunInstances(ctx, four)
		assert.Equal(t, "VcpuLimitExceeded", code(err))
		four.MinCount = aws.Int32(2)
		assert.Len(t, n.run(four), 3, "as many as possible")
	})
}

func TestLag(t *testing.T) {
	in(t, Options{Lag: 5 * time.Second, LagRefs: 2 * time.Second}, func(t *testing.T, n *testbed) {
		ctx, subnet := t.Context(), n.newSubnet("10.0.9.0/24", "us-east-1a")
		seen := func() bool {
			list, err := n.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filter("vpc-id", n.vpc)})
			require.NoError(t, err)
			_, err = n.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet}})
			listed := slices.ContainsFunc(list.Subnets, func(s types.Subnet) bool { return *s.SubnetId == subnet })
			assert.Equal(t, map[bool]string{true: "", false: "InvalidSubnetID.NotFound"}[listed], code(err))
			return listed
		}
		tag := func() string {
			_, err := n.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{subnet}, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
			return code(err)
		}
		assert.False(t, seen())
		assert.Equal(t, "InvalidSubnetID.NotFound", tag())
		time.Sleep(2 * time.Second)
		assert.Empty(t, tag(), "a write may name it")
		assert.False(t, seen(), "but it does not show yet")
		time.Sleep(3 * time.Second)
		assert.True(t, seen())
	})
}

func TestPagesAndFilters(t *testing.T) {
	in(t, Options{Page: 3}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		for k := range 4 {
			n.run(n.launch(2, fmt.Sprintf("demo-md-%d", k)))
		}
		list := func(filters ...types.Filter) (ids []string, pages int) {
			for p := ec2.NewDescribeInstancesPaginator(n.ec2, &ec2.DescribeInstancesInput{Filters: filters}); p.HasMorePages(); pages++ {
				out, err := p.NextPage(ctx)
				require.NoError(t, err)
				for _, r := range out.Reservations {
					for _, i := range r.Instances {
						ids = append(ids, *i.InstanceId)
					}
				}
			}
			return ids, pages
		}
		all, pages := list()
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), 8)
		assert.Equal(t, 3, pages)
		for want, filters := range map[int][]types.Filter{
			8: filter("tag:Name", "demo-*"),
			4: filter("tag:Name", "demo-md-?1", "demo-md-[01]", "*-0", `demo-md-1`),
			0: filter("tag:Name", `demo-\*`),
			2: append(filter("tag:Name", "demo-md-2"), filter("instance-state-name", "pending", "running")...),
		} {
			found, _ := list(filters...)
			assert.Len(t, found, want)
		}
		_, err := n.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filter("shoe-size", "43")})
		require.ErrorContains(t, err, "not simulated")
		_, err = n.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(4)})
		assert.Equal(t, "InvalidParameterValue", code(err))
		_, err = n.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: all[:1], MaxResults: aws.Int32(5)})
		assert.Equal(t, "InvalidParameterCombination", code(err))
		out, err := n.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: all})
		require.NoError(t, err)
		assert.Nil(t, out.NextToken, "what is named by ID comes at once")

		images, err := n.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: filter("name", "capa-ami-ubuntu-24.04-?1.34.2-*")})
		require.NoError(t, err)
		assert.Len(t, images.Images, 8)
	})
}

func TestUnknownParametersFail(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		r := n.launch(1, "a")
		r.EbsOptimized = aws.Bool(true)
		_, err := n.ec2.RunInstances(t.Context(), r)
		require.ErrorContains(t, err, "EbsOptimized is not simulated")
		r = n.launch(1, "a")
		r.Placement = &types.Placement{GroupId: aws.String("pg-0")}
		_, err = n.ec2.RunInstances(t.Context(), r)
		assert.ErrorContains(t, err, "GroupId is not simulated")
	})
}
