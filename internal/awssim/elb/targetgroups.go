package elb

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Attributes of target groups with an effect in the simulation.
const (
	deregistrationDelay = "deregistration_delay.timeout_seconds"
	drainingInterval    = "target_health_state.unhealthy.draining_interval_seconds"
	terminateUnhealthy  = "target_health_state.unhealthy.connection_termination.enabled"
)

func (svc *Service) simulateTargetGroups() {
	core.On(svc.Account, svc.createTargetGroup, "Name", "Port", "Protocol", "TargetType", "VpcId", "IpAddressType", "Tags", "HealthCheckEnabled",
		"HealthCheckIntervalSeconds", "HealthCheckPath", "HealthCheckPort", "HealthCheckProtocol", "HealthCheckTimeoutSeconds",
		"HealthyThresholdCount", "UnhealthyThresholdCount", "Matcher")
	core.On(svc.Account, svc.describeTargetGroups, "LoadBalancerArn", "Names", "TargetGroupArns", "Marker", "PageSize")
	core.On(svc.Account, svc.modifyTargetGroup, "TargetGroupArn", "HealthCheckEnabled", "HealthCheckIntervalSeconds", "HealthCheckPath", "HealthCheckPort",
		"HealthCheckProtocol", "HealthCheckTimeoutSeconds", "HealthyThresholdCount", "UnhealthyThresholdCount", "Matcher")
	core.On(svc.Account, svc.describeTargetGroupAttributes, "TargetGroupArn")
	core.On(svc.Account, svc.modifyTargetGroupAttributes, "TargetGroupArn", "Attributes")
	core.On(svc.Account, svc.deleteTargetGroup, "TargetGroupArn")
	core.On(svc.Account, svc.registerTargets, "TargetGroupArn", "Targets")
	core.On(svc.Account, svc.deregisterTargets, "TargetGroupArn", "Targets")
	core.On(svc.Account, svc.describeTargetHealth, "TargetGroupArn", "Targets")
}

func noTargetGroup(id string) error {
	return &types.TargetGroupNotFoundException{Message: aws.String("Target group '" + id + "' not found")}
}

// targetGroup returns a target group by its ARN.
func (svc *Service) targetGroup(arn *string) (*TargetGroup, error) {
	return byARN(svc, svc.state.TargetGroups, "target group", arn, noTargetGroup)
}

func (svc *Service) createTargetGroup(in *elb.CreateTargetGroupInput) (*elb.CreateTargetGroupOutput, error) {
	g := &TargetGroup{
		Name: aws.ToString(in.Name), VPC: aws.ToString(in.VpcId), Protocol: string(in.Protocol), IPType: string(in.IpAddressType),
		Port: aws.ToInt32(in.Port), Targets: []*Target{}, Attributes: map[string]string{},
	}
	if err := checkName("target group", g.Name); err != nil {
		return nil, err
	}
	if t := in.TargetType; t != "" && t != types.TargetTypeEnumInstance {
		return nil, core.NotSimulated("CreateTargetGroup: target type %s", t)
	}
	if err := svc.checkTargetGroup(g); err != nil {
		return nil, err
	}
	g.Check = HealthCheck{Protocol: "TCP", Port: "traffic-port", Interval: 30, Timeout: 10, Healthy: 5, Unhealthy: 2}
	if strings.HasPrefix(g.Protocol, "HTTP") {
		g.Check.Protocol = "HTTP"
	}
	change := &elb.ModifyTargetGroupInput{
		HealthCheckEnabled: in.HealthCheckEnabled, HealthCheckIntervalSeconds: in.HealthCheckIntervalSeconds, HealthCheckPath: in.HealthCheckPath,
		HealthCheckPort: in.HealthCheckPort, HealthCheckProtocol: in.HealthCheckProtocol, HealthCheckTimeoutSeconds: in.HealthCheckTimeoutSeconds,
		HealthyThresholdCount: in.HealthyThresholdCount, UnhealthyThresholdCount: in.UnhealthyThresholdCount, Matcher: in.Matcher,
	}
	var err error
	if g.Check, err = g.changedCheck(change); err != nil {
		return nil, err
	}
	if g.Tags, err = readTags(nil, in.Tags); err != nil {
		return nil, err
	}
	g.Attributes = targetGroupDefaults(g.Protocol)
	return svc.keepTargetGroup(g)
}

