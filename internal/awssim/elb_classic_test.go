package awssim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

func classicInput(name string, subnets ...string) *classic.CreateLoadBalancerInput {
	return &classic.CreateLoadBalancerInput{
		LoadBalancerName: aws.String(name), Subnets: subnets, SecurityGroups: []string{testGroup},
		Listeners: []types.Listener{{Protocol: aws.String("TCP"), LoadBalancerPort: 6443, InstanceProtocol: aws.String("TCP"), InstancePort: aws.Int32(6443)}},
		Tags:      []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	}
}

func TestClassicLoadBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := classic.NewFromConfig(a.Config())
		out, err := c.CreateLoadBalancer(t.Context(), classicInput("demo-apiserver", testSubnetA))
		require.NoError(t, err)
		assert.Regexp(t, `^demo-apiserver-[0-9]+\.us-east-1\.elb\.amazonaws\.com$`, *out.DNSName)
		again, err := c.CreateLoadBalancer(t.Context(), classicInput("demo-apiserver", testSubnetA))
		require.NoError(t, err)
		assert.Equal(t, out.DNSName, again.DNSName)
		_, err = c.CreateLoadBalancer(t.Context(), classicInput("demo-apiserver", testSubnetB))
		hasCode(t, err, "DuplicateLoadBalancerName")
		_, err = c.DescribeLoadBalancers(t.Context(), &classic.DescribeLoadBalancersInput{LoadBalancerNames: []string{"none"}})
		hasCode(t, err, "LoadBalancerNotFound")
		_, err = c.CreateLoadBalancer(t.Context(), classicInput("two", testSubnetA, testSubnetA2))
		hasCode(t, err, "InvalidConfigurationRequest")

		name := aws.String("demo-apiserver")
		_, err = c.AttachLoadBalancerToSubnets(t.Context(), &classic.AttachLoadBalancerToSubnetsInput{LoadBalancerName: name, Subnets: []string{testSubnetB}})
		require.NoError(t, err)
		assert.Equal(t, 2, balancerInterfaces(a))
		_, err = c.DetachLoadBalancerFromSubnets(
			t.Context(),
			&classic.DetachLoadBalancerFromSubnetsInput{LoadBalancerName: name, Subnets: []string{testSubnetA, testSubnetB}},
		)
		hasCode(t, err, "InvalidConfigurationRequest")
		_, err = c.DetachLoadBalancerFromSubnets(t.Context(), &classic.DetachLoadBalancerFromSubnetsInput{LoadBalancerName: name, Subnets: []string{testSubnetB}})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, balancerInterfaces(a))
		_, err = c.ApplySecurityGroupsToLoadBalancer(
			t.Context(),
			&classic.ApplySecurityGroupsToLoadBalancerInput{LoadBalancerName: name, SecurityGroups: []string{otherGroup}},
		)
		hasCode(t, err, "InvalidSecurityGroup")

		_, err = c.ModifyLoadBalancerAttributes(
			t.Context(),
			&classic.ModifyLoadBalancerAttributesInput{LoadBalancerName: name, LoadBalancerAttributes: &types.LoadBalancerAttributes{
				ConnectionSettings: &types.ConnectionSettings{IdleTimeout: aws.Int32(600)}, CrossZoneLoadBalancing: &types.CrossZoneLoadBalancing{Enabled: true},
			}},
		)
		require.NoError(t, err)
		at, err := c.DescribeLoadBalancerAttributes(t.Context(), &classic.DescribeLoadBalancerAttributesInput{LoadBalancerName: name})
		require.NoError(t, err)
		assert.EqualValues(t, 600, *at.LoadBalancerAttributes.ConnectionSettings.IdleTimeout)
		assert.True(t, at.LoadBalancerAttributes.CrossZoneLoadBalancing.Enabled)
		assert.Equal(t, []string{"ClassicLoadBalancer demo-apiserver"}, of[*elbsim.Service](a).Inventory())

		for range 2 {
			_, err = c.DeleteLoadBalancer(t.Context(), &classic.DeleteLoadBalancerInput{LoadBalancerName: name})
			require.NoError(t, err)
		}
		assert.Empty(t, of[*elbsim.Service](a).Inventory())
		assert.Equal(t, 1, balancerInterfaces(a))
		time.Sleep(2 * time.Minute)
		assert.Zero(t, balancerInterfaces(a))
	})
}

func TestClassicInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := classic.NewFromConfig(a.Config())
		name := aws.String("demo")
		_, err := c.CreateLoadBalancer(t.Context(), classicInput("demo", testSubnetA))
		require.NoError(t, err)
		_, err = c.ConfigureHealthCheck(t.Context(), &classic.ConfigureHealthCheckInput{LoadBalancerName: name, HealthCheck: &types.HealthCheck{
			Target: aws.String("TCP:6443"), Interval: aws.Int32(5), Timeout: aws.Int32(5), HealthyThreshold: aws.Int32(2), UnhealthyThreshold: aws.Int32(6),
		}})
		hasCode(t, err, "ValidationError")
		_, err = c.ConfigureHealthCheck(t.Context(), &classic.ConfigureHealthCheckInput{LoadBalancerName: name, HealthCheck: &types.HealthCheck{
			Target: aws.String("TCP:6443"), Interval: aws.Int32(5), Timeout: aws.Int32(4), HealthyThreshold: aws.Int32(2), UnhealthyThreshold: aws.Int32(6),
		}})
		require.NoError(t, err)
		_, err = c.RegisterInstancesWithLoadBalancer(
			t.Context(),
			&classic.RegisterInstancesWithLoadBalancerInput{LoadBalancerName: name, Instances: []types.Instance{{InstanceId: aws.String("i-0none")}}},
		)
		hasCode(t, err, "InvalidInstance")
		instances := []types.Instance{{InstanceId: aws.String(testInstance)}}
		_, err = c.RegisterInstancesWithLoadBalancer(t.Context(), &classic.RegisterInstancesWithLoadBalancerInput{LoadBalancerName: name, Instances: instances})
		require.NoError(t, err)
		state := func() string {
			out, err := c.DescribeInstanceHealth(t.Context(), &classic.DescribeInstanceHealthInput{LoadBalancerName: name})
			require.NoError(t, err)
			return *out.InstanceStates[0].State
		}
		assert.Equal(t, "OutOfService", state())
		time.Sleep(10 * time.Second)
		assert.Equal(t, "InService", state())
		_, err = c.DeregisterInstancesFromLoadBalancer(t.Context(), &classic.DeregisterInstancesFromLoadBalancerInput{LoadBalancerName: name, Instances: instances})
		require.NoError(t, err)
		got, err := c.DescribeLoadBalancers(t.Context(), &classic.DescribeLoadBalancersInput{LoadBalancerNames: []string{"demo"}})
		require.NoError(t, err)
		assert.Empty(t, got.LoadBalancerDescriptions[0].Instances)
		assert.Equal(t, []string{"us-east-1a"}, got.LoadBalancerDescriptions[0].AvailabilityZones)
	})
}

func TestClassicTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := classic.NewFromConfig(a.Config())
		_, err := c.CreateLoadBalancer(t.Context(), classicInput("demo", testSubnetA))
		require.NoError(t, err)
		_, err = c.AddTags(t.Context(), &classic.AddTagsInput{LoadBalancerNames: []string{"demo"}, Tags: []types.Tag{{Key: aws.String("l"), Value: aws.String("w")}}})
		require.NoError(t, err)
		_, err = c.RemoveTags(t.Context(), &classic.RemoveTagsInput{LoadBalancerNames: []string{"demo"}, Tags: []types.TagKeyOnly{{Key: aws.String("k")}}})
		require.NoError(t, err)
		out, err := c.DescribeTags(t.Context(), &classic.DescribeTagsInput{LoadBalancerNames: []string{"demo"}})
		require.NoError(t, err)
		assert.Equal(t, []types.Tag{{Key: aws.String("l"), Value: aws.String("w")}}, out.TagDescriptions[0].Tags)
		_, err = c.DescribeTags(t.Context(), &classic.DescribeTagsInput{LoadBalancerNames: make([]string, 21)})
		hasCode(t, err, "ValidationError")
	})
}
