package awssim

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	autoscalingsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
)

// pool is a group in two zones.
type pool struct {
	*testbed
	c        *autoscaling.Client
	template string
	other    string // the second subnet
}

func pooled(t *testing.T, test func(t *testing.T, p *pool)) {
	t.Helper()
	in(t, Options{}, func(t *testing.T, n *testbed) {
		p := &pool{testbed: n, c: autoscaling.NewFromConfig(n.aws.Config()), template: n.newTemplate("demo"), other: n.newSubnet("10.0.1.0/24", "us-east-1b")}
		test(t, p)
	})
}

func (p *pool) group(name string, desired int32) *autoscaling.CreateAutoScalingGroupInput {
	return &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name,
		MinSize:              aws.Int32(0),
		MaxSize:              aws.Int32(10),
		DesiredCapacity:      &desired,
		VPCZoneIdentifier:    aws.String(p.subnet + "," + p.other),
		LaunchTemplate:       &types.LaunchTemplateSpecification{LaunchTemplateId: &p.template, Version: aws.String("$Latest")},
		Tags: []types.Tag{
			{Key: aws.String("team"), Value: aws.String("red"), PropagateAtLaunch: aws.Bool(true)},
			{Key: aws.String("only"), Value: aws.String("group")},
		},
	}
}

func (p *pool) make(in *autoscaling.CreateAutoScalingGroupInput) {
	p.t.Helper()
	_, err := p.c.CreateAutoScalingGroup(p.t.Context(), in)
	require.NoError(p.t, err)
}

func (p *pool) see() types.AutoScalingGroup {
	p.t.Helper()
	out, err := p.c.DescribeAutoScalingGroups(p.t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"demo"}})
	require.NoError(p.t, err)
	if len(out.AutoScalingGroups) == 0 {
		return types.AutoScalingGroup{}
	}
	return out.AutoScalingGroups[0]
}

// states lists the instances of the group: state and version, in order.
func (p *pool) states() (out []string) {
	for _, i := range p.see().Instances {
		out = append(out, fmt.Sprintf("%s %s %s v%s", (*i.AvailabilityZone)[8:], i.LifecycleState, *i.InstanceType, *i.LaunchTemplate.Version))
	}
	slices.Sort(out)
	return out
}

func TestGroupLife(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		ctx, before := t.Context(), p.aws.Inventory()
		p.make(p.group("demo", 3))
		assert.Empty(t, p.states(), "nothing is launched at once")
		time.Sleep(autoscalingsim.ScalingLooks)
		assert.Equal(t, []string{"1a Pending t3.medium v1", "1a Pending t3.medium v1", "1b Pending t3.medium v1"}, p.states())
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"1a InService t3.medium v1", "1a InService t3.medium v1", "1b InService t3.medium v1"}, p.states())
		e := p.instance(*p.see().Instances[0].InstanceId)
		tags := map[string]string{}
		for _, tag := range e.Tags {
			tags[*tag.Key] = *tag.Value
		}
		assert.Equal(
			t,
			map[string]string{
				"Name":                          "demo",
				"team":                          "red",
				"aws:autoscaling:groupName":     "demo",
				"aws:ec2launchtemplate:id":      p.template,
				"aws:ec2launchtemplate:version": "1",
			},
			tags,
		)
		_, err := p.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &p.subnet})
		assert.Equal(t, "DependencyViolation", code(err))

		// An instance that somebody terminates is replaced after a while.
		_, err = p.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{*e.InstanceId}})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		assert.Len(t, p.states(), 3)
		assert.NotContains(t, p.ids(), *e.InstanceId)

		_, err = p.c.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("demo"), MaxSize: aws.Int32(1)})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		assert.Len(t, p.states(), 1, "the desired capacity follows the maximum")
		_, err = p.c.TerminateInstanceInAutoScalingGroup(
			ctx,
			&autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &p.ids()[0], ShouldDecrementDesiredCapacity: aws.Bool(true)},
		)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		assert.Empty(t, p.states())
		_, err = p.c.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("demo"), DesiredCapacity: aws.Int32(2)})
		assert.Equal(t, "ValidationError", code(err))
		_, err = p.c.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("demo"), DesiredCapacity: aws.Int32(1)})
		require.NoError(t, err)
		time.Sleep(autoscalingsim.ScalingLooks)

		_, err = p.c.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("demo")})
		assert.Equal(t, "ScalingActivityInProgress", code(err))
		time.Sleep(time.Minute)
		_, err = p.c.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("demo")})
		assert.Equal(t, "ResourceInUse", code(err))
		_, err = p.c.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("demo"), ForceDelete: aws.Bool(true)})
		require.NoError(t, err)
		assert.Equal(t, "Delete in progress", *p.see().Status)
		_, err = p.c.CreateAutoScalingGroup(ctx, p.group("demo", 1))
		assert.Equal(t, "AlreadyExists", code(err))
		_, err = p.c.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("demo"), MaxSize: aws.Int32(1)})
		assert.Equal(t, "ValidationError", code(err))
		time.Sleep(time.Minute)
		assert.Nil(t, p.see().AutoScalingGroupName)
		_, err = p.c.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("demo")})
		require.ErrorContains(t, err, "AutoScalingGroup name not found")
		assert.Equal(t, before, p.aws.Inventory())
	})
}

func (p *pool) ids() (out []string) {
	for _, i := range p.see().Instances {
		out = append(out, *i.InstanceId)
	}
	return out
}

