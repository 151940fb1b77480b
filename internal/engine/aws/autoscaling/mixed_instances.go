package autoscaling

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
)

// launchSource returns the launch template, or the mixed instances policy that contains
// it.
func (g *Group) launchSource() (*types.LaunchTemplateSpecification, *types.MixedInstancesPolicy) {
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
			OnDemandBaseCapacity: toInt32(d.OnDemandBaseCapacity), OnDemandPercentageAboveBaseCapacity: toInt32(d.OnDemandPercentageAboveBaseCapacity),
		}
	}
	return nil, out
}

func (g *Group) mixedInstances() string {
	_, p := g.launchSource()
	return mixedInstancesText(p)
}

// mixedInstancesText returns a mixed instances policy as text, with the defaults of AWS.
func mixedInstancesText(p *types.MixedInstancesPolicy) string {
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

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func toInt32(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(*n)) //nolint:gosec // percentages, and seconds of less than a day
}
