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
	TimeLimit          time.Duration // limit of the duration while it runs
}

// String prints a refresh: "08b91cf7 InProgress, 40 %".
func (r Refresh) String() string {
	s := r.ID + " " + r.Status
	if r.Running {
		return s + fmt.Sprintf(", %d %%", r.Percent)
	}
	return s + text.Prefixed(": ", r.Reason)
}

// refreshText returns the instance refresh in progress for a status line: "; 08b91cf7
// InProgress, 40 %".
func (s *GroupState) refreshText() string {
	if !s.Refresh.Running {
		return ""
	}
	return "; " + s.Refresh.String()
}

// TimeLimit implements graph.TimeLimited. An instance refresh may replace machines one by
// one.
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

// refreshEnded reports whether the instance refresh that this run started has ended.
func (s *GroupState) refreshEnded() bool {
	return s.StartedRefresh != "" && s.Refresh.ID == s.StartedRefresh && !s.Refresh.Running
}

// lastRefresh returns the last instance refresh of a group.
func lastRefresh(ctx context.Context, c *cloud.Clients, group string) (last Refresh, err error) {
	out, err := cloud.Remember(ctx, c, "instance refreshes "+group, func(ctx context.Context) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
		return c.AutoScaling.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: &group, MaxRecords: aws.Int32(100)})
	})
	if err != nil {
		return last, cloud.IgnoreNotFound(err)
	}
	for _, r := range out.InstanceRefreshes {
		refresh := Refresh{ID: aws.ToString(r.InstanceRefreshId), Status: string(r.Status), Reason: aws.ToString(r.StatusReason), Percent: aws.ToInt32(r.PercentageComplete), Began: aws.ToTime(r.StartTime)}
		switch r.Status { //nolint:exhaustive // it has ended in the others
		case types.InstanceRefreshStatusPending, types.InstanceRefreshStatusInProgress, types.InstanceRefreshStatusCancelling,
			types.InstanceRefreshStatusRollbackInProgress, types.InstanceRefreshStatusBaking:
			refresh.Running = true
		}
		if !refresh.Began.Before(last.Began) {
			last = refresh
		}
	}
	return last, nil
}

// startRefresh starts an instance refresh. If one that this run started has ended and
// machines are still outdated, it returns an error.
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

// updated returns the state of the group after Update.
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
