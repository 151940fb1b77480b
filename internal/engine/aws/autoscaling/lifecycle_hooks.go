package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// hookField is the prefix of the fields of lifecycle hooks in differences.
const hookField = "lifecycleHook "

// DiffHooks compares the lifecycle hooks of an Auto Scaling group.
func DiffHooks(have map[string]string, wanted []expinfrav1.AWSLifecycleHook, d *plan.Diff) {
	want := HookTexts(wanted)
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d.Set(hookField+name, have[name], want[name])
	}
}

// HasHooks reports whether a lifecycle hook differs.
func HasHooks(d plan.Diff) bool {
	return slices.ContainsFunc(d, func(c plan.Change) bool { return strings.HasPrefix(c.Field, hookField) })
}

// UpdateHooks creates, changes and deletes the hooks of a group that differ.
func UpdateHooks(ctx context.Context, c *cloud.Clients, group string, wanted []expinfrav1.AWSLifecycleHook, d plan.Diff) error {
	for _, change := range d {
		name, ok := strings.CutPrefix(change.Field, hookField)
		if !ok {
			continue
		}
		if change.Have != "" && !changeable(change, wanted, name) {
			if _, err := c.AutoScaling.DeleteLifecycleHook(
				ctx,
				&autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: &group, LifecycleHookName: &name},
			); err != nil {
				return err
			}
		}
		for _, h := range wanted {
			if h.Name != name {
				continue
			}
			s := hookSpecification(h)
			_, err := c.AutoScaling.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{
				AutoScalingGroupName: &group, LifecycleHookName: &name, LifecycleTransition: s.LifecycleTransition,
				DefaultResult: cmp.Or(s.DefaultResult, aws.String(defaultResult)), HeartbeatTimeout: cmp.Or(s.HeartbeatTimeout, aws.Int32(defaultHeartbeat)),
				NotificationMetadata: s.NotificationMetadata, NotificationTargetARN: s.NotificationTargetARN, RoleARN: s.RoleARN,
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// changeable reports whether PutLifecycleHook brings a hook to its desired state. It keeps what a call
// leaves out, and does not change the transition.
func changeable(change plan.Change, wanted []expinfrav1.AWSLifecycleHook, name string) bool {
	oldKind, _, _ := strings.Cut(change.Have, ",")
	newKind, _, _ := strings.Cut(change.Want, ",")
	at := slices.IndexFunc(wanted, func(h expinfrav1.AWSLifecycleHook) bool { return h.Name == name })
	if oldKind != newKind || at < 0 {
		return false
	}
	h := wanted[at]
	for part, given := range map[string]*string{", notifies ": h.NotificationTargetARN, " as ": h.RoleARN, ": ": h.NotificationMetadata} {
		if strings.Contains(change.Have, part) && given == nil {
			return false
		}
	}
	return true
}

func hookSpecification(h expinfrav1.AWSLifecycleHook) types.LifecycleHookSpecification {
	out := types.LifecycleHookSpecification{
		LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(string(h.LifecycleTransition)),
		NotificationMetadata: h.NotificationMetadata, NotificationTargetARN: h.NotificationTargetARN, RoleARN: h.RoleARN,
	}
	if h.DefaultResult != nil {
		out.DefaultResult = optional(string(*h.DefaultResult))
	}
	if h.HeartbeatTimeout != nil {
		out.HeartbeatTimeout = seconds(h.HeartbeatTimeout.Duration)
	}
	return out
}

// CheckHooks says which role of a lifecycle hook does not exist: PutLifecycleHook publishes a test message with it, and
// fails ("Prepare to add a lifecycle hook", Amazon EC2 Auto Scaling user guide).
func CheckHooks(ctx context.Context, c *cloud.Clients, hooks []expinfrav1.AWSLifecycleHook) (refusal string, err error) {
	for _, h := range hooks {
		if h.RoleARN == nil {
			continue
		}
		if refusal, err = iam.UnpassableRole(ctx, c, *h.RoleARN); refusal != "" || err != nil {
			return refusal, err
		}
	}
	return "", nil
}

// HookTexts returns lifecycle hooks as text, by name.
func HookTexts(hooks []expinfrav1.AWSLifecycleHook) map[string]string {
	out := map[string]string{}
	for _, h := range hooks {
		s := hookSpecification(h)
		out[h.Name] = hookText(types.LifecycleHook{
			LifecycleTransition: s.LifecycleTransition, DefaultResult: s.DefaultResult, HeartbeatTimeout: s.HeartbeatTimeout,
			NotificationMetadata: s.NotificationMetadata, NotificationTargetARN: s.NotificationTargetARN, RoleARN: s.RoleARN,
		})
	}
	return out
}

// AWS's defaults of lifecycle hooks (PutLifecycleHook, Amazon EC2 Auto Scaling API reference).
const (
	defaultResult    = "ABANDON"
	defaultHeartbeat = 3600
)

// hookText returns a lifecycle hook as text, the transition first, with the defaults of
// AWS.
func hookText(h types.LifecycleHook) string {
	wait := int32(defaultHeartbeat)
	if h.HeartbeatTimeout != nil {
		wait = *h.HeartbeatTimeout
	}
	return fmt.Sprintf(
		"%s, after %s %s",
		strings.TrimPrefix(aws.ToString(h.LifecycleTransition), "autoscaling:EC2_INSTANCE_"),
		time.Duration(wait)*time.Second,
		cmp.Or(aws.ToString(h.DefaultResult), defaultResult),
	) +
		text.Prefixed(
			", notifies ",
			aws.ToString(h.NotificationTargetARN),
		) + text.Prefixed(
		" as ",
		aws.ToString(h.RoleARN),
	) + text.Prefixed(
		": ",
		aws.ToString(h.NotificationMetadata),
	)
}

// HookKind is the name of the kind of lifecycle hooks.
const HookKind = "lifecycle-hook"

// hookKind declares lifecycle hooks. They are part of the state of an Auto Scaling group
// or a node group.
func hookKind() *kind.Kind {
	return &kind.Kind{
		Name: HookKind, Area: plan.AreaWorkers, ReadActions: []string{"autoscaling:DescribeLifecycleHooks"}, Statement: kind.LaunchTemplates,
		Actions: []string{"autoscaling:DeleteLifecycleHook", "autoscaling:PutLifecycleHook"},
	}
}

// LifecycleHooks returns the hooks of a group as text, by name.
func LifecycleHooks(ctx context.Context, c *cloud.Clients, group string) (map[string]string, error) {
	out, err := cloud.Remember(ctx, c, "lifecycle hooks "+group, func(ctx context.Context) (*autoscaling.DescribeLifecycleHooksOutput, error) {
		return c.AutoScaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	})
	if err != nil {
		return nil, cloud.IgnoreNotFound(err) // the group was deleted in the meantime
	}
	hooks := map[string]string{}
	for _, h := range out.LifecycleHooks {
		hooks[aws.ToString(h.LifecycleHookName)] = hookText(h)
	}
	return hooks, nil
}

func (g *Group) updateHooks(ctx context.Context, c *cloud.Clients, have *GroupState, d plan.Diff) error {
	return UpdateHooks(ctx, c, have.ID, g.Spec.AWSLifecycleHooks, d)
}
