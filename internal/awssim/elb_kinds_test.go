package awssim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

func TestApplicationLoadBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		in := nlb("web", testSubnetA, testSubnetB)
		in.Type, in.Scheme = types.LoadBalancerTypeEnumApplication, types.LoadBalancerSchemeEnumInternal
		out, err := c.CreateLoadBalancer(t.Context(), in)
		require.NoError(t, err)
		arn := out.LoadBalancers[0].LoadBalancerArn
		assert.Contains(t, *arn, ":loadbalancer/app/web/")
		assert.Regexp(t, `^internal-web-[0-9]+\.us-east-1\.elb\.amazonaws\.com$`, *out.LoadBalancers[0].DNSName)
		tcp, err := c.CreateTargetGroup(t.Context(), group6443("tcp"))
		require.NoError(t, err)
		_, err = c.CreateListener(t.Context(), listen(arn, tcp.TargetGroups[0].TargetGroupArn, 80))
		hasCode(t, err, "ValidationError")
		listener := listen(arn, tcp.TargetGroups[0].TargetGroupArn, 80)
		listener.Protocol = types.ProtocolEnumHttp
		_, err = c.CreateListener(t.Context(), listener)
		hasCode(t, err, "IncompatibleProtocols")

		web, err := c.CreateTargetGroup(
			t.Context(),
			&elb.CreateTargetGroupInput{Name: aws.String("web"), Port: aws.Int32(80), Protocol: types.ProtocolEnumHttp, VpcId: aws.String(testVPC)},
		)
		require.NoError(t, err)
		assert.Equal(t, "/", *web.TargetGroups[0].HealthCheckPath)
		listener.DefaultActions = []types.Action{{Type: types.ActionTypeEnumForward, ForwardConfig: &types.ForwardActionConfig{
			TargetGroups: []types.TargetGroupTuple{{TargetGroupArn: web.TargetGroups[0].TargetGroupArn}},
		}}}
		_, err = c.CreateListener(t.Context(), listener)
		require.NoError(t, err)
		listener.DefaultActions[0].Type = types.ActionTypeEnumRedirect
		_, err = c.CreateListener(t.Context(), listener)
		isNotSimulated(t, err)
		got, err := c.DescribeListeners(t.Context(), &elb.DescribeListenersInput{LoadBalancerArn: arn})
		require.NoError(t, err)
		require.Len(t, got.Listeners, 1)
		assert.Equal(t, web.TargetGroups[0].TargetGroupArn, got.Listeners[0].DefaultActions[0].TargetGroupArn)
		_, err = c.SetSubnets(t.Context(), &elb.SetSubnetsInput{LoadBalancerArn: arn, Subnets: []string{testSubnetA}})
		hasCode(t, err, "ValidationError")
		time.Sleep(elbsim.ALBTakes)
		shown, err := c.DescribeLoadBalancers(t.Context(), &elb.DescribeLoadBalancersInput{LoadBalancerArns: []string{*arn}})
		require.NoError(t, err)
		assert.Equal(t, types.LoadBalancerStateEnumActive, shown.LoadBalancers[0].State.Code)
	})
}

func TestIPv6Targets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		in := group6443("six")
		in.IpAddressType = types.TargetGroupIpAddressTypeEnumIpv6
		_, err := c.CreateTargetGroup(t.Context(), in)
		hasCode(t, err, "InvalidConfigurationRequest")
		a.Edit(func(s *State) {
			s.EC2.VPCs[testVPC].IPv6 = &Association{ID: "assoc", CIDR: "2001:db8::/56"}
			s.EC2.Subnets[testSubnetA].IPv6CIDR = "2001:db8::/64"
		})
		group, err := c.CreateTargetGroup(t.Context(), in)
		require.NoError(t, err)
		arn := group.TargetGroups[0].TargetGroupArn
		targets := []types.TargetDescription{{Id: aws.String(testInstance)}}
		_, err = c.RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: arn, Targets: targets})
		hasCode(t, err, "InvalidTarget")
		a.Edit(func(s *State) {
			s.EC2.Interfaces["eni-0aaaaaaaaaaaaaaa1"] = &Interface{
				Thing:  Thing{ID: "eni-0aaaaaaaaaaaaaaa1"},
				Subnet: testSubnetA,
				VPC:    testVPC,
				IPv6:   []string{"2001:db8::9"},
				Owner:  testInstance,
			}
			s.EC2.Instances[testInstance].Interfaces = []string{"eni-0aaaaaaaaaaaaaaa1"}
		})
		_, err = c.RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: arn, Targets: targets})
		require.NoError(t, err)

		four, err := c.CreateLoadBalancer(t.Context(), nlb("four", testSubnetA))
		require.NoError(t, err)
		_, err = c.CreateListener(t.Context(), listen(four.LoadBalancers[0].LoadBalancerArn, arn, 6443))
		hasCode(t, err, "InvalidConfigurationRequest")
		dual := nlb("dual", testSubnetA)
		dual.IpAddressType = types.IpAddressTypeDualstack
		both, err := c.CreateLoadBalancer(t.Context(), dual)
		require.NoError(t, err)
		_, err = c.CreateListener(t.Context(), listen(both.LoadBalancers[0].LoadBalancerArn, arn, 6443))
		require.NoError(t, err)
	})
}

func TestHealthOfNamedTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		_, group, _ := served(t, c)
		ask := func(id string) (*elb.DescribeTargetHealthOutput, error) {
			return c.DescribeTargetHealth(t.Context(), &elb.DescribeTargetHealthInput{TargetGroupArn: group, Targets: []types.TargetDescription{{Id: &id}}})
		}
		out, err := ask(testInstance)
		require.NoError(t, err)
		assert.Equal(t, types.TargetHealthReasonEnumNotRegistered, out.TargetHealthDescriptions[0].TargetHealth.Reason)
		_, err = ask("i-0none")
		hasCode(t, err, "InvalidTarget")
		attributes, err := c.DescribeTargetGroupAttributes(t.Context(), &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: group})
		require.NoError(t, err)
		assert.Contains(t, attributes.Attributes, types.TargetGroupAttribute{Key: aws.String("deregistration_delay.timeout_seconds"), Value: aws.String("300")})
	})
}
