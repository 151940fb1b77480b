package autoscaling

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

// Groups lists the groups of the cluster.
func Groups(ctx context.Context, c *cloud.Clients) ([]GroupState, error) {
	return cloud.Remember(ctx, c, "auto scaling groups", func(ctx context.Context) ([]GroupState, error) {
		p := autoscaling.NewDescribeAutoScalingGroupsPaginator(c.AutoScaling, &autoscaling.DescribeAutoScalingGroupsInput{
			Filters: []types.Filter{{Name: aws.String("tag:" + c.OwnerTag()), Values: []string{cloud.Owned}}}, MaxRecords: aws.Int32(100),
		})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
			return p.NextPage(ctx)
		},
			func(o *autoscaling.DescribeAutoScalingGroupsOutput) (out []GroupState) {
				for _, x := range o.AutoScalingGroups {
					out = append(out, autoScalingGroupSeen(x))
				}
				return out
			})
	})
}

func autoScalingGroupSeen(x types.AutoScalingGroup) GroupState {
	s := GroupState{
		Object: identity.Object{ID: aws.ToString(x.AutoScalingGroupName), Tags: cloud.Tags{}}, ARN: aws.ToString(x.AutoScalingGroupARN), Status: aws.ToString(x.Status),
		Min: aws.ToInt32(x.MinSize), Max: aws.ToInt32(x.MaxSize), Desired: aws.ToInt32(x.DesiredCapacity), Mixed: mixedWritten(x.MixedInstancesPolicy),
		Cooldown: time.Duration(aws.ToInt32(x.DefaultCooldown)) * time.Second, Warmup: time.Duration(aws.ToInt32(x.DefaultInstanceWarmup)) * time.Second,
		Rebalance: aws.ToBool(x.CapacityRebalance),
	}
	for _, t := range x.Tags {
		s.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	if ids := aws.ToString(x.VPCZoneIdentifier); ids != "" {
		s.Subnets = strings.Split(ids, ",")
	}
	template := x.LaunchTemplate
	if p := x.MixedInstancesPolicy; p != nil && p.LaunchTemplate != nil {
		template = p.LaunchTemplate.LaunchTemplateSpecification
	}
	if template != nil {
		s.Template = aws.ToString(template.LaunchTemplateId) + ":" + cmp.Or(aws.ToString(template.Version), "$Default")
	}
	for _, p := range x.SuspendedProcesses {
		s.Suspended = append(s.Suspended, aws.ToString(p.ProcessName))
	}
	slices.Sort(s.Suspended)
	for _, i := range x.Instances {
		m := PoolInstance{ID: aws.ToString(i.InstanceId), Zone: aws.ToString(i.AvailabilityZone), Type: aws.ToString(i.InstanceType), State: string(i.LifecycleState), Health: aws.ToString(i.HealthStatus)}
		if i.LaunchTemplate != nil {
			m.Version = aws.ToString(i.LaunchTemplate.Version)
		}
		s.Instances = append(s.Instances, m)
	}
	ordered.By(s.Instances, func(a, b PoolInstance) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// LifecycleHooks returns the hooks of a group, written down, by name.
func LifecycleHooks(ctx context.Context, c *cloud.Clients, group string) (map[string]string, error) {
	out, err := cloud.Remember(ctx, c, "lifecycle hooks "+group, func(ctx context.Context) (*autoscaling.DescribeLifecycleHooksOutput, error) {
		return c.AutoScaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	})
	if err != nil {
		return nil, cloud.IgnoreNotFound(err) // the group went in between
	}
	hooks := map[string]string{}
	for _, h := range out.LifecycleHooks {
		hooks[aws.ToString(h.LifecycleHookName)] = hookWritten(h)
	}
	return hooks, nil
}

// lastRefresh returns the instance refresh of a group that began last.
func lastRefresh(ctx context.Context, c *cloud.Clients, group string) (last Refresh, err error) {
	out, err := cloud.Remember(ctx, c, "instance refreshes "+group, func(ctx context.Context) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
		return c.AutoScaling.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: &group, MaxRecords: aws.Int32(100)})
	})
	if err != nil {
		return last, cloud.IgnoreNotFound(err)
	}
	for _, r := range out.InstanceRefreshes {
		seen := Refresh{ID: aws.ToString(r.InstanceRefreshId), Status: string(r.Status), Reason: aws.ToString(r.StatusReason), Percent: aws.ToInt32(r.PercentageComplete), Began: aws.ToTime(r.StartTime)}
		switch r.Status { //nolint:exhaustive // in the others it is over
		case types.InstanceRefreshStatusPending, types.InstanceRefreshStatusInProgress, types.InstanceRefreshStatusCancelling,
			types.InstanceRefreshStatusRollbackInProgress, types.InstanceRefreshStatusBaking:
			seen.Running = true
		}
		if !seen.Began.Before(last.Began) {
			last = seen
		}
	}
	return last, nil
}

// trouble tells why the last launch of a group failed; "" when it did not, or
// when that may not be read.
func trouble(ctx context.Context, c *cloud.Clients, group string) (string, error) {
	out, err := cloud.Remember(ctx, c, "scaling activities "+group, func(ctx context.Context) (*autoscaling.DescribeScalingActivitiesOutput, error) {
		return c.AutoScaling.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &group, MaxRecords: aws.Int32(1)})
	})
	if cloud.NotFound(err) || cloud.Denied(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, x := range out.Activities {
		if x.StatusCode == types.ScalingActivityStatusCodeFailed {
			return aws.ToString(x.StatusMessage), nil
		}
	}
	return "", nil
}
