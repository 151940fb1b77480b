package autoscaling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// configure changes the settings of a group that the call contains.
func (svc *Service) configure(g *Group, in autoscaling.UpdateAutoScalingGroupInput) error {
	for _, step := range []func(*Group, autoscaling.UpdateAutoScalingGroupInput) error{configureSize, configureTimes, svc.configurePlace, svc.configureTemplate} {
		if err := step(g, in); err != nil {
			return err
		}
	}
	if in.CapacityRebalance != nil {
		g.Rebalance = *in.CapacityRebalance
	}
	if in.NewInstancesProtectedFromScaleIn != nil {
		g.Protect = *in.NewInstancesProtectedFromScaleIn
	}
	if in.DeletionProtection != "" {
		if !slices.Contains(in.DeletionProtection.Values(), in.DeletionProtection) {
			return invalid("the deletion protection %q is unknown", in.DeletionProtection)
		}
		g.Deletion = in.DeletionProtection
	}
	if len(in.TerminationPolicies) > 0 {
		if !slices.Equal(in.TerminationPolicies, []string{"Default"}) && !slices.Equal(in.TerminationPolicies, []string{"OldestInstance"}) {
			return core.NotSimulated("the termination policies %v", in.TerminationPolicies)
		}
		g.Policies = in.TerminationPolicies
	}
	if in.LaunchTemplate == nil && in.MixedInstancesPolicy == nil && in.VPCZoneIdentifier == nil {
		return nil
	}
	return svc.dryRun(g)
}

// configureSize moves the desired capacity between minimum and maximum, if the call does
// not set it.
func configureSize(g *Group, in autoscaling.UpdateAutoScalingGroupInput) error {
	if in.MinSize != nil {
		g.Min = *in.MinSize
	}
	if in.MaxSize != nil {
		g.Max = *in.MaxSize
	}
	if g.Min < 0 || g.Max < g.Min {
		return invalid("Max bound, %d, must be greater than or equal to min bound, %d", g.Max, g.Min)
	}
	if in.DesiredCapacity == nil {
		g.Desired = min(max(g.Desired, g.Min), g.Max)
		return nil
	}
	if *in.DesiredCapacity < g.Min || *in.DesiredCapacity > g.Max {
		return invalid("Desired capacity:%d must be between the specified min size:%d and max size:%d", *in.DesiredCapacity, g.Min, g.Max)
	}
	g.Desired = *in.DesiredCapacity
	return nil
}

func configureTimes(g *Group, in autoscaling.UpdateAutoScalingGroupInput) error {
	for _, n := range []struct {
		given *int32
		to    *int32
		name  string
	}{{in.DefaultCooldown, &g.Cooldown, "DefaultCooldown"}, {in.HealthCheckGracePeriod, &g.Grace, "HealthCheckGracePeriod"}, {in.MaxInstanceLifetime, &g.Lifetime, "MaxInstanceLifetime"}} {
		if n.given == nil {
			continue
		}
		if *n.given < 0 {
			return invalid("%s is negative", n.name)
		}
		*n.to = *n.given
	}
	if g.Lifetime != 0 && (g.Lifetime < 86400 || g.Lifetime > 31536000) {
		return invalid("The maximum instance lifetime must be 0 or between 86400 and 31536000 seconds")
	}
	switch w := in.DefaultInstanceWarmup; {
	case w == nil:
	case *w == -1: // -1 removes the setting
		g.Warmup = nil
	case *w < 0:
		return invalid("DefaultInstanceWarmup is negative")
	default:
		g.Warmup = w
	}
	if in.HealthCheckType != nil {
		for kind := range strings.SplitSeq(*in.HealthCheckType, ",") {
			if kind != "EC2" && kind != "ELB" && kind != "EBS" {
				return invalid("Invalid health check type: %s", kind)
			}
		}
		g.HealthCheck = *in.HealthCheckType
	}
	return nil
}

// configurePlace sets the subnets: they may be in several zones, but only one VPC.
func (svc *Service) configurePlace(g *Group, in autoscaling.UpdateAutoScalingGroupInput) error {
	if in.VPCZoneIdentifier != nil {
		g.Subnets = nil
		for id := range strings.SplitSeq(*in.VPCZoneIdentifier, ",") {
			if id = strings.TrimSpace(id); id != "" {
				g.Subnets = append(g.Subnets, id)
			}
		}
	}
	if len(g.Subnets) == 0 {
		return invalid("At least one Availability Zone or VPC Subnet is required.")
	}
	vpc := ""
	for n, id := range g.Subnets {
		s := svc.ec2.Subnet(id)
		if s == nil || !svc.ec2.Known(s.Thing) {
			return invalid("The subnet ID '%s' does not exist", id)
		}
		if vpc != "" && s.VPC != vpc || slices.Contains(g.Subnets[:n], id) {
			return invalid("the subnets of a group are in one VPC, each once: %s", id)
		}
		vpc = s.VPC
	}
	return nil
}

