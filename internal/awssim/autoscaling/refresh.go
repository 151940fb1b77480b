package autoscaling

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateInstanceRefreshes() {
	core.On(svc.Account, svc.startInstanceRefresh, "AutoScalingGroupName", "Preferences", "Strategy")
	core.On(svc.Account, svc.describeInstanceRefreshes, "AutoScalingGroupName", "InstanceRefreshIds", "MaxRecords", "NextToken")
	core.On(svc.Account, svc.cancelInstanceRefresh, "AutoScalingGroupName")
}

// refreshing returns the refresh in progress; nil if there is none.
func (g *Group) refreshing() *InstanceRefresh {
	if n := len(g.Refreshes); n > 0 && g.Refreshes[n-1].Ended.IsZero() {
		return g.Refreshes[n-1]
	}
	return nil
}

func (svc *Service) startInstanceRefresh(in *autoscaling.StartInstanceRefreshInput) (*autoscaling.StartInstanceRefreshOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	if in.Strategy != "" && in.Strategy != types.RefreshStrategyRolling {
		return nil, invalid("the strategy %s of an instance refresh is not simulated", in.Strategy)
	}
	if g.refreshing() != nil {
		return nil, core.Fail("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	}
	r := &InstanceRefresh{Status: types.InstanceRefreshStatusPending, Began: svc.Now(), Moved: svc.Now(), Min: 90, Max: 100, Warmup: g.Grace}
	if g.Warmup != nil {
		r.Warmup = *g.Warmup
	}
	if err := r.prefer(in.Preferences); err != nil {
		return nil, err
	}
	var alike []string
	for _, i := range g.active() {
		t := svc.ec2.LaunchTemplate(g.Template.ID)
		if t != nil && t.Version(g.Template.Version) == t.Versions[i.Template.Version] && i.Template.ID == t.ID {
			alike = append(alike, i.ID)
		} else {
			r.Old = append(r.Old, i.ID)
		}
	}
	if !r.SkipMatching { // "it targets old instances for replacement first, before targeting new instances"
		r.Old = append(r.Old, alike...)
	}
	r.ID = svc.Hash()
	g.Refreshes = append(g.Refreshes, r)
	return &autoscaling.StartInstanceRefreshOutput{InstanceRefreshId: aws.String(r.ID)}, nil
}

func (r *InstanceRefresh) prefer(p *types.RefreshPreferences) error {
	if p == nil {
		return nil
	}
	if err := core.Only(
		"StartInstanceRefresh",
		p,
		"InstanceWarmup",
		"MinHealthyPercentage",
		"MaxHealthyPercentage",
		"SkipMatching",
		"CheckpointPercentages",
		"CheckpointDelay",
	); err != nil {
		return err
	}
	for _, n := range []struct{ given, to *int32 }{{p.InstanceWarmup, &r.Warmup}, {p.MinHealthyPercentage, &r.Min}, {p.MaxHealthyPercentage, &r.Max}} {
		if n.given != nil {
			*n.to = *n.given
		}
	}
	r.SkipMatching, r.MaxGiven = aws.ToBool(p.SkipMatching), p.MaxHealthyPercentage != nil
	r.Checkpoints, r.Delay = slices.Clone(p.CheckpointPercentages), 3600
	core.Set(&r.Delay, p.CheckpointDelay)
	switch {
	case p.CheckpointDelay != nil && len(r.Checkpoints) == 0:
		return invalid("CheckpointDelay needs CheckpointPercentages")
	case r.Delay < 0 || r.Delay > 172800:
		return invalid("CheckpointDelay must be between 0 and 172800")
	case !ascending(r.Checkpoints):
		return invalid("CheckpointPercentages must be unique, in ascending order, and between 1 and 100")
	case r.Min < 0 || r.Min > 100:
		return invalid("MinHealthyPercentage must be between 0 and 100")
	case r.Max < 100 || r.Max > 200:
		return invalid("MaxHealthyPercentage must be between 100 and 200")
	case p.MaxHealthyPercentage != nil && p.MinHealthyPercentage == nil:
		return invalid("MaxHealthyPercentage needs MinHealthyPercentage")
	case p.MaxHealthyPercentage != nil && r.Max-r.Min > 100:
		return invalid("the difference between MaxHealthyPercentage and MinHealthyPercentage is greater than 100")
	case r.Warmup < 0:
		return invalid("InstanceWarmup is negative")
	}
	return nil
}

// ascending reports whether checkpoints are percentages in ascending order.
func ascending(checkpoints []int32) bool {
	for n, p := range checkpoints {
		if p < 1 || p > 100 || n > 0 && p <= checkpoints[n-1] {
			return false
		}
	}
	return true
}

func (svc *Service) describeInstanceRefreshes(in *autoscaling.DescribeInstanceRefreshesInput) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
	if err := records(in.MaxRecords); err != nil {
		return nil, err
	}
	g, err := svc.group(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	var list []types.InstanceRefresh
	for _, r := range slices.Backward(g.Refreshes) {
		if len(in.InstanceRefreshIds) == 0 || slices.Contains(in.InstanceRefreshIds, r.ID) {
			list = append(list, g.refreshOut(r))
		}
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, or(in.MaxRecords, 50), 100)
	return &autoscaling.DescribeInstanceRefreshesOutput{InstanceRefreshes: part, NextToken: next}, err
}

func (g *Group) refreshOut(r *InstanceRefresh) types.InstanceRefresh {
	left := int32(len(r.remaining(g))) //nolint:gosec // small
	out := types.InstanceRefresh{
		InstanceRefreshId: aws.String(
			r.ID,
		),
		AutoScalingGroupName: aws.String(g.Name),
		Status:               r.Status,
		StatusReason:         core.Text(r.Reason),
		StartTime:            aws.Time(r.Began),
		InstancesToUpdate:    aws.Int32(left),
		PercentageComplete:   aws.Int32(100),
		Strategy:             types.RefreshStrategyRolling,
		Preferences: &types.RefreshPreferences{
			MinHealthyPercentage: aws.Int32(r.Min), MaxHealthyPercentage: aws.Int32(r.Max), InstanceWarmup: aws.Int32(r.Warmup), SkipMatching: aws.Bool(r.SkipMatching),
			CheckpointPercentages: r.Checkpoints,
		},
	}
	if len(r.Checkpoints) > 0 {
		out.Preferences.CheckpointDelay = aws.Int32(r.Delay)
	}
	if n := int32(len(r.Old)); n > 0 { //nolint:gosec // small
		out.PercentageComplete = aws.Int32(100 * (n - left) / n)
	}
	if !r.Ended.IsZero() {
		out.EndTime = aws.Time(r.Ended)
	}
	return out
}

// cancelInstanceRefresh ends a refresh after the replacements in progress.
func (svc *Service) cancelInstanceRefresh(in *autoscaling.CancelInstanceRefreshInput) (*autoscaling.CancelInstanceRefreshOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	r := g.refreshing()
	if r == nil || r.Status == types.InstanceRefreshStatusCancelling {
		return nil, core.Fail("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", g.Name)
	}
	r.Status = types.InstanceRefreshStatusCancelling
	return &autoscaling.CancelInstanceRefreshOutput{InstanceRefreshId: aws.String(r.ID)}, nil
}

// remaining returns the instances that are not replaced yet.
func (r *InstanceRefresh) remaining(g *Group) []*Instance {
	left := slices.DeleteFunc(g.active(), func(i *Instance) bool { return !slices.Contains(r.Old, i.ID) })
	slices.SortStableFunc(left, func(x, y *Instance) int { return slices.Index(r.Old, x.ID) - slices.Index(r.Old, y.ID) })
	return left
}

// target returns how many instances are to be replaced until the next checkpoint, and whether it is
// the last. The percentage that is replaced can be higher than that of the checkpoint, but not lower.
func (r *InstanceRefresh) target(g *Group) (n int, last bool) {
	if len(r.Checkpoints) == 0 {
		return len(r.Old), true
	}
	p := r.Checkpoints[0]
	return min(len(r.Old), (int(g.Desired)*int(p)+99)/100), len(r.Checkpoints) == 1
}

// checkpoint ends the wait at a checkpoint, or begins it. It reports whether the refresh waits.
func (r *InstanceRefresh) checkpoint(now time.Time) bool {
	if r.Reached.IsZero() {
		r.Reached = now
	}
	if now.Sub(r.Reached) < time.Duration(r.Delay)*time.Second {
		return true
	}
	r.Checkpoints, r.Reached, r.Moved = r.Checkpoints[1:], time.Time{}, now
	return false
}

// refresh continues the refresh of a group. It returns how many instances are needed in
// addition to the desired capacity.
func (svc *Service) refresh(g *Group) (extra int) {
	r := g.refreshing()
	if r == nil {
		return 0
	}
	now := svc.Now()
	old, warm, active := r.remaining(g), 0, g.active()
	for _, i := range active {
		ready := slices.Contains(old, i) || now.Sub(i.Since) >= time.Duration(r.Warmup)*time.Second
		if i.State == types.LifecycleStateInService && i.Lost.IsZero() && ready {
			warm++
		}
	}
	target, last := r.target(g)
	settled := warm == len(active) && len(active) == int(g.Desired)
	end := func(s types.InstanceRefreshStatus, why string) int {
		r.Status, r.Ended, r.Reason = s, now, why
		return 0
	}
	status, why, ends := strings.Cut(svc.state.RefreshEnds, ": ")
	switch {
	case ends && now.Sub(r.Began) < time.Minute:
		return 0
	case ends:
		return end(types.InstanceRefreshStatus(status), why)
	case r.Status == types.InstanceRefreshStatusCancelling:
		if settled {
			return end(types.InstanceRefreshStatusCancelled, "Cancelled due to user request.")
		}
		return 0
	case len(r.Old)-len(old) >= target && settled && (last || len(old) == 0):
		return end(types.InstanceRefreshStatusSuccessful, "")
	case len(r.Old)-len(old) >= target && settled && r.checkpoint(now):
		return 0
	case now.Sub(r.Moved) >= RefreshGivesUp:
		return end(types.InstanceRefreshStatusFailed, "There are too many instances that cannot be replaced.")
	case g.Suspended["InstanceRefresh"] || g.Suspended["Launch"] || g.Suspended["Terminate"]:
		return 0
	}
	r.Status = types.InstanceRefreshStatusInProgress
	return r.step(svc, g, old, warm)
}

// step replaces as many instances as the preferences permit: at least one at a time, and
// more only if enough of the others are warm.
func (r *InstanceRefresh) step(svc *Service, g *Group, old []*Instance, warm int) (extra int) {
	desired := int(g.Desired)
	target, _ := r.target(g)
	need := target - (len(r.Old) - len(old)) // before the next checkpoint
	extra = desired * int(r.Max-100) / 100
	if r.Max > 100 && extra == 0 {
		extra = 1
	}
	free := warm - (desired*int(r.Min)+99)/100
	switch stuck := free <= 0 && extra == 0; {
	case stuck && r.MaxGiven: // "Auto Scaling launches a new instance before terminating an old one"
		extra = 1
		free = warm - desired
	case stuck && warm == desired && len(g.active()) == desired:
		free = 1
	}
	for _, i := range old[:max(0, min(free, need, len(old)))] {
		if i.Protected {
			continue // wait until its protection ends
		}
		svc.retire(g, i, "an instance was taken out of service in response to an instance refresh")
		r.Moved = svc.Now()
	}
	return max(0, min(extra, target-(len(r.Old)-len(r.remaining(g)))))
}