// keepTargetGroup creates a target group, or returns the existing one with the same name
// and settings.
func (svc *Service) keepTargetGroup(g *TargetGroup) (*elb.CreateTargetGroupOutput, error) {
	for _, old := range svc.state.TargetGroups {
		if old.Name != g.Name {
			continue
		}
		// Tags count as settings, as for load balancers.
		same := old.VPC == g.VPC && old.Protocol == g.Protocol && old.IPType == g.IPType && old.Port == g.Port && old.Check == g.Check && maps.Equal(old.Tags, g.Tags)
		if !same {
			return nil, &types.DuplicateTargetGroupNameException{
				Message: aws.String("A target group with the same name '" + g.Name + "' exists, but with different settings"),
			}
		}
		return &elb.CreateTargetGroupOutput{TargetGroups: []types.TargetGroup{svc.showTargetGroup(old)}}, nil
	}
	if len(svc.state.TargetGroups) >= 3000 {
		return nil, core.Fail("TooManyTargetGroups", "the maximum number of target groups has been reached")
	}
	g.ARN = svc.RegionalARN("elasticloadbalancing", "targetgroup/"+g.Name+"/"+svc.Hash())
	g.Born = svc.Now()
	svc.state.TargetGroups[g.ARN] = g
	return &elb.CreateTargetGroupOutput{TargetGroups: []types.TargetGroup{svc.showTargetGroup(g)}}, nil
}

// checkTargetGroup validates port, protocol, VPC and address type of a target group.
func (svc *Service) checkTargetGroup(g *TargetGroup) error {
	if !slices.Contains([]string{"TCP", "TLS", "UDP", "TCP_UDP", "HTTP", "HTTPS"}, g.Protocol) {
		return core.Fail("ValidationError", "protocol '%s' is not valid for a target group of instances", g.Protocol)
	}
	if g.Port < 1 || g.Port > 65535 {
		return core.Fail("ValidationError", "port '%d' must be between 1 and 65535", g.Port)
	}
	vpc := svc.ec2.VPC(g.VPC)
	if vpc == nil || !svc.ec2.Known(vpc.Thing) {
		return core.Fail("ValidationError", "the VPC ID '%s' is not found", g.VPC)
	}
	switch g.IPType {
	case "":
		g.IPType = "ipv4"
	case "ipv4":
	case "ipv6":
		// Stricter than documented: the VPC must have IPv6 already.
		if vpc.IPv6 == nil {
			return core.Fail("InvalidConfigurationRequest", "VPC '%s' has no IPv6 CIDR block", g.VPC)
		}
	default:
		return core.Fail("ValidationError", "IP address type '%s' is not valid", g.IPType)
	}
	return nil
}

// targetGroupDefaults returns the attributes of a new target group.
func targetGroupDefaults(protocol string) map[string]string {
	d := map[string]string{
		deregistrationDelay: "300", "stickiness.enabled": "false", crossZone: "use_load_balancer_configuration",
		"target_group_health.dns_failover.minimum_healthy_targets.count":                 "1",
		"target_group_health.dns_failover.minimum_healthy_targets.percentage":            "off",
		"target_group_health.unhealthy_state_routing.minimum_healthy_targets.count":      "1",
		"target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage": "off",
	}
	if strings.HasPrefix(protocol, "HTTP") {
		d["stickiness.type"], d["load_balancing.algorithm.type"] = "lb_cookie", "round_robin"
		return d
	}
	udp := strings.Contains(protocol, "UDP")
	maps.Copy(d, map[string]string{
		"stickiness.type": "source_ip", "proxy_protocol_v2.enabled": "false", "preserve_client_ip.enabled": "true",
		"deregistration_delay.connection_termination.enabled": strconv.FormatBool(udp),
		terminateUnhealthy: strconv.FormatBool(!udp), drainingInterval: "",
	})
	return d
}

