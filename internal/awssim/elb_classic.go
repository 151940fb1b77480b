package awssim

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
)

func (a *AWS) simulateClassicELB() {
	on(a, a.createClassic, "LoadBalancerName", "Listeners", "Scheme", "SecurityGroups", "Subnets", "Tags")
	on(a, a.describeClassic, "LoadBalancerNames", "Marker", "PageSize")
	on(a, a.deleteClassic, "LoadBalancerName")
	on(a, a.describeClassicAttributes, "LoadBalancerName")
	on(a, a.modifyClassicAttributes, "LoadBalancerName", "LoadBalancerAttributes")
	on(a, a.configureHealthCheck, "LoadBalancerName", "HealthCheck")
	on(a, a.registerInstances, "LoadBalancerName", "Instances")
	on(a, a.deregisterInstances, "LoadBalancerName", "Instances")
	on(a, a.describeInstanceHealth, "LoadBalancerName", "Instances")
	on(a, a.applySecurityGroups, "LoadBalancerName", "SecurityGroups")
	on(a, a.attachToSubnets, "LoadBalancerName", "Subnets")
	on(a, a.detachFromSubnets, "LoadBalancerName", "Subnets")
	on(a, a.addClassicTags, "LoadBalancerNames", "Tags")
	on(a, a.removeClassicTags, "LoadBalancerNames", "Tags")
	on(a, a.describeClassicTags, "LoadBalancerNames")
}

// classic returns a Classic Load Balancer that a call names.
func (a *AWS) classic(name *string) (*ClassicLoadBalancer, error) {
	c, ok := a.state.ELB.Classic[aws.ToString(name)]
	if !ok {
		return nil, &types.AccessPointNotFoundException{Message: aws.String("There is no ACTIVE Load Balancer named '" + aws.ToString(name) + "'")}
	}
	return c, nil
}

func readClassicTags(old map[string]string, tags []types.Tag) (map[string]string, error) {
	return readTags(elbTagRules(), old, tags, func(t types.Tag) (*string, *string) { return t.Key, t.Value })
}

func (a *AWS) createClassic(in *classic.CreateLoadBalancerInput) (*classic.CreateLoadBalancerOutput, error) {
	c := &ClassicLoadBalancer{
		Name: aws.ToString(in.LoadBalancerName), Groups: slices.Sorted(slices.Values(in.SecurityGroups)), Instances: map[string]time.Time{},
		DrainingTimeout: 300, IdleTimeout: 60, Born: a.now(),
	}
	if err := checkELBName("load balancer", c.Name); err != nil {
		return nil, err
	}
	subnets, err := a.balancerSubnets(in.Subnets)
	if err != nil {
		return nil, err
	}
	for _, s := range subnets {
		c.Subnets = append(c.Subnets, s.ID)
	}
	c.VPC = subnets[0].VPC
	if c.Scheme, err = a.balancerScheme(aws.ToString(in.Scheme), c.VPC); err != nil {
		return nil, err
	}
	if err := a.balancerGroups(c.Groups, c.VPC); err != nil {
		return nil, err
	}
	if len(c.Groups) == 0 {
		c.Groups = a.defaultGroup(c.VPC)
	}
	if c.Listeners, err = readClassicListeners(in.Listeners); err != nil {
		return nil, err
	}
	if c.Tags, err = readClassicTags(nil, in.Tags); err != nil {
		return nil, err
	}
	first := c.Listeners[0]
	c.Check = ClassicHealthCheck{Target: "TCP:" + strconv.Itoa(int(first.InstancePort)), Interval: 30, Timeout: 5, Healthy: 10, Unhealthy: 2}
	return a.keepClassic(c)
}

