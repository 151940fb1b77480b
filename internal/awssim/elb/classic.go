package elb

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

func (svc *Service) simulateClassic() {
	core.On(svc.Account, svc.CreateClassic, "LoadBalancerName", "Listeners", "Scheme", "SecurityGroups", "Subnets", "Tags")
	core.On(svc.Account, svc.describeClassic, "LoadBalancerNames", "Marker", "PageSize")
	core.On(svc.Account, svc.DeleteClassic, "LoadBalancerName")
	core.On(svc.Account, svc.describeClassicAttributes, "LoadBalancerName")
	core.On(svc.Account, svc.modifyClassicAttributes, "LoadBalancerName", "LoadBalancerAttributes")
	core.On(svc.Account, svc.configureHealthCheck, "LoadBalancerName", "HealthCheck")
	core.On(svc.Account, svc.registerInstances, "LoadBalancerName", "Instances")
	core.On(svc.Account, svc.deregisterInstances, "LoadBalancerName", "Instances")
	core.On(svc.Account, svc.describeInstanceHealth, "LoadBalancerName", "Instances")
	core.On(svc.Account, svc.applySecurityGroups, "LoadBalancerName", "SecurityGroups")
	core.On(svc.Account, svc.attachToSubnets, "LoadBalancerName", "Subnets")
	core.On(svc.Account, svc.detachFromSubnets, "LoadBalancerName", "Subnets")
	core.On(svc.Account, svc.addClassicTags, "LoadBalancerNames", "Tags")
	core.On(svc.Account, svc.removeClassicTags, "LoadBalancerNames", "Tags")
	core.On(svc.Account, svc.describeClassicTags, "LoadBalancerNames")
}

// classic returns a Classic Load Balancer by name.
func (svc *Service) classic(name *string) (*ClassicLoadBalancer, error) {
	c, ok := svc.state.Classic[aws.ToString(name)]
	if !ok {
		return nil, &types.AccessPointNotFoundException{Message: aws.String("There is no ACTIVE Load Balancer named '" + aws.ToString(name) + "'")}
	}
	return c, nil
}

// onlyClassic returns the load balancer of a call that takes a list of one name.
func (svc *Service) onlyClassic(names []string) (*ClassicLoadBalancer, error) {
	if len(names) != 1 {
		return nil, core.Fail("ValidationError", "exactly one load balancer must be specified")
	}
	return svc.classic(&names[0])
}

func readClassicTags(old map[string]string, tags []types.Tag) (map[string]string, error) {
	return core.ReadTags(tagRules(), old, tags, func(t types.Tag) (*string, *string) { return t.Key, t.Value })
}

// CreateClassic handles CreateLoadBalancer of Classic Load Balancers.
func (svc *Service) CreateClassic(in *classic.CreateLoadBalancerInput) (*classic.CreateLoadBalancerOutput, error) {
	c := &ClassicLoadBalancer{
		Name: aws.ToString(in.LoadBalancerName), Groups: slices.Sorted(slices.Values(in.SecurityGroups)), Instances: map[string]time.Time{},
		DrainingTimeout: 300, IdleTimeout: 60, Born: svc.Now(),
	}
	if err := checkName("load balancer", c.Name); err != nil {
		return nil, err
	}
	subnets, err := svc.balancerSubnets(in.Subnets)
	if err != nil {
		return nil, err
	}
	for _, s := range subnets {
		c.Subnets = append(c.Subnets, s.ID)
	}
	c.VPC = subnets[0].VPC
	if c.Scheme, err = svc.balancerScheme(aws.ToString(in.Scheme), c.VPC); err != nil {
		return nil, err
	}
	if err := svc.balancerGroups(c.Groups, c.VPC); err != nil {
		return nil, err
	}
	if len(c.Groups) == 0 {
		c.Groups = svc.ec2.DefaultGroup(c.VPC)
	}
	if c.Listeners, err = readClassicListeners(in.Listeners); err != nil {
		return nil, err
	}
	if c.Tags, err = readClassicTags(nil, in.Tags); err != nil {
		return nil, err
	}
	first := c.Listeners[0]
	c.Check = ClassicHealthCheck{Target: "TCP:" + strconv.Itoa(int(first.InstancePort)), Interval: 30, Timeout: 5, Healthy: 10, Unhealthy: 2}
	return svc.keepClassic(c)
}

