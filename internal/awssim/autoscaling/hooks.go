package autoscaling

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Transitions and results of lifecycle hooks.
const (
	Launching   = "EC2_INSTANCE_LAUNCHING"
	Terminating = "EC2_INSTANCE_TERMINATING"
	abandon     = "ABANDON"
)

func (svc *Service) simulateHooks() {
	core.On(svc.Account, svc.putLifecycleHook, "AutoScalingGroupName", "LifecycleHookName", "DefaultResult", "HeartbeatTimeout", "LifecycleTransition",
		"NotificationMetadata", "NotificationTargetARN", "RoleARN")
	core.On(svc.Account, svc.deleteLifecycleHook, "AutoScalingGroupName", "LifecycleHookName")
	core.On(svc.Account, svc.describeLifecycleHooks, "AutoScalingGroupName", "LifecycleHookNames")
	core.On(svc.Account, svc.suspendProcesses, "AutoScalingGroupName", "ScalingProcesses")
	core.On(svc.Account, svc.resumeProcesses, "AutoScalingGroupName", "ScalingProcesses")
}

func (svc *Service) putLifecycleHook(in *autoscaling.PutLifecycleHookInput) (*autoscaling.PutLifecycleHookOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	return &autoscaling.PutLifecycleHookOutput{}, svc.putHook(g, *in)
}

// putHook creates a hook, or changes the settings that the call contains.
func (svc *Service) putHook(g *Group, in autoscaling.PutLifecycleHookInput) error {
	name := aws.ToString(in.LifecycleHookName)
	if !regex.Of(`^[A-Za-z0-9\-_/]{1,255}$`).MatchString(name) {
		return invalid("the name %q of a lifecycle hook has 1 to 255 letters, digits, '-', '_' and '/'", name)
	}
	h := Hook{Name: name, Heartbeat: 3600, Result: abandon}
	old, exists := g.Hooks[name]
	if exists {
		h = *old
	}
	for _, s := range []struct {
		given *string
		to    *string
	}{
		{in.LifecycleTransition, &h.Transition},
		{in.DefaultResult, &h.Result},
		{in.NotificationMetadata, &h.Metadata},
		{in.NotificationTargetARN, &h.Target},
		{in.RoleARN, &h.Role},
	} {
		if s.given != nil {
			*s.to = *s.given
		}
	}
	if in.HeartbeatTimeout != nil {
		h.Heartbeat = *in.HeartbeatTimeout
	}
	switch most := 50; {
	case h.Transition != "autoscaling:"+Launching && h.Transition != "autoscaling:"+Terminating:
		return invalid("Lifecycle transition '%s' is not valid", h.Transition)
	case exists && old.Transition != h.Transition:
		return invalid("the transition of a lifecycle hook cannot be changed") // not documented; assumed
	case h.Result != "CONTINUE" && h.Result != abandon:
		return invalid("Default result '%s' is not valid: CONTINUE or ABANDON", h.Result)
	case strings.Contains(h.Target, ":sqs:") && strings.HasSuffix(h.Target, ".fifo"): // "FIFO queue and message group ID quotas", SQS developer guide
		return invalid("Unable to publish test message to notification target %s: Auto Scaling lifecycle hooks are not compatible with FIFO queues", h.Target)
	case h.Heartbeat < 30 || h.Heartbeat > 7200:
		return invalid("Heartbeat timeout must be between 30 and 7200 seconds")
	case h.Target != "" && !regex.Of(`^arn:[^:]+:(sns|sqs|lambda):`).MatchString(h.Target):
		return invalid("Unable to publish test message to notification target %s: invalid target ARN", h.Target)
	case h.Target != "" && !strings.Contains(h.Target, ":lambda:") && h.Role == "":
		return invalid("a notification target needs a role")
	case h.Role != "" && svc.iam.RoleOfARN(h.Role) == nil:
		return invalid("Unable to publish test message to notification target %s using IAM role %s", h.Target, h.Role)
	case !exists && len(g.Hooks) >= most:
		return core.Fail("LimitExceeded", "a group can have %d lifecycle hooks", most)
	}
	g.Hooks[name] = &h
	return nil
}

func (svc *Service) deleteLifecycleHook(in *autoscaling.DeleteLifecycleHookInput) (*autoscaling.DeleteLifecycleHookOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	if g.Hooks[aws.ToString(in.LifecycleHookName)] == nil {
		return nil, invalid("No Lifecycle Hook found with name %s for Auto Scaling group %s", aws.ToString(in.LifecycleHookName), g.Name)
	}
	delete(g.Hooks, *in.LifecycleHookName)
	return &autoscaling.DeleteLifecycleHookOutput{}, nil
}

func (svc *Service) describeLifecycleHooks(in *autoscaling.DescribeLifecycleHooksInput) (*autoscaling.DescribeLifecycleHooksOutput, error) {
	g, err := svc.group(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	out := &autoscaling.DescribeLifecycleHooksOutput{}
	for _, h := range core.ByKey(g.Hooks) {
		if len(in.LifecycleHookNames) > 0 && !slices.Contains(in.LifecycleHookNames, h.Name) {
			continue
		}
		out.LifecycleHooks = append(out.LifecycleHooks, types.LifecycleHook{
			AutoScalingGroupName: aws.String(g.Name), LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.Transition),
			DefaultResult: aws.String(h.Result), HeartbeatTimeout: aws.Int32(h.Heartbeat), GlobalTimeout: aws.Int32(min(h.Heartbeat*100, 172800)),
			NotificationMetadata: core.Text(h.Metadata), NotificationTargetARN: core.Text(h.Target), RoleARN: core.Text(h.Role),
		})
	}
	return out, nil
}

// processes returns the processes in a call; all if it has none.
func processes(named []string) ([]string, error) {
	all := []string{
		"AZRebalance",
		"AddToLoadBalancer",
		"AlarmNotification",
		"HealthCheck",
		"InstanceRefresh",
		"Launch",
		"ReplaceUnhealthy",
		"ScheduledActions",
		"Terminate",
	}
	for _, p := range named {
		if !slices.Contains(all, p) {
			return nil, invalid("Process type '%s' is not valid", p)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return all, nil
}

func (svc *Service) suspendProcesses(in *autoscaling.SuspendProcessesInput) (*autoscaling.SuspendProcessesOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	list, err := processes(in.ScalingProcesses)
	for _, p := range list {
		g.Suspended[p] = true
	}
	return &autoscaling.SuspendProcessesOutput{}, err
}

func (svc *Service) resumeProcesses(in *autoscaling.ResumeProcessesInput) (*autoscaling.ResumeProcessesOutput, error) {
	g, err := svc.changeable(in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	list, err := processes(in.ScalingProcesses)
	for _, p := range list {
		delete(g.Suspended, p)
	}
	return &autoscaling.ResumeProcessesOutput{}, err
}
