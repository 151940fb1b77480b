package awssim

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	autoscalingsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
)

// newVersion changes the instance type in the group's template.
func (p *pool) newVersion() {
	p.t.Helper()
	data := p.testbed.template("").LaunchTemplateData
	data.InstanceType = "t3.large"
	_, err := p.ec2.CreateLaunchTemplateVersion(p.t.Context(), &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: &p.template, LaunchTemplateData: data})
	require.NoError(p.t, err)
}

func (p *pool) start(preferences *types.RefreshPreferences) error {
	_, err := p.c.StartInstanceRefresh(p.t.Context(), &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("demo"), Preferences: preferences})
	return err
}

func (p *pool) last() types.InstanceRefresh {
	p.t.Helper()
	out, err := p.c.DescribeInstanceRefreshes(p.t.Context(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String("demo")})
	require.NoError(p.t, err)
	return out.InstanceRefreshes[0]
}

// watch waits for the end of a refresh, and returns the minimum and maximum number of
// instances in service.
func (p *pool) watch() (least, most int) {
	p.t.Helper()
	least = 99
	for began := time.Now(); p.last().EndTime == nil; time.Sleep(autoscalingsim.ScalingLooks) {
		require.Less(p.t, time.Since(began), 2*time.Hour)
		serving := 0
		for _, i := range p.see().Instances {
			if i.LifecycleState == types.LifecycleStateInService {
				serving++
			}
		}
		least, most = min(least, serving), max(most, serving)
	}
	return least, most
}

func TestInstanceRefresh(t *testing.T) {
	for name, c := range map[string]struct {
		preferences *types.RefreshPreferences
		least, most int
	}{
		"usual":           {nil, 3, 4},
		"half at a time":  {&types.RefreshPreferences{MinHealthyPercentage: aws.Int32(50)}, 2, 4},
		"launching first": {&types.RefreshPreferences{MinHealthyPercentage: aws.Int32(100), MaxHealthyPercentage: aws.Int32(150)}, 4, 6},
	} {
		t.Run(name, func(t *testing.T) {
			pooled(t, func(t *testing.T, p *pool) {
				r := p.group("demo", 4)
				r.DefaultInstanceWarmup = aws.Int32(60)
				p.make(r)
				time.Sleep(10 * time.Minute)
				p.newVersion()
				time.Sleep(10 * time.Minute)
				assert.Equal(t, "1a InService t3.medium v1", p.states()[0], "nothing happens by itself")
				require.NoError(t, p.start(c.preferences))
				assert.Equal(t, "InstanceRefreshInProgress", code(p.start(nil)))
				least, most := p.watch()
				assert.Equal(t, []int{c.least, c.most}, []int{least, most})
				assert.Equal(t, types.InstanceRefreshStatusSuccessful, p.last().Status)
				time.Sleep(time.Minute)
				assert.Equal(t, []string{"1a InService t3.large v2", "1a InService t3.large v2", "1b InService t3.large v2", "1b InService t3.large v2"}, p.states())
			})
		})
	}
}

// A refresh with checkpoints waits at each, and ends at the last one. Another one replaces the
// outdated instances first.
func TestInstanceRefreshCheckpoints(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		r := p.group("demo", 4)
		r.DefaultInstanceWarmup = aws.Int32(60)
		p.make(r)
		time.Sleep(10 * time.Minute)
		p.newVersion()
		outdated := func() (n int) {
			for _, s := range p.states() {
				if strings.Contains(s, " v1") {
					n++
				}
			}
			return n
		}
		require.NoError(t, p.start(&types.RefreshPreferences{CheckpointPercentages: []int32{25, 75}, CheckpointDelay: aws.Int32(1800)}))
		time.Sleep(20 * time.Minute)
		assert.Equal(t, types.InstanceRefreshStatusInProgress, p.last().Status)
		assert.Equal(t, 3, outdated(), "it waits at the checkpoint")
		p.watch()
		assert.Equal(t, types.InstanceRefreshStatusSuccessful, p.last().Status)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, 1, outdated(), "75 percent are replaced")
		require.NoError(t, p.start(&types.RefreshPreferences{CheckpointPercentages: []int32{25}, CheckpointDelay: aws.Int32(0)}))
		least, most := p.watch()
		assert.Equal(t, []int{3, 4}, []int{least, most})
		assert.Zero(t, outdated())
		for _, bad := range [][]int32{{0}, {50, 50}, {60, 40}, {101}} {
			assert.Equal(t, "ValidationError", code(p.start(&types.RefreshPreferences{CheckpointPercentages: bad})), bad)
		}
		assert.Equal(t, "ValidationError", code(p.start(&types.RefreshPreferences{CheckpointDelay: aws.Int32(5)})))
	})
}