// changedCheck returns the changed health check of a target group.
func (g *TargetGroup) changedCheck(in *elb.ModifyTargetGroupInput) (HealthCheck, error) {
	c := g.Check
	if in.HealthCheckProtocol != "" {
		c.Protocol = string(in.HealthCheckProtocol)
	}
	if c.Protocol == "TCP" { // it drops them (github.com/hashicorp/terraform-provider-aws/issues/46011), and refuses those of the call
		c.Path, c.Codes = "", ""
	}
	core.Set(&c.Port, in.HealthCheckPort)
	core.Set(&c.Path, in.HealthCheckPath)
	core.Set(&c.Interval, in.HealthCheckIntervalSeconds)
	if in.HealthCheckTimeoutSeconds == nil && c.Protocol == "HTTP" && c.Protocol != g.Check.Protocol {
		c.Timeout = 6
	}
	core.Set(&c.Timeout, in.HealthCheckTimeoutSeconds)
	core.Set(&c.Healthy, in.HealthyThresholdCount)
	core.Set(&c.Unhealthy, in.UnhealthyThresholdCount)
	if in.Matcher != nil {
		if err := core.Only("Matcher", in.Matcher, "HttpCode"); err != nil {
			return c, err
		}
		core.Set(&c.Codes, in.Matcher.HttpCode)
	}
	if strings.HasPrefix(c.Protocol, "HTTP") {
		c.Path = cmp.Or(c.Path, "/")
		c.Codes = cmp.Or(c.Codes, "200-399")
	}
	if in.HealthCheckEnabled != nil && !*in.HealthCheckEnabled {
		return c, core.Fail("InvalidConfigurationRequest", "health checks of a target group of instances cannot be disabled")
	}
	return c, c.check(g.Protocol)
}

// check validates a health check for a protocol.
func (c HealthCheck) check(protocol string) error {
	within := func(n, least, most int32) bool { return n >= least && n <= most }
	port, err := strconv.Atoi(c.Port)
	switch {
	case !slices.Contains([]string{"TCP", "HTTP", "HTTPS"}, c.Protocol):
		return core.Fail("ValidationError", "health check protocol '%s' is not supported", c.Protocol)
	case c.Protocol == "TCP" && strings.HasPrefix(protocol, "HTTP"):
		return core.Fail("InvalidConfigurationRequest", "health check protocol 'TCP' is not supported for target groups of protocol '%s'", protocol)
	case c.Port != "traffic-port" && (err != nil || port < 1 || port > 65535):
		return core.Fail("ValidationError", "health check port '%s' must be 'traffic-port' or between 1 and 65535", c.Port)
	case c.Protocol == "TCP" && (c.Path != "" || c.Codes != ""):
		return core.Fail("InvalidConfigurationRequest", "health check path and matcher are not supported for health check protocol 'TCP'")
	case c.Path != "" && (!strings.HasPrefix(c.Path, "/") || len(c.Path) > 1024):
		return core.Fail("ValidationError", "health check path '%s' is not valid", c.Path)
	case !within(c.Interval, 5, 300) || !within(c.Timeout, 2, 120):
		return core.Fail("ValidationError", "health check interval must be between 5 and 300 seconds, timeout between 2 and 120")
	case c.Timeout > c.Interval: // both were 10 seconds of all network load balancers, before they could be chosen
		return core.Fail("ValidationError", "health check timeout '%d' must be smaller than or equal to the interval '%d'", c.Timeout, c.Interval)
	case !within(c.Healthy, 2, 10) || !within(c.Unhealthy, 2, 10):
		return core.Fail("ValidationError", "health check thresholds must be between 2 and 10")
	}
	return nil
}

func (svc *Service) showTargetGroup(g *TargetGroup) types.TargetGroup {
	t := types.TargetGroup{
		TargetGroupArn: aws.String(g.ARN), TargetGroupName: aws.String(g.Name), Port: aws.Int32(g.Port), Protocol: types.ProtocolEnum(g.Protocol),
		TargetType: types.TargetTypeEnumInstance, VpcId: aws.String(g.VPC), IpAddressType: types.TargetGroupIpAddressTypeEnum(g.IPType),
		HealthCheckEnabled: aws.Bool(true), HealthCheckProtocol: types.ProtocolEnum(g.Check.Protocol), HealthCheckPort: aws.String(g.Check.Port),
		HealthCheckIntervalSeconds: aws.Int32(g.Check.Interval), HealthCheckTimeoutSeconds: aws.Int32(g.Check.Timeout),
		HealthyThresholdCount: aws.Int32(g.Check.Healthy), UnhealthyThresholdCount: aws.Int32(g.Check.Unhealthy), LoadBalancerArns: []string{},
	}
	if g.Check.Path != "" {
		t.HealthCheckPath = aws.String(g.Check.Path)
		t.Matcher = &types.Matcher{HttpCode: aws.String(g.Check.Codes)}
	}
	if b := svc.userOf(g); b != nil {
		t.LoadBalancerArns = []string{b.ARN}
	}
	return t
}

// userOf returns the load balancer that uses a target group, or nil.
func (svc *Service) userOf(g *TargetGroup) *LoadBalancer {
	for _, l := range svc.state.Listeners {
		if l.TargetGroup == g.ARN {
			return svc.state.LoadBalancers[l.LoadBalancer]
		}
	}
	return nil
}

