package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Update implements graph.Resource. Processes are resumed before anything
// else, and machines replaced when all else is as wanted.
func (g *Group) Update(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) (*GroupState, error) {
	for _, step := range []func(context.Context, *cloud.Clients, *GroupState, graph.Diff) error{
		g.updateProcesses, g.updateSettings, g.updateHooks, g.updateTags, g.refresh,
	} {
		if err := step(ctx, c, have, d); err != nil {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // look again
}

func (g *Group) updateProcesses(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	if more := d.Added("suspendedProcess"); len(more) > 0 {
		if _, err := c.AutoScaling.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &have.ID, ScalingProcesses: more}); err != nil {
			return err
		}
	}
	if less := d.Removed("suspendedProcess"); len(less) > 0 {
		if _, err := c.AutoScaling.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &have.ID, ScalingProcesses: less}); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) updateSettings(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	if !d.Has("minSize", "maxSize", "replicas", "subnet", "launchTemplate", "mixedInstancesPolicy", "capacityRebalance", "defaultCoolDown", "defaultInstanceWarmup") {
		return nil
	}
	in := &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: &have.ID, MinSize: &g.Spec.MinSize, MaxSize: &g.Spec.MaxSize, DesiredCapacity: g.Desired,
		VPCZoneIdentifier: aws.String(strings.Join(identity.CloudIDs(g.Subnets), ",")), CapacityRebalance: &g.Spec.CapacityRebalance,
		DefaultCooldown: seconds(usually(g.Spec.DefaultCoolDown.Duration)), DefaultInstanceWarmup: seconds(usually(g.Spec.DefaultInstanceWarmup.Duration)),
	}
	if d.Has("launchTemplate", "mixedInstancesPolicy") {
		in.LaunchTemplate, in.MixedInstancesPolicy = g.launches()
	}
	_, err := c.AutoScaling.UpdateAutoScalingGroup(ctx, in)
	return err
}

func (g *Group) updateHooks(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	return UpdateHooks(ctx, c, have.ID, g.Spec.AWSLifecycleHooks, d)
}

func (g *Group) updateTags(ctx context.Context, c *cloud.Clients, _ *GroupState, d graph.Diff) error {
	if !d.HasTags() {
		return nil
	}
	_, err := c.AutoScaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: g.tags()})
	return err
}

// refresh has the machines replaced. One that this run has started and that
// came to nothing is not started again.
func (g *Group) refresh(ctx context.Context, c *cloud.Clients, have *GroupState, d graph.Diff) error {
	if !d.Has("machines") {
		return nil
	}
	if g.failed(have) {
		return fmt.Errorf("instance refresh %s left %s", have.Refresh, d[slices.IndexFunc(d, func(c graph.Change) bool { return c.Field == "machines" })].Have)
	}
	in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: &have.ID, Strategy: types.RefreshStrategyRolling}
	if p := g.Spec.RefreshPreferences; p != nil {
		in.Preferences = &types.RefreshPreferences{
			InstanceWarmup: narrow(p.InstanceWarmup), MinHealthyPercentage: narrow(p.MinHealthyPercentage), MaxHealthyPercentage: narrow(p.MaxHealthyPercentage),
		}
		if s := aws.ToString(p.Strategy); s != "" {
			in.Strategy = types.RefreshStrategy(s)
		}
	}
	out, err := c.AutoScaling.StartInstanceRefresh(ctx, in)
	if err != nil {
		return err
	}
	g.refreshing, g.started = true, aws.ToString(out.InstanceRefreshId)
	return nil
}

func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(*n)) //nolint:gosec // percentages, and seconds of less than a day
}

func seconds(d time.Duration) *int32 {
	return aws.Int32(int32(d / time.Second)) //nolint:gosec // less than a century
}

// tags are the group's own: what it launches has those of the template.
func (g *Group) tags() (out []types.Tag) {
	for _, t := range g.Tags.EC2() {
		out = append(out, types.Tag{
			Key: t.Key, Value: t.Value, PropagateAtLaunch: aws.Bool(false), ResourceId: &g.Name, ResourceType: aws.String("auto-scaling-group"),
		})
	}
	return out
}

// template is what the group launches, as its state has it.
func (g *Group) template() string {
	if _, ok := g.Template.Found(); !ok {
		return graph.Unknown
	}
	return g.Template.CloudID() + ":" + expinfrav1.LaunchTemplateLatestVersion
}

func (g *Group) suspended() []string {
	s := g.Spec.SuspendProcesses
	if s == nil {
		return nil
	}
	own := *s // upstream's method writes into what it is called on
	out := own.ConvertSetValuesToStringSlice()
	slices.Sort(out)
	return out
}

// launches is what the group launches: one type of machine, or several.
func (g *Group) launches() (*types.LaunchTemplateSpecification, *types.MixedInstancesPolicy) {
	t := &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(g.Template.CloudID()), Version: aws.String(expinfrav1.LaunchTemplateLatestVersion)}
	p := g.Spec.MixedInstancesPolicy
	if p == nil {
		return t, nil
	}
	out := &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: t}}
	for _, o := range p.Overrides {
		out.LaunchTemplate.Overrides = append(out.LaunchTemplate.Overrides, types.LaunchTemplateOverrides{InstanceType: aws.String(o.InstanceType)})
	}
	if d := p.InstancesDistribution; d != nil {
		out.InstancesDistribution = &types.InstancesDistribution{
			OnDemandAllocationStrategy: optional(string(d.OnDemandAllocationStrategy)), SpotAllocationStrategy: optional(string(d.SpotAllocationStrategy)),
			OnDemandBaseCapacity: narrow(d.OnDemandBaseCapacity), OnDemandPercentageAboveBaseCapacity: narrow(d.OnDemandPercentageAboveBaseCapacity),
		}
	}
	return nil, out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (g *Group) mixed() string {
	_, p := g.launches()
	return mixedWritten(p)
}

// mixedWritten writes a mixed instances policy down, with AWS's defaults for
// what it leaves open.
func mixedWritten(p *types.MixedInstancesPolicy) string {
	if p == nil {
		return ""
	}
	var kinds []string
	if p.LaunchTemplate != nil {
		for _, o := range p.LaunchTemplate.Overrides {
			kinds = append(kinds, aws.ToString(o.InstanceType))
		}
	}
	d := types.InstancesDistribution{}
	if p.InstancesDistribution != nil {
		d = *p.InstancesDistribution
	}
	share := int32(100)
	if d.OnDemandPercentageAboveBaseCapacity != nil {
		share = *d.OnDemandPercentageAboveBaseCapacity
	}
	return fmt.Sprintf("%s; on demand %d and %d %% of the rest, %s; spot %s", strings.Join(kinds, ", "), aws.ToInt32(d.OnDemandBaseCapacity), share,
		cmp.Or(aws.ToString(d.OnDemandAllocationStrategy), "prioritized"), cmp.Or(aws.ToString(d.SpotAllocationStrategy), "lowest-price"))
}