// With a maximum of 100 percent that the call gives, an instance is launched before one is terminated
// if nothing else keeps the minimum.
func TestInstanceRefreshOfOne(t *testing.T) {
	for _, c := range []struct {
		most  *int32
		least int
	}{{nil, 0}, {aws.Int32(100), 1}} {
		pooled(t, func(t *testing.T, p *pool) {
			p.make(p.group("demo", 1))
			time.Sleep(10 * time.Minute)
			p.newVersion()
			require.NoError(t, p.start(&types.RefreshPreferences{MinHealthyPercentage: aws.Int32(100), MaxHealthyPercentage: c.most}))
			least, _ := p.watch()
			assert.Equal(t, c.least, least)
			assert.Equal(t, types.InstanceRefreshStatusSuccessful, p.last().Status)
		})
	}
}

func TestInstanceRefreshEnds(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		cancel := func() error {
			_, err := p.c.CancelInstanceRefresh(t.Context(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("demo")})
			return err
		}
		p.make(p.group("demo", 3))
		time.Sleep(time.Minute)
		assert.Equal(t, "ActiveInstanceRefreshNotFound", code(cancel()))
		p.newVersion()
		require.NoError(t, p.start(nil))
		time.Sleep(20 * time.Second)
		require.NoError(t, cancel())
		p.watch()
		assert.Equal(t, types.InstanceRefreshStatusCancelled, p.last().Status)
		assert.Contains(t, p.states(), "1a InService t3.medium v1")

		require.NoError(t, p.start(&types.RefreshPreferences{SkipMatching: aws.Bool(true)}))
		p.aws.Edit(func(s *State) { s.EC2.Limits.VCPUs = 1 })
		p.watch()
		assert.Equal(t, types.InstanceRefreshStatusFailed, p.last().Status)
		assert.Error(t, p.start(&types.RefreshPreferences{MaxHealthyPercentage: aws.Int32(150)}))
	})
}

func TestHooksAndProcesses(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		ctx, demo := t.Context(), aws.String("demo")
		r := p.group("demo", 1)
		r.LifecycleHookSpecificationList = []types.LifecycleHookSpecification{
			{
				LifecycleHookName: aws.String(
					"up",
				),
				LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
				HeartbeatTimeout:    aws.Int32(120),
				DefaultResult:       aws.String("CONTINUE"),
			},
		}
		p.make(r)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"1a Pending:Wait t3.medium v1"}, p.states())
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"1a InService t3.medium v1"}, p.states())
		_, err := p.c.PutLifecycleHook(
			ctx,
			&autoscaling.PutLifecycleHookInput{
				AutoScalingGroupName: demo,
				LifecycleHookName:    aws.String("down"),
				LifecycleTransition:  aws.String("autoscaling:EC2_INSTANCE_TERMINATING"),
			},
		)
		require.NoError(t, err)
		hooks, err := p.c.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: demo})
		require.NoError(t, err)
		assert.Len(t, hooks.LifecycleHooks, 2)
		assert.Equal(t, int32(3600), *hooks.LifecycleHooks[0].HeartbeatTimeout)
		_, err = p.c.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: demo, ScalingProcesses: []string{"Launch"}})
		require.NoError(t, err)
		_, err = p.c.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: demo, ScalingProcesses: []string{"Lunch"}})
		assert.Equal(t, "ValidationError", code(err))
		_, err = p.c.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: demo, DesiredCapacity: aws.Int32(2)})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		assert.Len(t, p.states(), 1)
		_, err = p.c.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: demo})
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		assert.Len(t, p.states(), 2)
		_, err = p.c.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: demo, DesiredCapacity: aws.Int32(1)})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		assert.Contains(t, p.states()[0]+p.states()[1], "Terminating:Wait")
		time.Sleep(time.Hour)
		assert.Len(t, p.states(), 1)
		_, err = p.c.DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: demo, LifecycleHookName: aws.String("down")})
		require.NoError(t, err)

		tag := types.Tag{
			ResourceId:        demo,
			ResourceType:      aws.String("auto-scaling-group"),
			Key:               aws.String("team"),
			Value:             aws.String("blue"),
			PropagateAtLaunch: aws.Bool(false),
		}
		_, err = p.c.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []types.Tag{tag}})
		require.NoError(t, err)
		found, err := p.c.DescribeAutoScalingGroups(
			ctx,
			&autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{{Name: aws.String("tag:team"), Values: []string{"blue"}}}},
		)
		require.NoError(t, err)
		assert.Len(t, found.AutoScalingGroups, 1)
		tag.Value = nil
		_, err = p.c.DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []types.Tag{tag}})
		require.NoError(t, err)
		tags, err := p.c.DescribeTags(
			ctx,
			&autoscaling.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("auto-scaling-group"), Values: []string{"demo"}}}},
		)
		require.NoError(t, err)
		assert.Len(t, tags.Tags, 1)
	})
}

// A group with a maximum instance lifetime replaces its instances again and again, also
// without calls.
func TestLifetime(t *testing.T) {
	pooled(t, func(t *testing.T, p *pool) {
		r := p.group("demo", 2)
		r.MaxInstanceLifetime = aws.Int32(86400)
		p.make(r)
		time.Sleep(time.Hour)
		old := p.ids()
		time.Sleep(30 * time.Hour)
		assert.Len(t, p.ids(), 2)
		assert.NotContains(t, p.ids(), old[0])
		assert.NotContains(t, p.ids(), old[1])
	})
}
