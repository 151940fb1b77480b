package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Refresh is an instance refresh.
type Refresh struct {
	ID, Status, Reason string
	Percent            int32
	Running            bool
	Began              time.Time
	TimeLimit          time.Duration // how long it may take while it runs
}

// String prints a refresh: "08b91cf7 InProgress, 40 %".
func (r Refresh) String() string {
	s := r.ID + " " + r.Status
	if r.Running {
		return s + fmt.Sprintf(", %d %%", r.Percent)
	}
	return s + text.Prefixed(": ", r.Reason)
}

// refreshText says that an instance refresh is under way: "; 08b91cf7
// InProgress, 40 %".
func (s *GroupState) refreshText() string {
	if !s.Refresh.Running {
		return ""
	}
	return "; " + s.Refresh.String()
}

// TimeLimit implements graph.TimeLimited: an instance refresh may replace one
// machine after the other.
func (s GroupState) TimeLimit() time.Duration {
	if s.Refresh.Running {
		return s.Refresh.TimeLimit
	}
	return 0
}

func (g *Group) refreshLimit() time.Duration {
	return 15*time.Minute + time.Duration(max(g.Spec.MaxSize, 1))*(g.warmup()+2*time.Minute)
}

func (g *Group) warmup() time.Duration {
	if p := g.Spec.RefreshPreferences; p != nil && p.InstanceWarmup != nil {
		return time.Duration(*p.InstanceWarmup) * time.Second
	}
	return orDefault(g.Spec.DefaultInstanceWarmup.Duration)
}

// refreshEnded reports whether the instance refresh that this run has started is
// over.
func (s *GroupState) refreshEnded() bool {
	return s.StartedRefresh != "" && s.Refresh.ID == s.StartedRefresh && !s.Refresh.Running
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

// startRefresh has the machines replaced. One that this run has started and that
// came to nothing is not started again.
func (g *Group) startRefresh(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) (*GroupState, error) {
	if have.refreshEnded() {
		return nil, fmt.Errorf("instance refresh %s left %s", have.Refresh, d[slices.IndexFunc(d, func(c graph.Change) bool { return c.Field == "machines" })].Have)
	}
	in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: &have.ID, Strategy: types.RefreshStrategyRolling}
	if p := g.Spec.RefreshPreferences; p != nil {
		in.Preferences = &types.RefreshPreferences{
			InstanceWarmup: toInt32(p.InstanceWarmup), MinHealthyPercentage: toInt32(p.MinHealthyPercentage), MaxHealthyPercentage: toInt32(p.MaxHealthyPercentage),
		}
		if s := aws.ToString(p.Strategy); s != "" {
			in.Strategy = types.RefreshStrategy(s)
		}
	}
	out, err := c.AutoScaling.StartInstanceRefresh(ctx, in)
	if err != nil {
		return nil, err
	}
	after := *g.updated(have)
	after.StartedRefresh = aws.ToString(out.InstanceRefreshId)
	after.Refresh = Refresh{ID: after.StartedRefresh, Status: string(types.InstanceRefreshStatusPending), Running: true, TimeLimit: g.refreshLimit()}
	return &after, nil
}

// updated is the state of the group when all that Update changes is as wanted.
func (g *Group) updated(have *GroupState) *GroupState {
	after := *have
	after.Min, after.Max, after.Subnets, after.Template, after.Mixed = g.Spec.MinSize, g.Spec.MaxSize, identity.CloudIDs(g.Subnets), g.template(), g.mixedInstances()
	if g.Desired != nil {
		after.Desired = *g.Desired
	}
	after.Rebalance, after.Cooldown, after.Warmup = g.Spec.CapacityRebalance, orDefault(g.Spec.DefaultCoolDown.Duration), orDefault(g.Spec.DefaultInstanceWarmup.Duration)
	after.Suspended, after.Hooks, after.Tags = g.suspended(), HookTexts(g.Spec.AWSLifecycleHooks), have.Tags.With(g.Tags)
	return &after
}
