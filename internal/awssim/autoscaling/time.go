package autoscaling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Settle executes the steps of all groups since the last call, each at its time.
func (svc *Service) Settle() {
	now := svc.Now()
	defer svc.SetPast(time.Time{})
	for {
		at := time.Time{}
		for _, g := range svc.state.Groups {
			if next := svc.nextLook(g); !next.IsZero() && (at.IsZero() || next.Before(at)) {
				at = next
			}
		}
		if at.IsZero() || at.After(now) {
			break
		}
		svc.SetPast(at)
		svc.elb.Settle()
		svc.ec2.Settle()
		for _, g := range core.ByKey(svc.state.Groups) {
			if next := svc.nextLook(g); !next.IsZero() && !next.After(at) {
				svc.look(g)
			}
		}
	}
	for _, g := range svc.state.Groups {
		if svc.atRest(g) {
			g.Looked = now // the next step starts now
		}
	}
}

// nextLook returns the time of a group's next step; zero if it waits for a change.
func (svc *Service) nextLook(g *Group) (at time.Time) {
	if g.OfEKS {
		return time.Time{}
	}
	if !svc.atRest(g) {
		return g.Looked.Add(ScalingLooks)
	}
	if g.Lifetime == 0 || g.Suspended["Terminate"] || len(g.Instances) == 0 {
		return time.Time{}
	}
	oldest := slices.MinFunc(g.Instances, func(x, y *Instance) int { return x.Since.Compare(y.Since) })
	if at = oldest.Since.Add(time.Duration(g.Lifetime) * time.Second); at.Before(g.Looked) {
		at = g.Looked.Add(ScalingLooks)
	}
	return at
}

func (svc *Service) atRest(g *Group) bool {
	return !g.Deleting && len(g.Instances) == int(g.Desired) && g.refreshing() == nil && !slices.ContainsFunc(g.Instances, func(i *Instance) bool {
		return i.State != types.LifecycleStateInService || !svc.runs(i.ID)
	})
}

// runs reports whether an instance is running.
func (svc *Service) runs(id string) bool {
	i := svc.ec2.Instance(id)
	return i != nil && i.State(svc.Now()) == ec2types.InstanceStateNameRunning
}

// look executes one step of a group.
func (svc *Service) look(g *Group) {
	g.Looked = svc.Now()
	for _, i := range slices.Clone(g.Instances) {
		svc.live(g, i)
	}
	g.Instances = slices.DeleteFunc(g.Instances, func(i *Instance) bool {
		gone := i.leaving() && svc.ec2.InstanceGone(i.ID)
		if gone {
			g.finish(i, types.ScalingActivityStatusCodeSuccessful, "", svc.Now())
		}
		return gone
	})
	if g.Deleting {
		if len(g.Instances) == 0 {
			delete(svc.state.Groups, g.Name)
		}
		return
	}
	wanted := int(g.Desired) + svc.refresh(g)
	switch active := g.active(); {
	case len(active) < wanted && !g.Suspended["Launch"] && !svc.Now().Before(g.Retry):
		svc.scaleOut(g, wanted-len(active))
	case len(active) > wanted && !g.Suspended["Terminate"]:
		svc.scaleIn(g, len(active)-wanted)
	}
}

// leaving reports whether an instance is being terminated.
func (i *Instance) leaving() bool {
	return i.State == types.LifecycleStateTerminating || i.State == types.LifecycleStateTerminatingWait
}

func (i *Instance) become(s types.LifecycleState, now time.Time) { i.State, i.Since = s, now }

// active returns the instances that are not being terminated.
func (g *Group) active() []*Instance {
	return slices.DeleteFunc(slices.Clone(g.Instances), (*Instance).leaving)
}

// hook returns the hook of a transition with the longest timeout; nil if there is none.
func (g *Group) hook(transition string) (h *Hook) {
	for _, x := range core.ByKey(g.Hooks) {
		if x.Transition == "autoscaling:"+transition && (h == nil || x.Heartbeat > h.Heartbeat) {
			h = x
		}
	}
	return h
}

