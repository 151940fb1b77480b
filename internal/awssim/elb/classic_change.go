package elb

import (
	"maps"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

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

func (svc *Service) describeClassicAttributes(in *classic.DescribeLoadBalancerAttributesInput) (*classic.DescribeLoadBalancerAttributesOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	return &classic.DescribeLoadBalancerAttributesOutput{LoadBalancerAttributes: c.showAttributes()}, nil
}

func (svc *Service) modifyClassicAttributes(in *classic.ModifyLoadBalancerAttributesInput) (*classic.ModifyLoadBalancerAttributesOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	at := in.LoadBalancerAttributes
	if at == nil {
		return nil, core.Fail("ValidationError", "attributes must be specified")
	}
	if at.AccessLog != nil && at.AccessLog.Enabled {
		return nil, core.NotSimulated("ModifyLoadBalancerAttributes: access logs")
	}
	if err := core.Only("ModifyLoadBalancerAttributes", at, "CrossZoneLoadBalancing", "ConnectionDraining", "ConnectionSettings", "AccessLog"); err != nil {
		return nil, err
	}
	changed := *c
	if at.CrossZoneLoadBalancing != nil {
		changed.CrossZone = at.CrossZoneLoadBalancing.Enabled
	}
	if at.ConnectionDraining != nil {
		changed.Draining = at.ConnectionDraining.Enabled
		core.Set(&changed.DrainingTimeout, at.ConnectionDraining.Timeout)
	}
	if at.ConnectionSettings != nil {
		core.Set(&changed.IdleTimeout, at.ConnectionSettings.IdleTimeout)
	}
	if changed.IdleTimeout < 1 || changed.IdleTimeout > 4000 || changed.DrainingTimeout < 1 || changed.DrainingTimeout > 3600 {
		return nil, core.Fail("ValidationError", "the idle timeout must be 1 to 4000 seconds, the draining timeout 1 to 3600")
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

func (svc *Service) registerInstances(in *classic.RegisterInstancesWithLoadBalancerInput) (*classic.RegisterInstancesWithLoadBalancerOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	if len(in.Instances) == 0 {
		return nil, core.Fail("ValidationError", "at least one instance must be specified")
	}
	for _, t := range in.Instances {
		id := aws.ToString(t.InstanceId)
		switch i := svc.ec2.Instance(id); {
		case i == nil:
			return nil, invalidInstance(id, "does not exist")
		case i.VPC != c.VPC:
			return nil, invalidInstance(id, "is not in the same VPC as the load balancer")
		case !svc.ec2.InstanceRuns(i):
			return nil, invalidInstance(id, "is not in the running state")
		}
	}
	for _, t := range in.Instances {
		if _, registered := c.Instances[*t.InstanceId]; !registered {
			c.Instances[*t.InstanceId] = svc.Now()
		}
	}
	return &classic.RegisterInstancesWithLoadBalancerOutput{Instances: c.showInstances()}, nil
}

func (svc *Service) deregisterInstances(in *classic.DeregisterInstancesFromLoadBalancerInput) (*classic.DeregisterInstancesFromLoadBalancerOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	for _, t := range in.Instances {
		// An instance that exists need not be registered.
		if id := aws.ToString(t.InstanceId); svc.ec2.Instance(id) == nil {
			return nil, invalidInstance(id, "does not exist")
		}
	}
	for _, t := range in.Instances {
		delete(c.Instances, aws.ToString(t.InstanceId))
	}
	return &classic.DeregisterInstancesFromLoadBalancerOutput{Instances: c.showInstances()}, nil
}

func (svc *Service) describeInstanceHealth(in *classic.DescribeInstanceHealthInput) (*classic.DescribeInstanceHealthOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
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
		i := svc.ec2.Instance(id)
		since, registered := c.Instances[id]
		if i == nil {
			return nil, invalidInstance(id, "does not exist")
		}
		s := types.InstanceState{InstanceId: aws.String(id), State: aws.String("OutOfService"), ReasonCode: aws.String("Instance")}
		checks := time.Duration(c.Check.Interval*c.Check.Healthy) * time.Second
		enabled := slices.ContainsFunc(c.Subnets, func(s string) bool { return svc.ec2.ZoneOf(s) == i.Zone })
		switch {
		case !registered:
			s.Description = aws.String("Instance is not currently registered with the LoadBalancer.")
		case !svc.ec2.InstanceRuns(i):
			s.Description = aws.String("Instance is in stopped or terminated state.")
		case !enabled:
			s.ReasonCode, s.Description = aws.String("ELB"), aws.String("The instance is in an Availability Zone that the load balancer is not enabled for.")
		case svc.Now().Before(since.Add(checks)):
			s.ReasonCode, s.Description = aws.String("ELB"), aws.String("Instance registration is still in progress.")
		default:
			s.State, s.ReasonCode, s.Description = aws.String("InService"), aws.String("N/A"), aws.String("N/A")
		}
		out.InstanceStates = append(out.InstanceStates, s)
	}
	return out, nil
}

func (svc *Service) applySecurityGroups(in *classic.ApplySecurityGroupsToLoadBalancerInput) (*classic.ApplySecurityGroupsToLoadBalancerOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	if len(in.SecurityGroups) == 0 {
		return nil, core.Fail("ValidationError", "at least one security group must be specified")
	}
	groups := slices.Sorted(slices.Values(in.SecurityGroups))
	if err := svc.balancerGroups(groups, c.VPC); err != nil {
		return nil, err
	}
	c.Groups = groups
	for _, s := range c.Subnets {
		svc.ec2.Regroup(c.owner(s), groups)
	}
	return &classic.ApplySecurityGroupsToLoadBalancerOutput{SecurityGroups: slices.Clone(groups)}, nil
}

func (svc *Service) attachToSubnets(in *classic.AttachLoadBalancerToSubnetsInput) (*classic.AttachLoadBalancerToSubnetsOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	more := slices.DeleteFunc(slices.Clone(in.Subnets), func(s string) bool { return slices.Contains(c.Subnets, s) })
	subnets, err := svc.balancerSubnets(slices.Concat(c.Subnets, more))
	if err != nil {
		return nil, err
	}
	for _, s := range more {
		svc.enterClassic(c, s)
	}
	c.Subnets = nil
	for _, s := range subnets {
		c.Subnets = append(c.Subnets, s.ID)
	}
	return &classic.AttachLoadBalancerToSubnetsOutput{Subnets: slices.Clone(c.Subnets)}, nil
}

func (svc *Service) detachFromSubnets(in *classic.DetachLoadBalancerFromSubnetsInput) (*classic.DetachLoadBalancerFromSubnetsOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	goes := func(s string) bool { return slices.Contains(in.Subnets, s) }
	left := slices.DeleteFunc(slices.Clone(c.Subnets), goes)
	if len(left) == 0 {
		return nil, core.Fail("InvalidConfigurationRequest", "a load balancer must have at least one subnet")
	}
	for _, s := range c.Subnets {
		if goes(s) {
			svc.ec2.ReleaseInterfaces(c.owner(s), BalancerInterfacesLinger)
		}
	}
	c.Subnets = left
	return &classic.DetachLoadBalancerFromSubnetsOutput{Subnets: slices.Clone(left)}, nil
}

func (svc *Service) addClassicTags(in *classic.AddTagsInput) (*classic.AddTagsOutput, error) {
	if len(in.LoadBalancerNames) != 1 {
		return nil, core.Fail("ValidationError", "exactly one load balancer must be specified")
	}
	c, err := svc.classic(&in.LoadBalancerNames[0])
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

func (svc *Service) removeClassicTags(in *classic.RemoveTagsInput) (*classic.RemoveTagsOutput, error) {
	if len(in.LoadBalancerNames) != 1 {
		return nil, core.Fail("ValidationError", "exactly one load balancer must be specified")
	}
	c, err := svc.classic(&in.LoadBalancerNames[0])
	if err != nil {
		return nil, err
	}
	for _, t := range in.Tags {
		delete(c.Tags, aws.ToString(t.Key))
	}
	return &classic.RemoveTagsOutput{}, nil
}

func (svc *Service) describeClassicTags(in *classic.DescribeTagsInput) (*classic.DescribeTagsOutput, error) {
	if n := len(in.LoadBalancerNames); n == 0 || n > 20 {
		return nil, core.Fail("ValidationError", "1 to 20 load balancer names must be specified, not %d", n)
	}
	out := &classic.DescribeTagsOutput{}
	for _, name := range in.LoadBalancerNames {
		c, err := svc.classic(&name)
		if err != nil {
			return nil, err
		}
		out.TagDescriptions = append(out.TagDescriptions, types.TagDescription{
			LoadBalancerName: aws.String(name), Tags: core.WriteTags(c.Tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
		})
	}
	return out, nil
}
