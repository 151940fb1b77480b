package awssim

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
)

func (c *ClassicLoadBalancer) showAttributes() *types.LoadBalancerAttributes {
	return &types.LoadBalancerAttributes{
		CrossZoneLoadBalancing: &types.CrossZoneLoadBalancing{Enabled: c.CrossZone},
		ConnectionDraining:     &types.ConnectionDraining{Enabled: c.Draining, Timeout: aws.Int32(c.DrainingTimeout)},
		ConnectionSettings:     &types.ConnectionSettings{IdleTimeout: aws.Int32(c.IdleTimeout)},
		AccessLog:              &types.AccessLog{},
	}
}

func (a *AWS) describeClassicAttributes(in *classic.DescribeLoadBalancerAttributesInput) (*classic.DescribeLoadBalancerAttributesOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	return &classic.DescribeLoadBalancerAttributesOutput{LoadBalancerAttributes: c.showAttributes()}, nil
}

func (a *AWS) modifyClassicAttributes(in *classic.ModifyLoadBalancerAttributesInput) (*classic.ModifyLoadBalancerAttributesOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	at := in.LoadBalancerAttributes
	if at == nil {
		return nil, fail("ValidationError", "attributes must be specified")
	}
	if at.AccessLog != nil && at.AccessLog.Enabled {
		return nil, notSimulated("ModifyLoadBalancerAttributes: access logs")
	}
	if err := only("ModifyLoadBalancerAttributes", at, "CrossZoneLoadBalancing", "ConnectionDraining", "ConnectionSettings", "AccessLog"); err != nil {
		return nil, err
	}
	changed := *c
	if at.CrossZoneLoadBalancing != nil {
		changed.CrossZone = at.CrossZoneLoadBalancing.Enabled
	}
	if at.ConnectionDraining != nil {
		changed.Draining = at.ConnectionDraining.Enabled
		set(&changed.DrainingTimeout, at.ConnectionDraining.Timeout)
	}
	if at.ConnectionSettings != nil {
		set(&changed.IdleTimeout, at.ConnectionSettings.IdleTimeout)
	}
	if changed.IdleTimeout < 1 || changed.IdleTimeout > 4000 || changed.DrainingTimeout < 1 || changed.DrainingTimeout > 3600 {
		return nil, fail("ValidationError", "the idle timeout must be 1 to 4000 seconds, the draining timeout 1 to 3600")
	}
	*c = changed
	return &classic.ModifyLoadBalancerAttributesOutput{LoadBalancerName: aws.String(c.Name), LoadBalancerAttributes: c.showAttributes()}, nil
}

func (c *ClassicLoadBalancer) showInstances() (out []types.Instance) {
	for _, id := range slices.Sorted(maps.Keys(c.Instances)) {
		out = append(out, types.Instance{InstanceId: aws.String(id)})
	}
	return out
}

func invalidInstance(id, why string) error {
	return &types.InvalidEndPointException{Message: aws.String("EC2 instance '" + id + "' " + why)}
}

func (a *AWS) registerInstances(in *classic.RegisterInstancesWithLoadBalancerInput) (*classic.RegisterInstancesWithLoadBalancerOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	if len(in.Instances) == 0 {
		return nil, fail("ValidationError", "at least one instance must be specified")
	}
	for _, t := range in.Instances {
		id := aws.ToString(t.InstanceId)
		switch i := a.Instance(id); {
		case i == nil:
			return nil, invalidInstance(id, "does not exist")
		case i.VPC != c.VPC:
			return nil, invalidInstance(id, "is not in the same VPC as the load balancer")
		case !a.instanceRuns(i):
			return nil, invalidInstance(id, "is not in the running state")
		}
	}
	for _, t := range in.Instances {
		if _, registered := c.Instances[*t.InstanceId]; !registered {
			c.Instances[*t.InstanceId] = a.now()
		}
	}
	return &classic.RegisterInstancesWithLoadBalancerOutput{Instances: c.showInstances()}, nil
}

func (a *AWS) deregisterInstances(in *classic.DeregisterInstancesFromLoadBalancerInput) (*classic.DeregisterInstancesFromLoadBalancerOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	for _, t := range in.Instances {
		// An instance that exists need not be registered.
		if id := aws.ToString(t.InstanceId); a.Instance(id) == nil {
			return nil, invalidInstance(id, "does not exist")
		}
	}
	for _, t := range in.Instances {
		delete(c.Instances, aws.ToString(t.InstanceId))
	}
	return &classic.DeregisterInstancesFromLoadBalancerOutput{Instances: c.showInstances()}, nil
}

