package awssim

import (
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// settleAutoScaling has the groups do what they did since the last call, each
// thing at its time.
func (a *AWS) settleAutoScaling() {
	now := a.now()
	defer a.setPast(time.Time{})
	for {
		at := time.Time{}
		for _, g := range a.state.AutoScaling.Groups {
			if next := a.nextLook(g); !next.IsZero() && (at.IsZero() || next.Before(at)) {
				at = next
			}
		}
		if at.IsZero() || at.After(now) {
			break
		}
		a.setPast(at)
		a.settleELB()
		a.settleEC2()
		for _, g := range byKey(a.state.AutoScaling.Groups) {
			if next := a.nextLook(g); !next.IsZero() && !next.After(at) {
				a.look(g)
			}
		}
	}
	for _, g := range a.state.AutoScaling.Groups {
		if a.atRest(g) {
			g.Looked = now // what happens from here on happens after now
		}
	}
}

// nextLook is when a group next has something to do; zero: when somebody
// changes something.
func (a *AWS) nextLook(g *ScalingGroup) (at time.Time) {
	if g.OfEKS {
		return time.Time{}
	}
	if !a.atRest(g) {
		return g.Looked.Add(ScalingLooks)
	}
	if g.Lifetime == 0 || g.Suspended["Terminate"] || len(g.Instances) == 0 {
		return time.Time{}
	}
	oldest := slices.MinFunc(g.Instances, func(x, y *ScalingInstance) int { return x.Since.Compare(y.Since) })
	if at = oldest.Since.Add(time.Duration(g.Lifetime) * time.Second); at.Before(g.Looked) {
		at = g.Looked.Add(ScalingLooks)
	}
	return at
}

func (a *AWS) atRest(g *ScalingGroup) bool {
	return !g.Deleting && len(g.Instances) == int(g.Desired) && g.refreshing() == nil && !slices.ContainsFunc(g.Instances, func(i *ScalingInstance) bool {
		return i.State != types.LifecycleStateInService || !a.runs(i.ID)
	})
}

// runs reports whether an instance is running.
func (a *AWS) runs(id string) bool {
	i := a.Instance(id)
	return i != nil && i.state(a.now()) == ec2types.InstanceStateNameRunning
}

// look has a group do what there is to do.
func (a *AWS) look(g *ScalingGroup) {
	g.Looked = a.now()
	for _, i := range slices.Clone(g.Instances) {
		a.live(g, i)
	}
	g.Instances = slices.DeleteFunc(g.Instances, func(i *ScalingInstance) bool {
		gone := i.leaving() && a.instanceGone(i.ID)
		if gone {
			g.finish(i, types.ScalingActivityStatusCodeSuccessful, a.now())
		}
		return gone
	})
	if g.Deleting {
		if len(g.Instances) == 0 {
			delete(a.state.AutoScaling.Groups, g.Name)
		}
		return
	}
	wanted := int(g.Desired) + a.refresh(g)
	switch active := g.active(); {
	case len(active) < wanted && !g.Suspended["Launch"] && !a.now().Before(g.Retry):
		a.scaleOut(g, wanted-len(active))
	case len(active) > wanted && !g.Suspended["Terminate"]:
		a.scaleIn(g, len(active)-wanted)
	}
}

// leaving reports whether an instance is on its way out.
func (i *ScalingInstance) leaving() bool {
	return i.State == types.LifecycleStateTerminating || i.State == types.LifecycleStateTerminatingWait
}

func (i *ScalingInstance) become(s types.LifecycleState, now time.Time) { i.State, i.Since = s, now }

// active are the instances that count: those that are not on their way out.
func (g *ScalingGroup) active() []*ScalingInstance {
	return slices.DeleteFunc(slices.Clone(g.Instances), (*ScalingInstance).leaving)
}

// hook is the hook of a transition that waits longest; nil: there is none.
func (g *ScalingGroup) hook(transition string) (h *ScalingHook) {
	for _, x := range byKey(g.Hooks) {
		if x.Transition == "autoscaling:"+transition && (h == nil || x.Heartbeat > h.Heartbeat) {
			h = x
		}
	}
	return h
}

// live takes an instance on by what time has brought. Nobody answers hooks
// here: all of them wait until their time is over.
func (a *AWS) live(g *ScalingGroup, i *ScalingInstance) {
	now := a.now()
	switch i.State { //nolint:exhaustive // the others do not come up
	case types.LifecycleStatePending:
		switch h := g.hook(launching); {
		case !a.runs(i.ID) && !a.starting(i.ID):
			a.dismiss(g, i, "the instance did not come up")
		case a.starting(i.ID):
		case h != nil:
			i.become(types.LifecycleStatePendingWait, now)
			i.Until = now.Add(time.Duration(h.Heartbeat) * time.Second)
		default:
			i.become(types.LifecycleStateInService, now)
			g.finish(i, types.ScalingActivityStatusCodeSuccessful, now)
		}
	case types.LifecycleStatePendingWait:
		switch h := g.hook(launching); {
		case now.Before(i.Until) && h != nil:
		case h != nil && h.Result == abandon:
			g.finish(i, types.ScalingActivityStatusCodeCancelled, now)
			a.dismiss(g, i, "a lifecycle hook abandoned the instance")
		default:
			i.become(types.LifecycleStateInService, now)
			g.finish(i, types.ScalingActivityStatusCodeSuccessful, now)
		}
	case types.LifecycleStateInService:
		a.checkHealth(g, i)
	case types.LifecycleStateTerminatingWait:
		if !now.Before(i.Until) {
			a.dismiss(g, i, "")
		}
	}
}

func (a *AWS) starting(id string) bool {
	i := a.Instance(id)
	return i != nil && i.state(a.now()) == ec2types.InstanceStateNamePending
}

// checkHealth replaces an instance that does not run any more, or that has
// lived as long as it may.
func (a *AWS) checkHealth(g *ScalingGroup, i *ScalingInstance) {
	now := a.now()
	if i.Lost.IsZero() && !a.runs(i.ID) && !g.Suspended["HealthCheck"] {
		i.Lost = now
	}
	switch {
	case g.Suspended["Terminate"]:
	case !i.Lost.IsZero() && now.Sub(i.Lost) >= ScalingNotices && !g.Suspended["ReplaceUnhealthy"]:
		a.dismiss(g, i, "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped")
	case g.Lifetime > 0 && now.Sub(i.Since) >= time.Duration(g.Lifetime)*time.Second && len(g.active()) == len(g.Instances):
		a.retire(g, i, "an instance has reached the maximum lifetime")
	}
}

// retire takes an instance out, when the hooks have had their time.
func (a *AWS) retire(g *ScalingGroup, i *ScalingInstance, cause string) {
	h := g.hook(terminating)
	if h == nil {
		a.dismiss(g, i, cause)
		return
	}
	g.begin(a, i, "Terminating EC2 instance: "+i.ID, cause)
	i.become(types.LifecycleStateTerminatingWait, a.now())
	i.Until = a.now().Add(time.Duration(h.Heartbeat) * time.Second)
}

// dismiss terminates an instance at once.
func (a *AWS) dismiss(g *ScalingGroup, i *ScalingInstance, cause string) {
	if i.State == types.LifecycleStateTerminating {
		return
	}
	if i.State != types.LifecycleStateTerminatingWait {
		g.begin(a, i, "Terminating EC2 instance: "+i.ID, cause)
	}
	i.become(types.LifecycleStateTerminating, a.now())
	a.Terminate(i.ID)
}

// begin notes what the group does about an instance.
func (g *ScalingGroup) begin(a *AWS, i *ScalingInstance, description, cause string) {
	x := &ScalingActivity{ID: a.hash(), Description: description, Cause: fmt.Sprintf("At %s %s.", a.now().UTC().Format(time.RFC3339), cause), Status: types.ScalingActivityStatusCodeInProgress, Began: a.now()}
	i.Activity = x.ID
	g.note(x)
}

// note keeps the last of what a group did.
func (g *ScalingGroup) note(x *ScalingActivity) {
	g.Activities = append(g.Activities, x)
	g.Activities = g.Activities[max(0, len(g.Activities)-200):]
}

func (g *ScalingGroup) finish(i *ScalingInstance, status types.ScalingActivityStatusCode, now time.Time) {
	for _, x := range g.Activities {
		if x.ID == i.Activity {
			x.Status, x.Ended = status, now
		}
	}
}

// scalingGroupOut is a group as answers show it.
func (a *AWS) scalingGroupOut(g *ScalingGroup) types.AutoScalingGroup {
	out := types.AutoScalingGroup{
		AutoScalingGroupName: aws.String(g.Name), AutoScalingGroupARN: aws.String(g.ARN), CreatedTime: aws.Time(g.Born),
		MinSize: aws.Int32(g.Min), MaxSize: aws.Int32(g.Max), DesiredCapacity: aws.Int32(g.Desired), DefaultCooldown: aws.Int32(g.Cooldown),
		DefaultInstanceWarmup: g.Warmup, HealthCheckGracePeriod: aws.Int32(g.Grace), HealthCheckType: aws.String(g.HealthCheck),
		CapacityRebalance: aws.Bool(g.Rebalance), NewInstancesProtectedFromScaleIn: aws.Bool(g.Protect), TerminationPolicies: g.Policies,
		VPCZoneIdentifier: aws.String(joined(g.Subnets)), Tags: g.tagsOut(),
		ServiceLinkedRoleARN: aws.String("arn:" + a.partition() + ":iam::" + Account + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"),
	}
	if g.Lifetime > 0 {
		out.MaxInstanceLifetime = aws.Int32(g.Lifetime)
	}
	if g.Mixed == nil {
		out.LaunchTemplate = a.templateOut(*g.Template)
	} else {
		mixed := recast[types.MixedInstancesPolicy](g.Mixed)
		mixed.LaunchTemplate.LaunchTemplateSpecification = a.templateOut(*g.Template)
		out.MixedInstancesPolicy = &mixed
	}
	if g.Deleting {
		out.Status = aws.String("Delete in progress")
	}
	for _, id := range g.Subnets {
		if s := a.Subnet(id); s != nil && !slices.Contains(out.AvailabilityZones, s.Zone) {
			out.AvailabilityZones = append(out.AvailabilityZones, s.Zone)
		}
	}
	for _, p := range sortedKeys(g.Suspended) {
		out.SuspendedProcesses = append(out.SuspendedProcesses, types.SuspendedProcess{ProcessName: aws.String(p), SuspensionReason: aws.String("User suspended")})
	}
	for _, i := range g.Instances {
		health := "Healthy"
		if !i.Lost.IsZero() {
			health = "Unhealthy"
		}
		out.Instances = append(out.Instances, types.Instance{
			InstanceId: aws.String(i.ID), AvailabilityZone: aws.String(i.Zone), InstanceType: aws.String(i.Type), HealthStatus: aws.String(health),
			LifecycleState: i.State, ProtectedFromScaleIn: aws.Bool(i.Protected), LaunchTemplate: a.templateOut(i.Template),
		})
	}
	return out
}

// templateOut is a template that answers name: without its name when it is
// gone, which is a guess.
func (a *AWS) templateOut(r TemplateRef) *types.LaunchTemplateSpecification {
	out := &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(r.ID), Version: aws.String(r.Version)}
	if t := a.LaunchTemplate(r.ID); t != nil {
		out.LaunchTemplateName = aws.String(t.Name)
	}
	return out
}