// keepClassic creates a load balancer, or returns the existing one with the same name and
// settings. AWS counts tags as settings.
func (svc *Service) keepClassic(c *ClassicLoadBalancer) (*classic.CreateLoadBalancerOutput, error) {
	if old, exists := svc.state.Classic[c.Name]; exists {
		same := old.Scheme == c.Scheme && slices.Equal(old.Subnets, c.Subnets) && slices.Equal(old.Groups, c.Groups) &&
			slices.Equal(old.Listeners, c.Listeners) && maps.Equal(old.Tags, c.Tags)
		if !same {
			return nil, &types.DuplicateAccessPointNameException{
				Message: aws.String("Load Balancer named " + c.Name + " already exists and it is configured with different parameters."),
			}
		}
		return &classic.CreateLoadBalancerOutput{DNSName: aws.String(old.DNSName)}, nil
	}
	if len(svc.state.Classic) >= svc.Quotas().Classic {
		return nil, core.Fail("TooManyLoadBalancers", "exceeded quota of account")
	}
	c.DNSName = c.Name + "-" + strconv.Itoa(1_000_000_000+svc.NextSerial()) + "." + svc.Region + ".elb." + core.DNSSuffix(svc.Region)
	if c.Scheme == "internal" {
		c.DNSName = "internal-" + c.DNSName
	}
	for _, s := range c.Subnets {
		svc.enterClassic(c, s)
	}
	svc.state.Classic[c.Name] = c
	return &classic.CreateLoadBalancerOutput{DNSName: aws.String(c.DNSName)}, nil
}

// owner is the owner in the description of the interface in a subnet.
func (c *ClassicLoadBalancer) owner(subnet string) string { return "ELB " + c.Name + " " + subnet }

// enterClassic creates the interface of a load balancer in a subnet.
func (svc *Service) enterClassic(c *ClassicLoadBalancer, subnet string) {
	i := svc.ec2.NewInterface(subnet, "ELB "+c.Name, "interface", c.owner(subnet), slices.Clone(c.Groups))
	i.Managed = true
	if c.Scheme == schemeInternetFacing {
		i.PublicIP = svc.ec2.PublicIP()
	}
}

func readClassicListeners(in []types.Listener) (out []ClassicListener, err error) {
	if len(in) == 0 {
		return nil, core.Fail("ValidationError", "at least one listener must be specified")
	}
	for _, l := range in {
		if err := core.Only("listener", &l, "Protocol", "InstanceProtocol", "LoadBalancerPort", "InstancePort"); err != nil {
			return nil, err
		}
		c := ClassicListener{
			Protocol:         strings.ToUpper(aws.ToString(l.Protocol)),
			InstanceProtocol: strings.ToUpper(aws.ToString(l.InstanceProtocol)),
			Port:             l.LoadBalancerPort,
			InstancePort:     aws.ToInt32(l.InstancePort),
		}
		c.InstanceProtocol = cmp.Or(c.InstanceProtocol, c.Protocol)
		layer := func(p string) int { return 1 + slices.Index([]string{"TCP", "SSL", "HTTP", "HTTPS"}, p)/2 }
		switch {
		case c.Protocol == "SSL" || c.Protocol == "HTTPS":
			return nil, core.Fail("InvalidConfigurationRequest", "a certificate is required for protocol '%s'", c.Protocol)
		case c.Protocol != "TCP" && c.Protocol != "HTTP" || !slices.Contains([]string{"TCP", "SSL", "HTTP", "HTTPS"}, c.InstanceProtocol):
			return nil, core.Fail("UnsupportedProtocol", "the specified protocol '%s' or its instance protocol is not supported", c.Protocol)
		case layer(c.Protocol) != layer(c.InstanceProtocol):
			return nil, core.Fail("InvalidConfigurationRequest", "protocols '%s' and '%s' are not of the same layer", c.Protocol, c.InstanceProtocol)
		case c.Port < 1 || c.Port > 65535 || c.InstancePort < 1 || c.InstancePort > 65535:
			return nil, core.Fail("ValidationError", "ports must be between 1 and 65535")
		case slices.ContainsFunc(out, func(o ClassicListener) bool { return o.Port == c.Port }):
			return nil, core.Fail("DuplicateListener", "a listener already exists on port %d", c.Port)
		}
		out = append(out, c)
	}
	return out, nil
}