// keepClassic makes a load balancer, or answers with the one that has its name
// and its settings. AWS counts tags as settings.
func (a *AWS) keepClassic(c *ClassicLoadBalancer) (*classic.CreateLoadBalancerOutput, error) {
	if old, exists := a.state.ELB.Classic[c.Name]; exists {
		same := old.Scheme == c.Scheme && slices.Equal(old.Subnets, c.Subnets) && slices.Equal(old.Groups, c.Groups) &&
			slices.Equal(old.Listeners, c.Listeners) && maps.Equal(old.Tags, c.Tags)
		if !same {
			return nil, &types.DuplicateAccessPointNameException{Message: aws.String("Load Balancer named " + c.Name + " already exists and it is configured with different parameters.")}
		}
		return &classic.CreateLoadBalancerOutput{DNSName: aws.String(old.DNSName)}, nil
	}
	if len(a.state.ELB.Classic) >= 20 {
		return nil, fail("TooManyLoadBalancers", "exceeded quota of account")
	}
	c.DNSName = c.Name + "-" + strconv.Itoa(1_000_000_000+a.nextSerial()) + "." + a.o.Region + ".elb.amazonaws.com"
	if c.Scheme == "internal" {
		c.DNSName = "internal-" + c.DNSName
	}
	for _, s := range c.Subnets {
		a.enterClassic(c, s)
	}
	a.state.ELB.Classic[c.Name] = c
	return &classic.CreateLoadBalancerOutput{DNSName: aws.String(c.DNSName)}, nil
}

// owner is what the interface of a load balancer in a subnet says it serves.
func (c *ClassicLoadBalancer) owner(subnet string) string { return "ELB " + c.Name + " " + subnet }

// enterClassic gives a load balancer its interface in a subnet.
func (a *AWS) enterClassic(c *ClassicLoadBalancer, subnet string) {
	i := a.newInterface(subnet, "ELB "+c.Name, "interface", c.owner(subnet), slices.Clone(c.Groups))
	i.Managed = true
	if c.Scheme == schemeInternetFacing {
		i.PublicIP = a.publicIP()
	}
}

func readClassicListeners(in []types.Listener) (out []ClassicListener, err error) {
	if len(in) == 0 {
		return nil, fail("ValidationError", "at least one listener must be specified")
	}
	for _, l := range in {
		if err := only("listener", &l, "Protocol", "InstanceProtocol", "LoadBalancerPort", "InstancePort"); err != nil {
			return nil, err
		}
		c := ClassicListener{Protocol: strings.ToUpper(aws.ToString(l.Protocol)), InstanceProtocol: strings.ToUpper(aws.ToString(l.InstanceProtocol)), Port: l.LoadBalancerPort, InstancePort: aws.ToInt32(l.InstancePort)}
		c.InstanceProtocol = first(c.InstanceProtocol, c.Protocol)
		layer := func(p string) int { return 1 + slices.Index([]string{"TCP", "SSL", "HTTP", "HTTPS"}, p)/2 }
		switch {
		case c.Protocol == "SSL" || c.Protocol == "HTTPS":
			return nil, fail("InvalidConfigurationRequest", "a certificate is required for protocol '%s'", c.Protocol)
		case c.Protocol != "TCP" && c.Protocol != "HTTP" || !slices.Contains([]string{"TCP", "SSL", "HTTP", "HTTPS"}, c.InstanceProtocol):
			return nil, fail("UnsupportedProtocol", "the specified protocol '%s' or its instance protocol is not supported", c.Protocol)
		case layer(c.Protocol) != layer(c.InstanceProtocol):
			return nil, fail("InvalidConfigurationRequest", "protocols '%s' and '%s' are not of the same layer", c.Protocol, c.InstanceProtocol)
		case c.Port < 1 || c.Port > 65535 || c.InstancePort < 1 || c.InstancePort > 65535:
			return nil, fail("ValidationError", "ports must be between 1 and 65535")
		case slices.ContainsFunc(out, func(o ClassicListener) bool { return o.Port == c.Port }):
			return nil, fail("DuplicateListener", "a listener already exists on port %d", c.Port)
		}
		out = append(out, c)
	}
	return out, nil
}

func (a *AWS) describeClassic(in *classic.DescribeLoadBalancersInput) (*classic.DescribeLoadBalancersOutput, error) {
	var list []types.LoadBalancerDescription
	for _, c := range byKey(a.state.ELB.Classic) {
		if a.visible(c.Born) && (len(in.LoadBalancerNames) == 0 || slices.Contains(in.LoadBalancerNames, c.Name)) {
			list = append(list, a.showClassic(c))
		}
	}
	for _, name := range in.LoadBalancerNames {
		if !slices.ContainsFunc(list, func(d types.LoadBalancerDescription) bool { return *d.LoadBalancerName == name }) {
			return nil, &types.AccessPointNotFoundException{Message: aws.String("There is no ACTIVE Load Balancer named '" + name + "'")}
		}
	}
	part, next, err := page(a, list, in.Marker, in.PageSize, 400)
	return &classic.DescribeLoadBalancersOutput{LoadBalancerDescriptions: part, NextMarker: next}, err
}

