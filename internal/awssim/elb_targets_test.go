package awssim

import (
	"fmt"
	"strings"
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

func TestListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		balancer, group, listener := served(t, c)
		same, err := c.CreateListener(t.Context(), listen(balancer, group, 6443))
		require.NoError(t, err)
		assert.Equal(t, listener, same.Listeners[0].ListenerArn)
		second, err := c.CreateTargetGroup(t.Context(), group6443("second"))
		require.NoError(t, err)
		_, err = c.CreateListener(t.Context(), listen(balancer, second.TargetGroups[0].TargetGroupArn, 6443))
		hasCode(t, err, "DuplicateListener")
		http := listen(balancer, group, 80)
		http.Protocol = types.ProtocolEnumHttp
		_, err = c.CreateListener(t.Context(), http)
		hasCode(t, err, "ValidationError")
		other, err := c.CreateLoadBalancer(t.Context(), nlb("other", testSubnetA))
		require.NoError(t, err)
		_, err = c.CreateListener(t.Context(), listen(other.LoadBalancers[0].LoadBalancerArn, group, 6443))
		hasCode(t, err, "TargetGroupAssociationLimit")
		_, err = c.DescribeListeners(t.Context(), &elb.DescribeListenersInput{})
		hasCode(t, err, "ValidationError")

		_, err = c.ModifyListener(t.Context(), &elb.ModifyListenerInput{
			ListenerArn: listener, DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: second.TargetGroups[0].TargetGroupArn}},
		})
		require.NoError(t, err)
		_, err = c.DeleteTargetGroup(t.Context(), &elb.DeleteTargetGroupInput{TargetGroupArn: group})
		require.NoError(t, err, "the listener has let go of it")
		got, err := c.DescribeTargetGroups(t.Context(), &elb.DescribeTargetGroupsInput{LoadBalancerArn: balancer})
		require.NoError(t, err)
		require.Len(t, got.TargetGroups, 1)
		assert.Equal(t, "second", *got.TargetGroups[0].TargetGroupName)
		assert.Equal(t, []string{*balancer}, got.TargetGroups[0].LoadBalancerArns)

		_, err = c.DeleteListener(t.Context(), &elb.DeleteListenerInput{ListenerArn: listener})
		require.NoError(t, err)
		_, err = c.DeleteListener(t.Context(), &elb.DeleteListenerInput{ListenerArn: listener})
		hasCode(t, err, "ListenerNotFound")
	})
}

func TestTargetsTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		group, err := c.CreateTargetGroup(t.Context(), group6443("target"))
		require.NoError(t, err)
		arn := group.TargetGroups[0].TargetGroupArn
		state := func() types.TargetHealthStateEnum {
			out, err := c.DescribeTargetHealth(t.Context(), &elb.DescribeTargetHealthInput{TargetGroupArn: arn})
			require.NoError(t, err)
			if len(out.TargetHealthDescriptions) == 0 {
				return ""
			}
			return out.TargetHealthDescriptions[0].TargetHealth.State
		}
		targets := []types.TargetDescription{{Id: aws.String(testInstance)}}
		register := func() error {
			_, err := c.RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: arn, Targets: targets})
			return err
		}
		b, err := c.CreateLoadBalancer(t.Context(), nlb("demo", testSubnetA))
		require.NoError(t, err)
		time.Sleep(elbsim.NLBTakes)
		require.NoError(t, register())
		assert.Equal(t, types.TargetHealthStateEnumUnused, state())
		_, err = c.CreateListener(t.Context(), listen(b.LoadBalancers[0].LoadBalancerArn, arn, 6443))
		require.NoError(t, err)
		assert.Equal(t, types.TargetHealthStateEnumInitial, state())
		time.Sleep(elbsim.TargetTakes)
		assert.Equal(t, types.TargetHealthStateEnumHealthy, state())
		_, err = c.DeregisterTargets(t.Context(), &elb.DeregisterTargetsInput{TargetGroupArn: arn, Targets: targets})
		require.NoError(t, err)
		time.Sleep(299 * time.Second)
		assert.Equal(t, types.TargetHealthStateEnumDraining, state())
		time.Sleep(time.Second)
		assert.Empty(t, state())

		require.NoError(t, register())
		_, err = c.SetSubnets(t.Context(), &elb.SetSubnetsInput{LoadBalancerArn: b.LoadBalancers[0].LoadBalancerArn, Subnets: []string{testSubnetB}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Equal(t, types.TargetHealthStateEnumUnused, state(), "its zone is not enabled")
		a.Edit(func(s *State) { s.EC2.Instances[testInstance].Terminating = a.account.Now() })
		hasCode(t, register(), "InvalidTarget")
		a.Edit(func(s *State) { s.EC2.Instances[testInstance].Terminated = a.account.Now() })
		assert.Empty(t, state(), "terminated instances leave")
	})
}

func TestTargetMustFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		_, group, _ := served(t, c)
		register := func(id string) error {
			_, err := c.RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{{Id: &id}}})
			return err
		}
		a.Edit(func(s *State) {
			s.EC2.Instances["i-0young"] = &Instance{Thing: Thing{ID: "i-0young"}, VPC: testVPC, Running: a.account.Now().Add(time.Minute)}
			s.EC2.Instances["i-0other"] = &Instance{Thing: Thing{ID: "i-0other"}, VPC: otherVPC, Running: a.account.Now()}
		})
		for _, id := range []string{"i-0none", "i-0young", "i-0other"} {
			hasCode(t, register(id), "InvalidTarget")
		}
		hasCode(t, register("10.0.0.9"), "ValidationError")
		time.Sleep(time.Minute)
		require.NoError(t, register("i-0young"))
		_, err := c.DeregisterTargets(
			t.Context(),
			&elb.DeregisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{{Id: aws.String("i-0none")}}},
		)
		require.NoError(t, err)
	})
}

func TestHealthyOnlyWhenActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		_, group, _ := served(t, c)
		_, err := c.RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{{Id: aws.String(testInstance)}}})
		require.NoError(t, err)
		began := time.Now()
		waiter := elb.NewTargetInServiceWaiter(c, func(o *elb.TargetInServiceWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second })
		require.NoError(t, waiter.Wait(t.Context(), &elb.DescribeTargetHealthInput{TargetGroupArn: group}, time.Hour))
		assert.InDelta(t, elbsim.NLBTakes.Seconds(), time.Since(began).Seconds(), 2)
	})
}

func TestELBTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		balancer, group, listener := served(t, c)
		arns := []string{*balancer, *group, *listener}
		_, err := c.AddTags(
			t.Context(),
			&elb.AddTagsInput{ResourceArns: arns, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}, {Key: aws.String("l")}}},
		)
		require.NoError(t, err)
		_, err = c.RemoveTags(t.Context(), &elb.RemoveTagsInput{ResourceArns: arns, TagKeys: []string{"l"}})
		require.NoError(t, err)
		out, err := c.DescribeTags(t.Context(), &elb.DescribeTagsInput{ResourceArns: arns})
		require.NoError(t, err)
		require.Len(t, out.TagDescriptions, 3)
		for i, d := range out.TagDescriptions {
			assert.Equal(t, arns[i], *d.ResourceArn)
			assert.Equal(t, []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}, d.Tags)
		}
		many := make([]string, 21)
		for i := range many {
			many[i] = *balancer
		}
		_, err = c.DescribeTags(t.Context(), &elb.DescribeTagsInput{ResourceArns: many})
		hasCode(t, err, "ValidationError")
		_, err = c.DescribeTags(t.Context(), &elb.DescribeTagsInput{ResourceArns: []string{strings.Replace(*group, "abcde", "xyz", 1)}})
		hasCode(t, err, "TargetGroupNotFound")
		var tags []types.Tag
		for i := range 50 {
			tags = append(tags, types.Tag{Key: aws.String(fmt.Sprint(i)), Value: aws.String("")})
		}
		_, err = c.AddTags(t.Context(), &elb.AddTagsInput{ResourceArns: []string{*balancer}, Tags: tags})
		hasCode(t, err, "TooManyTags")
	})
}

func TestNewLoadBalancersAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{Lag: 3 * time.Second, Page: 1})
		c := elb.NewFromConfig(a.Config())
		balancer, group, listener := served(t, c)
		_, err := c.DescribeLoadBalancers(t.Context(), &elb.DescribeLoadBalancersInput{Names: []string{"demo-apiserver"}})
		hasCode(t, err, "LoadBalancerNotFound")
		groups, err := c.DescribeTargetGroups(t.Context(), &elb.DescribeTargetGroupsInput{})
		require.NoError(t, err)
		assert.Empty(t, groups.TargetGroups)
		_, err = c.CreateLoadBalancer(t.Context(), nlb("other", testSubnetA))
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		pages := elb.NewDescribeLoadBalancersPaginator(c, &elb.DescribeLoadBalancersInput{})
		var names []string
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			require.Len(t, out.LoadBalancers, 1)
			names = append(names, *out.LoadBalancers[0].LoadBalancerName)
		}
		assert.Equal(t, []string{"demo-apiserver", "other"}, names)

		_, err = c.DeleteListener(t.Context(), &elb.DeleteListenerInput{ListenerArn: listener})
		require.NoError(t, err)
		_, err = c.DeleteTargetGroup(t.Context(), &elb.DeleteTargetGroupInput{TargetGroupArn: group})
		hasCode(t, err, "ResourceInUse")
		time.Sleep(3 * time.Second)
		_, err = c.DeleteTargetGroup(t.Context(), &elb.DeleteTargetGroupInput{TargetGroupArn: group})
		require.NoError(t, err)
		_ = balancer
	})
}

func TestELBInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := furnished(Options{}), furnished(Options{})
		b.Edit(func(s *State) { s.Serial = 99 })
		for _, x := range []*AWS{a, b} {
			c := elb.NewFromConfig(x.Config())
			_, group, _ := served(t, c)
			_, err := c.RegisterTargets(
				t.Context(),
				&elb.RegisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{{Id: aws.String(testInstance)}}},
			)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		assert.Equal(
			t,
			[]string{"Listener demo-apiserver TCP 6443", "LoadBalancer demo-apiserver", "TargetGroup demo-apiserver TCP 6443"},
			of[*elbsim.Service](a).Inventory(),
		)
		assert.Equal(t, of[*elbsim.Service](a).Detailed(), of[*elbsim.Service](b).Detailed())
		b.Edit(func(s *State) {
			for _, g := range s.ELB.TargetGroups {
				g.Attributes["preserve_client_ip.enabled"] = "false"
			}
		})
		assert.NotEqual(t, of[*elbsim.Service](a).Detailed(), of[*elbsim.Service](b).Detailed())
	})
}
