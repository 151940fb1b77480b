package replica

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
)

// scaling reads the Auto Scaling groups that the plan asks for, and those of its cluster.
// Others would only launch machines in the copy.
func (r *reader) scaling(ctx context.Context) error {
	c, found := autoscaling.NewFromConfig(r.Config), map[string]*sim.Group{}
	err := pages(
		ctx,
		autoscaling.NewDescribeAutoScalingGroupsPaginator(c, &autoscaling.DescribeAutoScalingGroupsInput{}),
		func(p *autoscaling.DescribeAutoScalingGroupsOutput) {
			for _, g := range p.AutoScalingGroups {
				if own := r.groupOf(g); r.Asked.about(own.Name, own.Tags["eks:cluster-name"].Value) || r.oursScaled(own.Tags) {
					found[own.Name] = own
				}
			}
		},
	)
	if err != nil {
		return err
	}
	for _, g := range found {
		out, err := c.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &g.Name})
		if err != nil {
			return err
		}
		for _, h := range out.LifecycleHooks {
			g.Hooks[aws.ToString(h.LifecycleHookName)] = &sim.Hook{
				Name: aws.ToString(
					h.LifecycleHookName,
				),
				Transition: aws.ToString(h.LifecycleTransition),
				Result:     aws.ToString(h.DefaultResult),
				Target:     aws.ToString(h.NotificationTargetARN),
				Role:       aws.ToString(h.RoleARN),
				Metadata:   aws.ToString(h.NotificationMetadata),
				Heartbeat:  aws.ToInt32(h.HeartbeatTimeout),
			}
		}
	}
	r.to.AutoScaling.Groups = found
	return nil
}

func (r *reader) oursScaled(tags map[string]sim.Tag) bool {
	plain := map[string]string{}
	for k, t := range tags {
		plain[k] = t.Value
	}
	return r.ours(plain)
}

func (r *reader) groupOf(g types.AutoScalingGroup) *sim.Group {
	own := &sim.Group{
		Name: aws.ToString(
			g.AutoScalingGroupName,
		),
		ARN:      aws.ToString(g.AutoScalingGroupARN),
		Born:     r.since(g.CreatedTime),
		Looked:   r.Now,
		Deleting: aws.ToString(g.Status) != "",
		Min: aws.ToInt32(
			g.MinSize,
		),
		Max:      aws.ToInt32(g.MaxSize),
		Desired:  aws.ToInt32(g.DesiredCapacity),
		Mixed:    g.MixedInstancesPolicy,
		Cooldown: aws.ToInt32(g.DefaultCooldown),
		Grace: aws.ToInt32(
			g.HealthCheckGracePeriod,
		),
		Warmup:      g.DefaultInstanceWarmup,
		Lifetime:    aws.ToInt32(g.MaxInstanceLifetime),
		HealthCheck: aws.ToString(g.HealthCheckType),
		Policies:    g.TerminationPolicies,
		Rebalance:   aws.ToBool(g.CapacityRebalance),
		Protect:     aws.ToBool(g.NewInstancesProtectedFromScaleIn),
		Suspended:   map[string]bool{},
		Tags:        map[string]sim.Tag{},
		Hooks:       map[string]*sim.Hook{},
	}
	own.Subnets = slices.DeleteFunc(strings.Split(aws.ToString(g.VPCZoneIdentifier), ","), func(s string) bool { return s == "" })
	template := g.LaunchTemplate
	if m := g.MixedInstancesPolicy; m != nil && m.LaunchTemplate != nil {
		template = m.LaunchTemplate.LaunchTemplateSpecification
	}
	own.Template = refOf(template)
	for _, t := range g.Tags {
		own.OfEKS = own.OfEKS || aws.ToString(t.Key) == "eks:cluster-name"
	}
	for _, p := range g.SuspendedProcesses {
		own.Suspended[aws.ToString(p.ProcessName)] = true
	}
	for _, t := range g.Tags {
		own.Tags[aws.ToString(t.Key)] = sim.Tag{Value: aws.ToString(t.Value), Propagate: aws.ToBool(t.PropagateAtLaunch)}
	}
	for _, i := range g.Instances {
		member := &sim.Instance{
			ID: aws.ToString(i.InstanceId), Zone: aws.ToString(i.AvailabilityZone), Type: aws.ToString(i.InstanceType), State: i.LifecycleState, Since: own.Born,
			Protected: aws.ToBool(i.ProtectedFromScaleIn), Template: *refOf(i.LaunchTemplate),
		}
		if machine := r.to.EC2.Instances[member.ID]; machine != nil {
			member.Subnet, member.Spot = machine.Subnet, machine.Spot
		}
		own.Instances = append(own.Instances, member)
	}
	return own
}

func refOf(t *types.LaunchTemplateSpecification) *sim.TemplateRef {
	if t == nil {
		return &sim.TemplateRef{}
	}
	return &sim.TemplateRef{ID: aws.ToString(t.LaunchTemplateId), Version: aws.ToString(t.Version)}
}