func (a *AWS) describeInstanceHealth(in *classic.DescribeInstanceHealthInput) (*classic.DescribeInstanceHealthOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	asked := in.Instances
	if len(asked) == 0 {
		asked = c.showInstances()
	}
	out := &classic.DescribeInstanceHealthOutput{}
	for _, t := range asked {
		id := aws.ToString(t.InstanceId)
		i := a.Instance(id)
		since, registered := c.Instances[id]
		if i == nil {
			return nil, invalidInstance(id, "does not exist")
		}
		s := types.InstanceState{InstanceId: aws.String(id), State: aws.String("OutOfService"), ReasonCode: aws.String("Instance")}
		checks := time.Duration(c.Check.Interval*c.Check.Healthy) * time.Second
		enabled := slices.ContainsFunc(c.Subnets, func(s string) bool { return a.zoneOf(s) == i.Zone })
		switch {
		case !registered:
			s.Description = aws.String("Instance is not currently registered with the LoadBalancer.")
		case !a.instanceRuns(i):
			s.Description = aws.String("Instance is in stopped or terminated state.")
		case !enabled:
			s.ReasonCode, s.Description = aws.String("ELB"), aws.String("The instance is in an Availability Zone that the load balancer is not enabled for.")
		case a.now().Before(since.Add(checks)):
			s.ReasonCode, s.Description = aws.String("ELB"), aws.String("Instance registration is still in progress.")
		default:
			s.State, s.ReasonCode, s.Description = aws.String("InService"), aws.String("N/A"), aws.String("N/A")
		}
		out.InstanceStates = append(out.InstanceStates, s)
	}
	return out, nil
}

func (a *AWS) applySecurityGroups(in *classic.ApplySecurityGroupsToLoadBalancerInput) (*classic.ApplySecurityGroupsToLoadBalancerOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	if len(in.SecurityGroups) == 0 {
		return nil, fail("ValidationError", "at least one security group must be specified")
	}
	groups := slices.Sorted(slices.Values(in.SecurityGroups))
	if err := a.balancerGroups(groups, c.VPC); err != nil {
		return nil, err
	}
	c.Groups = groups
	for _, s := range c.Subnets {
		a.regroup(c.owner(s), groups)
	}
	return &classic.ApplySecurityGroupsToLoadBalancerOutput{SecurityGroups: slices.Clone(groups)}, nil
}

func (a *AWS) attachToSubnets(in *classic.AttachLoadBalancerToSubnetsInput) (*classic.AttachLoadBalancerToSubnetsOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	more := slices.DeleteFunc(slices.Clone(in.Subnets), func(s string) bool { return slices.Contains(c.Subnets, s) })
	subnets, err := a.balancerSubnets(slices.Concat(c.Subnets, more))
	if err != nil {
		return nil, err
	}
	for _, s := range more {
		a.enterClassic(c, s)
	}
	c.Subnets = nil
	for _, s := range subnets {
		c.Subnets = append(c.Subnets, s.ID)
	}
	return &classic.AttachLoadBalancerToSubnetsOutput{Subnets: slices.Clone(c.Subnets)}, nil
}

func (a *AWS) detachFromSubnets(in *classic.DetachLoadBalancerFromSubnetsInput) (*classic.DetachLoadBalancerFromSubnetsOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	goes := func(s string) bool { return slices.Contains(in.Subnets, s) }
	left := slices.DeleteFunc(slices.Clone(c.Subnets), goes)
	if len(left) == 0 {
		return nil, fail("InvalidConfigurationRequest", "a load balancer must have at least one subnet")
	}
	for _, s := range c.Subnets {
		if goes(s) {
			a.releaseInterfaces(c.owner(s), BalancerInterfacesLinger)
		}
	}
	c.Subnets = left
	return &classic.DetachLoadBalancerFromSubnetsOutput{Subnets: slices.Clone(left)}, nil
}

func (a *AWS) addClassicTags(in *classic.AddTagsInput) (*classic.AddTagsOutput, error) {
	if len(in.LoadBalancerNames) != 1 {
		return nil, fail("ValidationError", "exactly one load balancer must be specified")
	}
	c, err := a.classic(&in.LoadBalancerNames[0])
	if err != nil {
		return nil, err
	}
	tags, err := readClassicTags(c.Tags, in.Tags)
	if err != nil {
		return nil, err
	}
	c.Tags = tags
	return &classic.AddTagsOutput{}, nil
}

func (a *AWS) removeClassicTags(in *classic.RemoveTagsInput) (*classic.RemoveTagsOutput, error) {
	if len(in.LoadBalancerNames) != 1 {
		return nil, fail("ValidationError", "exactly one load balancer must be specified")
	}
	c, err := a.classic(&in.LoadBalancerNames[0])
	if err != nil {
		return nil, err
	}
	for _, t := range in.Tags {
		delete(c.Tags, aws.ToString(t.Key))
	}
	return &classic.RemoveTagsOutput{}, nil
}

func (a *AWS) describeClassicTags(in *classic.DescribeTagsInput) (*classic.DescribeTagsOutput, error) {
	if n := len(in.LoadBalancerNames); n == 0 || n > 20 {
		return nil, fail("ValidationError", "1 to 20 load balancer names must be specified, not %d", n)
	}
	out := &classic.DescribeTagsOutput{}
	for _, name := range in.LoadBalancerNames {
		c, err := a.classic(&name)
		if err != nil {
			return nil, err
		}
		out.TagDescriptions = append(out.TagDescriptions, types.TagDescription{
			LoadBalancerName: aws.String(name), Tags: writeTags(c.Tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
		})
	}
	return out, nil
}