// live advances the state of an instance. No hook is completed by a call: each ends with
// its timeout.
func (svc *Service) live(g *Group, i *Instance) {
	now := svc.Now()
	switch i.State { //nolint:exhaustive // other states do not change
	case types.LifecycleStatePending:
		switch h := g.hook(Launching); {
		case !svc.runs(i.ID) && !svc.starting(i.ID):
			svc.dismiss(g, i, "the instance did not come up")
		case svc.starting(i.ID):
		case h != nil:
			i.become(types.LifecycleStatePendingWait, now)
			i.Until = now.Add(time.Duration(h.Heartbeat) * time.Second)
		default:
			i.become(types.LifecycleStateInService, now)
			g.finish(i, types.ScalingActivityStatusCodeSuccessful, "", now)
		}
	case types.LifecycleStatePendingWait:
		switch h := g.hook(Launching); {
		case now.Before(i.Until) && h != nil:
		case h != nil && h.Result == abandon:
			g.finish(i, types.ScalingActivityStatusCodeCancelled, abandoned(i.Activity), now)
			svc.dismiss(g, i, "a lifecycle hook abandoned the instance")
		default:
			i.become(types.LifecycleStateInService, now)
			g.finish(i, types.ScalingActivityStatusCodeSuccessful, "", now)
		}
	case types.LifecycleStateInService:
		svc.checkHealth(g, i)
	case types.LifecycleStateTerminatingWait:
		if !now.Before(i.Until) {
			svc.dismiss(g, i, "")
		}
	}
}

func (svc *Service) starting(id string) bool {
	i := svc.ec2.Instance(id)
	return i != nil && i.State(svc.Now()) == ec2types.InstanceStateNamePending
}

// checkHealth replaces an instance that is not running, or that exceeds the maximum
// lifetime.
func (svc *Service) checkHealth(g *Group, i *Instance) {
	now := svc.Now()
	if i.Lost.IsZero() && !svc.runs(i.ID) && !g.Suspended["HealthCheck"] {
		i.Lost = now
	}
	switch {
	case g.Suspended["Terminate"]:
	case !i.Lost.IsZero() && now.Sub(i.Lost) >= ScalingNotices && !g.Suspended["ReplaceUnhealthy"]:
		svc.dismiss(g, i, "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped")
	case g.Lifetime > 0 && now.Sub(i.Since) >= time.Duration(g.Lifetime)*time.Second && len(g.active()) == len(g.Instances):
		svc.retire(g, i, "an instance has reached the maximum lifetime")
	}
}

// retire terminates an instance after the timeouts of the hooks.
func (svc *Service) retire(g *Group, i *Instance, cause string) {
	h := g.hook(Terminating)
	if h == nil {
		svc.dismiss(g, i, cause)
		return
	}
	g.begin(svc, i, "Terminating EC2 instance: "+i.ID, cause)
	i.become(types.LifecycleStateTerminatingWait, svc.Now())
	i.Until = svc.Now().Add(time.Duration(h.Heartbeat) * time.Second)
}

// dismiss terminates an instance immediately.
func (svc *Service) dismiss(g *Group, i *Instance, cause string) {
	if i.State == types.LifecycleStateTerminating {
		return
	}
	if i.State != types.LifecycleStateTerminatingWait {
		g.begin(svc, i, "Terminating EC2 instance: "+i.ID, cause)
	}
	i.become(types.LifecycleStateTerminating, svc.Now())
	svc.ec2.Terminate(i.ID)
}

// begin records an activity.
func (g *Group) begin(svc *Service, i *Instance, description, cause string) {
	x := &Activity{
		ID:          svc.Hash(),
		Description: description,
		Cause:       fmt.Sprintf("At %s %s.", svc.Now().UTC().Format(time.RFC3339), cause),
		Status:      types.ScalingActivityStatusCodeInProgress,
		Began:       svc.Now(),
	}
	i.Activity = x.ID
	g.note(x)
}

// note keeps the most recent activities.
func (g *Group) note(x *Activity) {
	g.Activities = append(g.Activities, x)
	g.Activities = g.Activities[max(0, len(g.Activities)-200):]
}

