package autoscaling

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Specs returns the spec of the AWSMachinePool from which each of some groups could have been
// made, by the name of the group. It has no launch template, no subnets and no tags.
func Specs(ctx context.Context, c *cloud.Clients, names []string) (map[string]expinfrav1.AWSMachinePoolSpec, error) {
	specs := map[string]expinfrav1.AWSMachinePoolSpec{}
	if len(names) == 0 {
		return specs, nil
	}
	p := autoscaling.NewDescribeAutoScalingGroupsPaginator(c.AutoScaling, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: names})
	ctx = cloud.Listing(ctx)
	for p.HasMorePages() {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, x := range page.AutoScalingGroups {
			spec := groupSpec(x)
			if spec.AWSLifecycleHooks, err = HookSpecs(ctx, c, aws.ToString(x.AutoScalingGroupName)); err != nil {
				return nil, err
			}
			specs[aws.ToString(x.AutoScalingGroupName)] = spec
		}
	}
	return specs, nil
}

func groupSpec(x types.AutoScalingGroup) expinfrav1.AWSMachinePoolSpec {
	s := expinfrav1.AWSMachinePoolSpec{
		MinSize: aws.ToInt32(x.MinSize), MaxSize: aws.ToInt32(x.MaxSize), CapacityRebalance: aws.ToBool(x.CapacityRebalance),
		DefaultCoolDown: specDuration(x.DefaultCooldown), DefaultInstanceWarmup: specDuration(x.DefaultInstanceWarmup),
		MixedInstancesPolicy: mixedInstancesSpec(x.MixedInstancesPolicy),
	}
	for _, p := range x.SuspendedProcesses {
		s.SuspendProcesses = suspend(s.SuspendProcesses, aws.ToString(p.ProcessName))
	}
	return s
}

// specDuration returns a number of seconds as in a manifest: nothing for the default.
func specDuration(seconds *int32) (d metav1.Duration) {
	if d.Duration = time.Duration(aws.ToInt32(seconds)) * time.Second; d.Duration == orDefault(0) {
		d.Duration = 0
	}
	return d
}

func mixedInstancesSpec(p *types.MixedInstancesPolicy) *expinfrav1.MixedInstancesPolicy {
	if p == nil {
		return nil
	}
	out := &expinfrav1.MixedInstancesPolicy{}
	if p.LaunchTemplate != nil {
		for _, o := range p.LaunchTemplate.Overrides {
			out.Overrides = append(out.Overrides, expinfrav1.Overrides{InstanceType: aws.ToString(o.InstanceType)})
		}
	}
	if d := p.InstancesDistribution; d != nil {
		out.InstancesDistribution = &expinfrav1.InstancesDistribution{
			OnDemandAllocationStrategy: expinfrav1.OnDemandAllocationStrategy(aws.ToString(d.OnDemandAllocationStrategy)),
			SpotAllocationStrategy:     expinfrav1.SpotAllocationStrategy(aws.ToString(d.SpotAllocationStrategy)),
			OnDemandBaseCapacity:       toInt64(d.OnDemandBaseCapacity), OnDemandPercentageAboveBaseCapacity: toInt64(d.OnDemandPercentageAboveBaseCapacity),
		}
	}
	return out
}

func toInt64(n *int32) *int64 {
	if n == nil {
		return nil
	}
	return aws.Int64(int64(*n))
}

// suspend adds a process to those that a manifest suspends. Those that no manifest can suspend
// are omitted.
func suspend(s *expinfrav1.SuspendProcessesTypes, process string) *expinfrav1.SuspendProcessesTypes {
	if s == nil {
		s = &expinfrav1.SuspendProcessesTypes{Processes: &expinfrav1.Processes{}}
	}
	p := s.Processes
	fields := map[string]**bool{
		"Launch":            &p.Launch,
		"Terminate":         &p.Terminate,
		"AddToLoadBalancer": &p.AddToLoadBalancer,
		"AlarmNotification": &p.AlarmNotification,
		"AZRebalance":       &p.AZRebalance,
		"HealthCheck":       &p.HealthCheck,
		"InstanceRefresh":   &p.InstanceRefresh,
		"ReplaceUnhealthy":  &p.ReplaceUnhealthy,
		"ScheduledActions":  &p.ScheduledActions,
	}
	if field := fields[process]; field != nil {
		*field = aws.Bool(true)
	}
	return s
}

// HookSpecs returns the lifecycle hooks of a group as in a manifest, by name.
func HookSpecs(ctx context.Context, c *cloud.Clients, group string) (hooks []expinfrav1.AWSLifecycleHook, err error) {
	out, err := c.AutoScaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	if err != nil {
		return nil, err
	}
	for _, h := range out.LifecycleHooks {
		hook := expinfrav1.AWSLifecycleHook{
			Name: aws.ToString(h.LifecycleHookName), LifecycleTransition: expinfrav1.LifecycleTransition(aws.ToString(h.LifecycleTransition)),
			NotificationTargetARN: h.NotificationTargetARN, RoleARN: h.RoleARN, NotificationMetadata: h.NotificationMetadata,
		}
		if result := aws.ToString(h.DefaultResult); result != "" {
			hook.DefaultResult = new(expinfrav1.LifecycleHookDefaultResult(result))
		}
		if h.HeartbeatTimeout != nil {
			hook.HeartbeatTimeout = &metav1.Duration{Duration: time.Duration(*h.HeartbeatTimeout) * time.Second}
		}
		hooks = append(hooks, hook)
	}
	slices.SortFunc(hooks, func(x, y expinfrav1.AWSLifecycleHook) int { return strings.Compare(x.Name, y.Name) })
	return hooks, nil
}