// configureTemplate sets the launch template. Launch configurations are not simulated:
// new accounts cannot create them.
func (svc *Service) configureTemplate(g *Group, in autoscaling.UpdateAutoScalingGroupInput) error {
	switch {
	case in.LaunchTemplate != nil && in.MixedInstancesPolicy != nil:
		return invalid("Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
	case in.LaunchTemplate != nil:
		ref, err := svc.templateRef(in.LaunchTemplate)
		if err != nil {
			return err
		}
		g.Template, g.Mixed = ref, nil
	case in.MixedInstancesPolicy != nil:
		if err := svc.checkMixed(in.MixedInstancesPolicy); err != nil {
			return err
		}
		mixed := core.Recast[types.MixedInstancesPolicy](in.MixedInstancesPolicy)
		ref, err := svc.templateRef(mixed.LaunchTemplate.LaunchTemplateSpecification)
		if err != nil {
			return err
		}
		g.Template, g.Mixed = ref, &mixed
	case g.Template == nil:
		return invalid("Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
	}
	return nil
}

func (svc *Service) templateRef(s *types.LaunchTemplateSpecification) (*TemplateRef, error) {
	t, err := svc.ec2.FindLaunchTemplate(s.LaunchTemplateId, s.LaunchTemplateName)
	if err != nil {
		return nil, invalid("You must use a valid fully-formed launch template. %s", core.Reason(err))
	}
	if t.Version(aws.ToString(s.Version)) == nil {
		return nil, invalid("You must use a valid fully-formed launch template. %s", core.Reason(t.NoVersion(aws.ToString(s.Version))))
	}
	return &TemplateRef{t.ID, cmp.Or(aws.ToString(s.Version), "$Default")}, nil
}

func (svc *Service) checkMixed(m *types.MixedInstancesPolicy) error {
	if m.LaunchTemplate == nil || m.LaunchTemplate.LaunchTemplateSpecification == nil {
		return invalid("a mixed instances policy needs a launch template")
	}
	if n := len(m.LaunchTemplate.Overrides); n > 40 { // LaunchTemplateOverrides, API reference: up to 40 instance types; the message is not verified
		return invalid("a mixed instances policy has at most 40 instance types, this one has %d", n)
	}
	for _, o := range m.LaunchTemplate.Overrides {
		if err := core.Only("MixedInstancesPolicy", &o, "InstanceType"); err != nil {
			return err
		}
		if svc.ec2.Architectures(aws.ToString(o.InstanceType)) == nil {
			return invalid("The following overrides have invalid instance types: [%s]", aws.ToString(o.InstanceType))
		}
	}
	d := m.InstancesDistribution
	if d == nil {
		return nil
	}
	if err := core.Only(
		"MixedInstancesPolicy",
		d,
		"OnDemandAllocationStrategy",
		"OnDemandBaseCapacity",
		"OnDemandPercentageAboveBaseCapacity",
		"SpotAllocationStrategy",
	); err != nil {
		return err
	}
	if s := aws.ToString(d.OnDemandAllocationStrategy); !slices.Contains([]string{"", "prioritized", "lowest-price"}, s) {
		return invalid("the on-demand allocation strategy %s is not valid", s)
	}
	if s := aws.ToString(
		d.SpotAllocationStrategy,
	); !slices.Contains(
		[]string{"", "lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"},
		s,
	) {
		return invalid("the spot allocation strategy %s is not valid", s)
	}
	if p := aws.ToInt32(d.OnDemandPercentageAboveBaseCapacity); p < 0 || p > 100 || aws.ToInt32(d.OnDemandBaseCapacity) < 0 {
		return invalid("the on-demand capacity of a mixed instances policy is not valid")
	}
	return nil
}

// dryRun validates what a group would launch in its first subnet, as Auto Scaling does
// when a request names a launch template ("are checked when an Auto Scaling group is created or
// updated using a launch template": "Launch template support", Amazon EC2 Auto Scaling user guide).
func (svc *Service) dryRun(g *Group) error {
	t := svc.ec2.LaunchTemplate(g.Template.ID)
	if t == nil || t.Version(g.Template.Version) == nil {
		return nil // the VPC was deleted: keep the group as it is
	}
	if g.Mixed != nil && t.Version(g.Template.Version).Data.InstanceMarketOptions != nil {
		return invalid(
			"Incompatible launch template: You cannot use a launch template that is set to request Spot Instances (InstanceMarketOptions) when you configure an Auto Scaling group with a mixed instances policy.",
		)
	}
	for _, kind := range g.kinds() {
		if err := svc.ec2.CheckLaunch(g.request(*g.Template, g.Subnets[0], kind, false)); err != nil && !unavailable(err) {
			return invalid("You must use a valid fully-formed launch template. %s", core.Reason(err))
		}
	}
	return nil
}

// unavailable reports whether a launch fails only in one zone.
func unavailable(err error) bool {
	return strings.Contains(err.Error(), "not supported in your requested availability zone")
}

// kinds are the instance types that a group may launch, in order of preference; "" is
// that of the template.
func (g *Group) kinds() []string {
	if g.Mixed == nil || len(g.Mixed.LaunchTemplate.Overrides) == 0 {
		return []string{""}
	}
	return core.Each(g.Mixed.LaunchTemplate.Overrides, func(o types.LaunchTemplateOverrides) string { return aws.ToString(o.InstanceType) })
}

// request returns the RunInstances call for an instance of a group.
func (g *Group) request(t TemplateRef, subnet, kind string, spot bool) *awsec2.RunInstancesInput {
	in := &awsec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: &subnet, InstanceType: ec2types.InstanceType(kind),
		LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateId: &t.ID, Version: &t.Version},
	}
	if spot {
		in.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot}
	}
	return in
}