func (svc *Service) describeClassic(in *classic.DescribeLoadBalancersInput) (*classic.DescribeLoadBalancersOutput, error) {
	var list []types.LoadBalancerDescription
	for _, c := range core.ByKey(svc.state.Classic) {
		if svc.Visible(c.Born) && (len(in.LoadBalancerNames) == 0 || slices.Contains(in.LoadBalancerNames, c.Name)) {
			list = append(list, svc.showClassic(c))
		}
	}
	for _, name := range in.LoadBalancerNames {
		if !slices.ContainsFunc(list, func(d types.LoadBalancerDescription) bool { return *d.LoadBalancerName == name }) {
			return nil, &types.AccessPointNotFoundException{Message: aws.String("There is no ACTIVE Load Balancer named '" + name + "'")}
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.PageSize, 400)
	return &classic.DescribeLoadBalancersOutput{LoadBalancerDescriptions: part, NextMarker: next}, err
}

func (svc *Service) showClassic(c *ClassicLoadBalancer) types.LoadBalancerDescription {
	d := types.LoadBalancerDescription{
		LoadBalancerName: aws.String(c.Name), Scheme: aws.String(c.Scheme), VPCId: aws.String(c.VPC), DNSName: aws.String(c.DNSName),
		CanonicalHostedZoneName: aws.String(c.DNSName), CanonicalHostedZoneNameID: aws.String("Z35SXDOTRQ7X7K"), CreatedTime: aws.Time(c.Born),
		Subnets: slices.Clone(c.Subnets), SecurityGroups: slices.Clone(c.Groups), HealthCheck: c.Check.show(), Policies: &types.Policies{},
		Instances: c.showInstances(),
	}
	for _, s := range c.Subnets {
		d.AvailabilityZones = append(d.AvailabilityZones, svc.ec2.ZoneOf(s))
	}
	for _, l := range c.Listeners {
		d.ListenerDescriptions = append(d.ListenerDescriptions, types.ListenerDescription{Listener: &types.Listener{
			Protocol: aws.String(l.Protocol), LoadBalancerPort: l.Port, InstanceProtocol: aws.String(l.InstanceProtocol), InstancePort: aws.Int32(l.InstancePort),
		}})
	}
	return d
}

// DeleteClassic handles DeleteLoadBalancer of Classic Load Balancers.
func (svc *Service) DeleteClassic(in *classic.DeleteLoadBalancerInput) (*classic.DeleteLoadBalancerOutput, error) {
	if c, ok := svc.state.Classic[aws.ToString(in.LoadBalancerName)]; ok {
		for _, s := range c.Subnets {
			svc.ec2.ReleaseInterfaces(c.owner(s), BalancerInterfacesLinger)
		}
		delete(svc.state.Classic, c.Name)
	}
	return &classic.DeleteLoadBalancerOutput{}, nil // also if it does not exist
}

func (h ClassicHealthCheck) show() *types.HealthCheck {
	return &types.HealthCheck{
		Target: aws.String(h.Target), Interval: aws.Int32(h.Interval), Timeout: aws.Int32(h.Timeout),
		HealthyThreshold: aws.Int32(h.Healthy), UnhealthyThreshold: aws.Int32(h.Unhealthy),
	}
}

func (svc *Service) configureHealthCheck(in *classic.ConfigureHealthCheckInput) (*classic.ConfigureHealthCheckOutput, error) {
	c, err := svc.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	if in.HealthCheck == nil {
		return nil, core.Fail("ValidationError", "a health check must be specified")
	}
	h := ClassicHealthCheck{
		Target: aws.ToString(in.HealthCheck.Target), Interval: aws.ToInt32(in.HealthCheck.Interval), Timeout: aws.ToInt32(in.HealthCheck.Timeout),
		Healthy: aws.ToInt32(in.HealthCheck.HealthyThreshold), Unhealthy: aws.ToInt32(in.HealthCheck.UnhealthyThreshold),
	}
	within := func(n, least, most int32) bool { return n >= least && n <= most }
	switch {
	case !regex.Of(`^((TCP|SSL):[0-9]{1,5}|HTTPS?:[0-9]{1,5}/.*)$`).MatchString(h.Target):
		return nil, core.Fail("ValidationError", "health check target '%s' is not valid", h.Target)
	case !within(h.Interval, 5, 300) || !within(h.Timeout, 2, 60) || !within(h.Healthy, 2, 10) || !within(h.Unhealthy, 2, 10):
		return nil, core.Fail("ValidationError", "health check interval must be 5 to 300, timeout 2 to 60, thresholds 2 to 10")
	case h.Timeout >= h.Interval:
		return nil, core.Fail("ValidationError", "health check timeout must be less than the interval")
	}
	c.Check = h
	return &classic.ConfigureHealthCheckOutput{HealthCheck: h.show()}, nil
}

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
		// It is not an error if an existing instance is not registered.
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
	c, err := svc.onlyClassic(in.LoadBalancerNames)
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
	c, err := svc.onlyClassic(in.LoadBalancerNames)
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
