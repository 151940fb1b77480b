package autoscaling

import (
	"context"
	"errors"
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
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
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

// cancellable reports whether the refresh replaces machines, and is not being cancelled.
func (r Refresh) cancellable() bool {
	return r.Status == string(types.InstanceRefreshStatusPending) || r.Status == string(types.InstanceRefreshStatusInProgress)
}

// TimeLimit implements graph.TimeLimited. An instance refresh may replace machines one by
// one. A run that watches it gives up when a new machine has not joined.
func (s GroupState) TimeLimit() time.Duration {
	switch {
	case s.Refresh.Running:
		return s.Refresh.TimeLimit
	case s.late > 0:
		return -s.late
	case s.Watched:
		return s.Refresh.TimeLimit
	}
	return 0
}

// Lasts implements graph.Lasting.
func (s GroupState) Lasts() time.Duration { return s.lasts }

func (g *Group) refreshLimit() time.Duration {
	return 15*time.Minute + time.Duration(max(g.Spec.MaxSize, 1))*(g.warmup()+2*time.Minute)
}

// warmup is how long AWS waits after a new machine is in service.
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

// goesOn reports whether another instance refresh may follow the one that has ended: it has
// replaced its part of the machines, or this run has cancelled it for a machine that has joined
// since.
func (s *GroupState) goesOn(outdated int) bool {
	return s.Cancelled || s.Watched && s.Refresh.Status == string(types.InstanceRefreshStatusSuccessful) && outdated < s.Replacing
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
		refresh := Refresh{
			ID:      aws.ToString(r.InstanceRefreshId),
			Status:  string(r.Status),
			Reason:  aws.ToString(r.StatusReason),
			Percent: aws.ToInt32(r.PercentageComplete),
			Began:   aws.ToTime(r.StartTime),
		}
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

// startRefresh starts an instance refresh. If one that this run started has ended and no
// other may follow, it returns an error.
func (g *Group) startRefresh(ctx context.Context, c *cloud.Clients, have *GroupState, d plan.Diff) (*GroupState, error) {
	outdated := len(g.outdated(have))
	switch over := have.refreshEnded() && !have.goesOn(outdated); {
	case over && have.Refresh.Status == string(types.InstanceRefreshStatusSuccessful): // something else changes the version that the group launches
		return nil, &graph.NotConvergingError{After: c.Now().Sub(have.Refresh.Began).Round(time.Second), Seen: []plan.Diff{d}}
	case over:
		return nil, fmt.Errorf("instance refresh %s left %s", have.Refresh, d[slices.IndexFunc(d, func(c plan.Change) bool { return c.Field == "machines" })].Have)
	}
	in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: &have.ID, Strategy: types.RefreshStrategyRolling, Preferences: &types.RefreshPreferences{}}
	if p := g.Spec.RefreshPreferences; p != nil {
		in.Preferences = &types.RefreshPreferences{
			InstanceWarmup: toInt32(p.InstanceWarmup), MinHealthyPercentage: toInt32(p.MinHealthyPercentage), MaxHealthyPercentage: toInt32(p.MaxHealthyPercentage),
		}
		if s := aws.ToString(p.Strategy); s != "" {
			in.Strategy = types.RefreshStrategy(s)
		}
	}
	if percent := g.part(have, outdated); have.Watched && percent < 100 {
		in.Preferences.CheckpointPercentages, in.Preferences.CheckpointDelay = []int32{percent}, aws.Int32(0)
	}
	out, err := c.AutoScaling.StartInstanceRefresh(ctx, in)
	if err != nil {
		return nil, err
	}
	after := *g.updated(have)
	after.StartedRefresh, after.Replacing, after.Cancelled = aws.ToString(out.InstanceRefreshId), outdated, false
	after.Since = c.Now()
	after.Refresh = Refresh{ID: after.StartedRefresh, Status: string(types.InstanceRefreshStatusPending), Running: true, TimeLimit: g.refreshLimit()}
	return &after, nil
}

// suspendsRefresh returns a process that an instance refresh needs and the manifest suspends;
// "" for none.
func (g *Group) suspendsRefresh() string {
	for _, p := range []string{"InstanceRefresh", "Launch", "Terminate"} {
		if slices.Contains(g.suspended(), p) {
			return p
		}
	}
	return ""
}

// cancelRefresh cancels the instance refresh in progress. AWS finishes the replacements that it
// has begun, and keeps the machines that are not replaced yet.
func cancelRefresh(ctx context.Context, c *cloud.Clients, have *GroupState) (*GroupState, error) {
	after := *have
	after.Cancelled, after.Refresh.Status = true, string(types.InstanceRefreshStatusCancelling)
	_, err := c.AutoScaling.CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: &have.ID})
	if errors.As(err, new(*types.ActiveInstanceRefreshNotFoundFault)) {
		return nil, nil // it has ended
	}
	return &after, err
}

// updated returns the state of the group after Update.
func (g *Group) updated(have *GroupState) *GroupState {
	after := *have
	after.Min, after.Max, after.Subnets, after.Template, after.Mixed = g.Spec.MinSize, g.Spec.MaxSize, identity.CloudIDs(
		g.Subnets,
	), g.template(), g.mixedInstances()
	if g.Desired != nil {
		after.Desired = *g.Desired
	}
	after.Rebalance, after.Cooldown, after.Warmup = g.Spec.CapacityRebalance, orDefault(
		g.Spec.DefaultCoolDown.Duration,
	), orDefault(
		g.Spec.DefaultInstanceWarmup.Duration,
	)
	after.Suspended, after.Hooks, after.Tags = g.suspended(), HookTexts(g.Spec.AWSLifecycleHooks), have.Tags.With(g.Tags)
	return &after
}