// Changes between two calls happened at their own time.
func TestGroupsLiveOnUnseen(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		began := time.Now()
		p.make(p.group("demo", 1))
		time.Sleep(time.Hour)
		e := p.instance(p.ids()[0])
		assert.Equal(t, autoscalingsim.ScalingLooks, e.LaunchTime.Sub(began))
		var file bytes.Buffer
		require.NoError(t, p.aws.Save(&file))
		b, err := Load(&file, Options{})
		require.NoError(t, err)
		assert.Equal(t, p.aws.Detailed(), b.Detailed())
		assert.Contains(t, b.Inventory(), "AutoScalingGroup demo")
	})
}

func TestGroupChecks(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		p.make(p.group("taken", 0))
		spot := p.testbed.template("spot")
		spot.LaunchTemplateData.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot}
		_, err := p.ec2.CreateLaunchTemplate(t.Context(), spot)
		require.NoError(t, err)
		for name, c := range map[string]struct {
			change func(*autoscaling.CreateAutoScalingGroupInput)
			want   string
		}{
			"taken":   {func(r *autoscaling.CreateAutoScalingGroupInput) { r.AutoScalingGroupName = aws.String("taken") }, "already exists"},
			"colon":   {func(r *autoscaling.CreateAutoScalingGroupInput) { r.AutoScalingGroupName = aws.String("a:b") }, "no colon"},
			"bounds":  {func(r *autoscaling.CreateAutoScalingGroupInput) { r.MinSize = aws.Int32(11) }, "Max bound, 10"},
			"desired": {func(r *autoscaling.CreateAutoScalingGroupInput) { r.DesiredCapacity = aws.Int32(11) }, "Desired capacity:11"},
			"subnet":  {func(r *autoscaling.CreateAutoScalingGroupInput) { r.VPCZoneIdentifier = aws.String("subnet-0") }, "subnet-0"},
			"nothing": {func(r *autoscaling.CreateAutoScalingGroupInput) { r.LaunchTemplate = nil }, "must contain either"},
			"template": {func(r *autoscaling.CreateAutoScalingGroupInput) {
				r.LaunchTemplate.LaunchTemplateId = aws.String("lt-00000000000000000")
			}, "fully-formed launch template"},
			"version":  {func(r *autoscaling.CreateAutoScalingGroupInput) { r.LaunchTemplate.Version = aws.String("7") }, "version 7"},
			"lifetime": {func(r *autoscaling.CreateAutoScalingGroupInput) { r.MaxInstanceLifetime = aws.Int32(60) }, "maximum instance lifetime"},
			"hook": {func(r *autoscaling.CreateAutoScalingGroupInput) {
				r.LifecycleHookSpecificationList = []types.LifecycleHookSpecification{{LifecycleHookName: aws.String("h"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"), HeartbeatTimeout: aws.Int32(20)}}
			}, "Heartbeat"},
			"tag": {func(r *autoscaling.CreateAutoScalingGroupInput) { r.Tags[0].Key = aws.String("aws:x") }, "reserved"},
			"spot and mixed": {func(r *autoscaling.CreateAutoScalingGroupInput) {
				r.LaunchTemplate, r.MixedInstancesPolicy = nil, &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
					LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("spot")},
				}}
			}, "Incompatible launch template"},
			"a target group": {func(r *autoscaling.CreateAutoScalingGroupInput) { r.TargetGroupARNs = []string{"x"} }, "not simulated"},
		} {
			r := p.group("demo", 0)
			c.change(r)
			_, err := p.c.CreateAutoScalingGroup(t.Context(), r)
			require.ErrorContains(t, err, c.want, name)
		}
		assert.Nil(t, p.see().AutoScalingGroupName, "a call that is refused has changed nothing")
	})
}

func TestMixedInstances(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		r := p.group("demo", 4)
		r.MixedInstancesPolicy = &types.MixedInstancesPolicy{
			LaunchTemplate: &types.LaunchTemplate{
				LaunchTemplateSpecification: r.LaunchTemplate,
				Overrides:                   []types.LaunchTemplateOverrides{{InstanceType: aws.String("t3.large")}, {InstanceType: aws.String("m5.large")}},
			},
			InstancesDistribution: &types.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(0)},
		}
		r.LaunchTemplate = nil
		p.make(r)
		time.Sleep(time.Minute)
		spot := 0
		for _, id := range p.ids() {
			if p.instance(id).InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot {
				spot++
			}
			assert.Equal(t, ec2types.InstanceTypeT3Large, p.instance(id).InstanceType)
		}
		assert.Equal(t, 3, spot)
		assert.Nil(t, p.see().LaunchTemplate)
		assert.Equal(t, "demo", *p.see().MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateName)
	})
}

func TestFailedLaunches(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		p.aws.Edit(func(s *State) { s.EC2.Limits.VCPUs = 3 })
		p.make(p.group("demo", 2))
		time.Sleep(90 * time.Second)
		assert.Len(t, p.states(), 1)
		out, err := p.c.DescribeScalingActivities(t.Context(), &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String("demo")})
		require.NoError(t, err)
		assert.Equal(t, types.ScalingActivityStatusCodeFailed, out.Activities[0].StatusCode)
		assert.Contains(t, *out.Activities[0].StatusMessage, "vCPU")
		p.aws.Edit(func(s *State) { s.EC2.Limits.VCPUs = 100 })
		time.Sleep(2 * time.Minute)
		assert.Len(t, p.states(), 2)
	})
}