func (a *AWS) showClassic(c *ClassicLoadBalancer) types.LoadBalancerDescription {
	d := types.LoadBalancerDescription{
		LoadBalancerName: aws.String(c.Name), Scheme: aws.String(c.Scheme), VPCId: aws.String(c.VPC), DNSName: aws.String(c.DNSName),
		CanonicalHostedZoneName: aws.String(c.DNSName), CanonicalHostedZoneNameID: aws.String("Z35SXDOTRQ7X7K"), CreatedTime: aws.Time(c.Born),
		Subnets: slices.Clone(c.Subnets), SecurityGroups: slices.Clone(c.Groups), HealthCheck: c.Check.show(), Policies: &types.Policies{},
	}
	for _, s := range c.Subnets {
		d.AvailabilityZones = append(d.AvailabilityZones, a.zoneOf(s))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Instances)) {
		d.Instances = append(d.Instances, types.Instance{InstanceId: aws.String(id)})
	}
	for _, l := range c.Listeners {
		d.ListenerDescriptions = append(d.ListenerDescriptions, types.ListenerDescription{Listener: &types.Listener{
			Protocol: aws.String(l.Protocol), LoadBalancerPort: l.Port, InstanceProtocol: aws.String(l.InstanceProtocol), InstancePort: aws.Int32(l.InstancePort),
		}})
	}
	return d
}

func (a *AWS) deleteClassic(in *classic.DeleteLoadBalancerInput) (*classic.DeleteLoadBalancerOutput, error) {
	if c, ok := a.state.ELB.Classic[aws.ToString(in.LoadBalancerName)]; ok {
		for _, s := range c.Subnets {
			a.releaseInterfaces(c.owner(s), BalancerInterfacesLinger)
		}
		delete(a.state.ELB.Classic, c.Name)
	}
	return &classic.DeleteLoadBalancerOutput{}, nil // also when there is none
}

func (h ClassicHealthCheck) show() *types.HealthCheck {
	return &types.HealthCheck{
		Target: aws.String(h.Target), Interval: aws.Int32(h.Interval), Timeout: aws.Int32(h.Timeout),
		HealthyThreshold: aws.Int32(h.Healthy), UnhealthyThreshold: aws.Int32(h.Unhealthy),
	}
}

func (a *AWS) configureHealthCheck(in *classic.ConfigureHealthCheckInput) (*classic.ConfigureHealthCheckOutput, error) {
	c, err := a.classic(in.LoadBalancerName)
	if err != nil {
		return nil, err
	}
	if in.HealthCheck == nil {
		return nil, fail("ValidationError", "a health check must be specified")
	}
	h := ClassicHealthCheck{
		Target: aws.ToString(in.HealthCheck.Target), Interval: aws.ToInt32(in.HealthCheck.Interval), Timeout: aws.ToInt32(in.HealthCheck.Timeout),
		Healthy: aws.ToInt32(in.HealthCheck.HealthyThreshold), Unhealthy: aws.ToInt32(in.HealthCheck.UnhealthyThreshold),
	}
	within := func(n, least, most int32) bool { return n >= least && n <= most }
	switch {
	case !regexp.MustCompile(`^((TCP|SSL):[0-9]{1,5}|HTTPS?:[0-9]{1,5}/.*)$`).MatchString(h.Target):
		return nil, fail("ValidationError", "health check target '%s' is not valid", h.Target)
	case !within(h.Interval, 5, 300) || !within(h.Timeout, 2, 60) || !within(h.Healthy, 2, 10) || !within(h.Unhealthy, 2, 10):
		return nil, fail("ValidationError", "health check interval must be 5 to 300, timeout 2 to 60, thresholds 2 to 10")
	case h.Timeout >= h.Interval:
		return nil, fail("ValidationError", "health check timeout must be less than the interval")
	}
	c.Check = h
	return &classic.ConfigureHealthCheckOutput{HealthCheck: h.show()}, nil
}