// abandoned is the message of Auto Scaling about a launch that a lifecycle hook has abandoned. The source is a report about a program that has
// abandoned one (github.com/Jaeminst/devops-01-Final-TeamG/issues/90).
func abandoned(token string) string {
	return "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token " + token + " was abandoned: Heartbeat Timeout"
}

// finish ends the activity of an instance.
func (g *Group) finish(i *Instance, status types.ScalingActivityStatusCode, message string, now time.Time) {
	for _, x := range g.Activities {
		if x.ID == i.Activity {
			x.Status, x.Message, x.Ended = status, message, now
		}
	}
}

// groupOut converts a group for answers.
func (svc *Service) groupOut(g *Group) types.AutoScalingGroup {
	out := types.AutoScalingGroup{
		AutoScalingGroupName:             aws.String(g.Name),
		AutoScalingGroupARN:              aws.String(g.ARN),
		CreatedTime:                      aws.Time(g.Born),
		MinSize:                          aws.Int32(g.Min),
		MaxSize:                          aws.Int32(g.Max),
		DesiredCapacity:                  aws.Int32(g.Desired),
		DefaultCooldown:                  aws.Int32(g.Cooldown),
		DefaultInstanceWarmup:            g.Warmup,
		HealthCheckGracePeriod:           aws.Int32(g.Grace),
		HealthCheckType:                  aws.String(g.HealthCheck),
		CapacityRebalance:                aws.Bool(g.Rebalance),
		NewInstancesProtectedFromScaleIn: aws.Bool(g.Protect),
		TerminationPolicies:              g.Policies,
		DeletionProtection:               cmp.Or(g.Deletion, types.DeletionProtectionNone),
		VPCZoneIdentifier:                aws.String(joined(g.Subnets)),
		Tags:                             g.tagsOut(),
		ServiceLinkedRoleARN: aws.String(
			"arn:" + svc.Partition() + ":iam::" + svc.Number() + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
		),
	}
	if g.Lifetime > 0 {
		out.MaxInstanceLifetime = aws.Int32(g.Lifetime)
	}
	if g.Mixed == nil {
		out.LaunchTemplate = svc.templateOut(*g.Template)
	} else {
		mixed := core.Recast[types.MixedInstancesPolicy](g.Mixed)
		mixed.LaunchTemplate.LaunchTemplateSpecification = svc.templateOut(*g.Template)
		out.MixedInstancesPolicy = &mixed
	}
	if g.Deleting {
		out.Status = aws.String("Delete in progress")
	}
	for _, id := range g.Subnets {
		if s := svc.ec2.Subnet(id); s != nil && !slices.Contains(out.AvailabilityZones, s.Zone) {
			out.AvailabilityZones = append(out.AvailabilityZones, s.Zone)
		}
	}
	for _, p := range core.SortedKeys(g.Suspended) {
		out.SuspendedProcesses = append(out.SuspendedProcesses, types.SuspendedProcess{ProcessName: aws.String(p), SuspensionReason: aws.String("User suspended")})
	}
	for _, i := range g.Instances {
		health := "Healthy"
		if !i.Lost.IsZero() {
			health = "Unhealthy"
		}
		out.Instances = append(out.Instances, types.Instance{
			InstanceId: aws.String(i.ID), AvailabilityZone: aws.String(i.Zone), InstanceType: aws.String(i.Type), HealthStatus: aws.String(health),
			LifecycleState: i.State, ProtectedFromScaleIn: aws.Bool(i.Protected), LaunchTemplate: svc.templateOut(i.Template),
		})
	}
	return out
}

// templateOut converts a template for answers. That it has no name after deletion is a
// guess.
func (svc *Service) templateOut(r TemplateRef) *types.LaunchTemplateSpecification {
	out := &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(r.ID), Version: aws.String(r.Version)}
	if t := svc.ec2.LaunchTemplate(r.ID); t != nil {
		out.LaunchTemplateName = aws.String(t.Name)
	}
	return out
}