func (svc *Service) describeTargetGroups(in *elb.DescribeTargetGroupsInput) (*elb.DescribeTargetGroupsOutput, error) {
	given := 0
	for _, is := range []bool{in.LoadBalancerArn != nil, len(in.Names) > 0, len(in.TargetGroupArns) > 0} {
		if is {
			given++
		}
	}
	if given > 1 {
		return nil, core.Fail("ValidationError", "only one of load balancer ARN, target group names and target group ARNs can be specified")
	}
	if in.LoadBalancerArn != nil {
		if _, err := svc.loadBalancer(in.LoadBalancerArn); err != nil {
			return nil, err
		}
	}
	found := map[string]bool{}
	var list []types.TargetGroup
	for _, g := range core.ByKey(svc.state.TargetGroups) {
		user := svc.userOf(g)
		asked := given == 0 || slices.Contains(in.Names, g.Name) || slices.Contains(in.TargetGroupArns, g.ARN) ||
			in.LoadBalancerArn != nil && user != nil && user.ARN == *in.LoadBalancerArn
		if asked && svc.Visible(g.Born) {
			found[g.Name], found[g.ARN] = true, true
			list = append(list, svc.showTargetGroup(g))
		}
	}
	for _, id := range slices.Concat(in.Names, in.TargetGroupArns) {
		if !found[id] {
			return nil, noTargetGroup(id)
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.PageSize, 400)
	return &elb.DescribeTargetGroupsOutput{TargetGroups: part, NextMarker: next}, err
}

func (svc *Service) modifyTargetGroup(in *elb.ModifyTargetGroupInput) (*elb.ModifyTargetGroupOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	check, err := g.changedCheck(in)
	if err != nil {
		return nil, err
	}
	g.Check = check
	return &elb.ModifyTargetGroupOutput{TargetGroups: []types.TargetGroup{svc.showTargetGroup(g)}}, nil
}

func (g *TargetGroup) showAttributes() []types.TargetGroupAttribute {
	return core.WriteTags(g.Attributes, func(k, v *string) types.TargetGroupAttribute { return types.TargetGroupAttribute{Key: k, Value: v} })
}

func (svc *Service) describeTargetGroupAttributes(in *elb.DescribeTargetGroupAttributesInput) (*elb.DescribeTargetGroupAttributesOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	return &elb.DescribeTargetGroupAttributesOutput{Attributes: g.showAttributes()}, nil
}

func (svc *Service) modifyTargetGroupAttributes(in *elb.ModifyTargetGroupAttributesInput) (*elb.ModifyTargetGroupAttributesOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	changed := maps.Clone(g.Attributes)
	for _, at := range in.Attributes {
		key, value := aws.ToString(at.Key), aws.ToString(at.Value)
		if err := checkAttribute(g.Attributes, "target group", key, value); err != nil {
			return nil, err
		}
		if strings.Contains(g.Protocol, "UDP") && (key == "preserve_client_ip.enabled" && value != "true" || key == terminateUnhealthy && value != "false") {
			return nil, core.Fail("InvalidConfigurationRequest", "attribute '%s' cannot be '%s' for protocol '%s'", key, value, g.Protocol)
		}
		changed[key] = value
	}
	if changed[drainingInterval] != "" && changed[drainingInterval] != "0" && changed[terminateUnhealthy] == "true" {
		return nil, core.Fail("InvalidConfigurationRequest", "'%s' can only be set while '%s' is false", drainingInterval, terminateUnhealthy)
	}
	g.Attributes = changed
	return &elb.ModifyTargetGroupAttributesOutput{Attributes: g.showAttributes()}, nil
}

func (svc *Service) deleteTargetGroup(in *elb.DeleteTargetGroupInput) (*elb.DeleteTargetGroupOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if errors.As(err, new(*types.TargetGroupNotFoundException)) {
		return &elb.DeleteTargetGroupOutput{}, nil
	}
	if err != nil {
		return nil, err
	}
	// A target group may be in use for a moment after its listener is deleted.
	if !g.Used.IsZero() || !g.Freed.IsZero() && !svc.Visible(g.Freed) {
		return nil, &types.ResourceInUseException{Message: aws.String("Target group '" + g.ARN + "' is currently in use by a listener or a rule")}
	}
	delete(svc.state.TargetGroups, g.ARN)
	return &elb.DeleteTargetGroupOutput{}, nil
}
