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

// Attributes with an effect in the simulation.
const (
	deletionProtection = "deletion_protection.enabled"
	crossZone          = "load_balancing.cross_zone.enabled"
)

// loadBalancerDefaults returns the attributes of a new load balancer.
func loadBalancerDefaults(kind, scheme string) map[string]string {
	d := map[string]string{
		deletionProtection: "false", crossZone: "false", "zonal_shift.config.enabled": "false",
		"access_logs.s3.enabled": "false", "access_logs.s3.bucket": "", "access_logs.s3.prefix": "",
		"ipv6.deny_all_igw_traffic": strconv.FormatBool(scheme == "internal"),
	}
	if kind == typeNetwork {
		d["dns_record.client_routing_policy"] = "any_availability_zone"
		d["secondary_ips.auto_assigned.per_subnet"] = "0"
		return d
	}
	d[crossZone] = "true"
	maps.Copy(d, map[string]string{
		"idle_timeout.timeout_seconds": "60", "client_keep_alive.seconds": "3600", "routing.http2.enabled": "true",
		"routing.http.desync_mitigation_mode": "defensive", "routing.http.drop_invalid_header_fields.enabled": "false",
		"routing.http.preserve_host_header.enabled": "false", "routing.http.xff_client_port.enabled": "false",
		"routing.http.xff_header_processing.mode": "append", "waf.fail_open.enabled": "false",
	})
	return d
}

// attributeRules returns the valid values of an attribute other than "true" and "false":
// names, or a range of numbers.
func attributeRules(key string) (values []string, least, most int) {
	switch key {
	case "dns_record.client_routing_policy":
		return []string{"any_availability_zone", "availability_zone_affinity", "partial_availability_zone_affinity"}, 0, 0
	case "secondary_ips.auto_assigned.per_subnet":
		return nil, 0, 7
	case "idle_timeout.timeout_seconds":
		return nil, 1, 4000
	case "client_keep_alive.seconds":
		return nil, 60, 604800
	case "deregistration_delay.timeout_seconds":
		return nil, 0, 3600
	case drainingInterval:
		return nil, 0, 360000
	case "routing.http.desync_mitigation_mode":
		return []string{"monitor", "defensive", "strictest"}, 0, 0
	case "routing.http.xff_header_processing.mode":
		return []string{"append", "preserve", "remove"}, 0, 0
	case "stickiness.type":
		return []string{"source_ip", "lb_cookie", "app_cookie"}, 0, 0
	}
	return []string{"true", "false"}, 0, 0
}

// checkAttribute validates a change of an attribute; has are all attributes of the
// resource.
func checkAttribute(has map[string]string, what, key, value string) error {
	if _, known := has[key]; !known {
		return core.Fail("ValidationError", "%s attribute key '%s' is not supported", what, key)
	}
	if strings.HasPrefix(key, "access_logs.") || strings.HasPrefix(key, "target_group_health.") || key == "load_balancing.algorithm.type" {
		return core.NotSimulated("%s attribute %s", what, key)
	}
	values, least, most := attributeRules(key)
	if key == crossZone && what == "target group" {
		values = append(values, "use_load_balancer_configuration")
	}
	if slices.Contains(values, value) {
		return nil
	}
	if n, err := strconv.Atoi(value); len(values) == 0 && err == nil && n >= least && n <= most {
		return nil
	}
	return core.Fail("ValidationError", "%s attribute value '%s' is not valid for '%s'", what, value, key)
}

func (b *LoadBalancer) showAttributes() []types.LoadBalancerAttribute {
	return core.WriteTags(b.Attributes, func(k, v *string) types.LoadBalancerAttribute { return types.LoadBalancerAttribute{Key: k, Value: v} })
}

func (svc *Service) describeLoadBalancerAttributes(in *elb.DescribeLoadBalancerAttributesInput) (*elb.DescribeLoadBalancerAttributesOutput, error) {
	b, err := svc.loadBalancer(in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	return &elb.DescribeLoadBalancerAttributesOutput{Attributes: b.showAttributes()}, nil
}

func (svc *Service) modifyLoadBalancerAttributes(in *elb.ModifyLoadBalancerAttributesInput) (*elb.ModifyLoadBalancerAttributesOutput, error) {
	b, err := svc.loadBalancer(in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	changed := maps.Clone(b.Attributes)
	for _, at := range in.Attributes {
		key, value := aws.ToString(at.Key), aws.ToString(at.Value)
		if err := checkAttribute(b.Attributes, "load balancer", key, value); err != nil {
			return nil, err
		}
		if key == crossZone && b.Type == typeApplication && value != "true" {
			return nil, core.Fail("InvalidConfigurationRequest", "cross-zone load balancing of an application load balancer cannot be turned off")
		}
		changed[key] = value
	}
	b.Attributes = changed
	return &elb.ModifyLoadBalancerAttributesOutput{Attributes: b.showAttributes()}, nil
}

func (svc *Service) setSecurityGroups(in *elb.SetSecurityGroupsInput) (*elb.SetSecurityGroupsOutput, error) {
	b, err := svc.loadBalancer(in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	if b.Type == typeNetwork && len(b.Groups) == 0 {
		return nil, core.Fail("InvalidConfigurationRequest", "security groups cannot be set: the network load balancer was created without any")
	}
	// Whether the last group can be removed is not documented; here it cannot.
	if len(in.SecurityGroups) == 0 {
		return nil, core.Fail("ValidationError", "at least one security group must be specified")
	}
	groups := slices.Sorted(slices.Values(in.SecurityGroups))
	if err := svc.balancerGroups(groups, b.VPC); err != nil {
		return nil, err
	}
	b.Groups = groups
	for _, z := range b.Zones {
		svc.ec2.Regroup(b.owner(z.Subnet), groups)
	}
	return &elb.SetSecurityGroupsOutput{SecurityGroupIds: slices.Clone(groups)}, nil
}

func (svc *Service) setSubnets(in *elb.SetSubnetsInput) (*elb.SetSubnetsOutput, error) {
	b, err := svc.loadBalancer(in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	zones, vpc, err := svc.loadBalancerZones("SetSubnets", b, in.Subnets, in.SubnetMappings)
	if err != nil {
		return nil, err
	}
	if vpc != b.VPC {
		return nil, core.Fail("InvalidConfigurationRequest", "the subnets are not in the VPC '%s' of the load balancer", b.VPC)
	}
	if err := svc.checkAllocations(b, zones); err != nil {
		return nil, err
	}
	changed := &LoadBalancer{Type: b.Type, IPType: cmp.Or(string(in.IpAddressType), b.IPType), Zones: zones}
	if err := svc.checkIPType(changed); err != nil {
		return nil, err
	}
	if err := b.keepsAddresses(zones); err != nil {
		return nil, err
	}
	old := b.Zones
	for i, z := range zones {
		at := slices.IndexFunc(old, func(o LoadBalancerZone) bool { return o.Subnet == z.Subnet })
		if at >= 0 {
			zones[i] = old[at]
			continue
		}
		svc.enter(b, &zones[i])
	}
	for _, o := range old {
		if !slices.ContainsFunc(zones, func(z LoadBalancerZone) bool { return z.Subnet == o.Subnet }) {
			svc.ec2.ReleaseInterfaces(b.owner(o.Subnet), BalancerInterfacesLinger)
		}
	}
	b.Zones, b.IPType = zones, changed.IPType
	return &elb.SetSubnetsOutput{AvailabilityZones: showZones(zones), IpAddressType: types.IpAddressType(b.IPType)}, nil
}

// keepsAddresses returns an error if the elastic IP of an existing zone would change,
// which AWS does not permit.
func (b *LoadBalancer) keepsAddresses(zones []LoadBalancerZone) error {
	for _, z := range zones {
		for _, o := range b.Zones {
			if o.Subnet == z.Subnet && o.Allocation != z.Allocation {
				return core.Fail("InvalidConfigurationRequest", "the address of the load balancer in subnet '%s' cannot be changed", z.Subnet)
			}
		}
	}
	return nil
}

func (svc *Service) deleteLoadBalancer(in *elb.DeleteLoadBalancerInput) (*elb.DeleteLoadBalancerOutput, error) {
	b, err := svc.loadBalancer(in.LoadBalancerArn)
	if errors.As(err, new(*types.LoadBalancerNotFoundException)) {
		return &elb.DeleteLoadBalancerOutput{}, nil
	}
	if err != nil {
		return nil, err
	}
	if b.Attributes[deletionProtection] == "true" {
		return nil, &types.OperationNotPermittedException{
			Message: aws.String("Load balancer '" + b.ARN + "' cannot be deleted because deletion protection is enabled"),
		}
	}
	for _, l := range core.ByKey(svc.state.Listeners) {
		if l.LoadBalancer == b.ARN {
			svc.removeListener(l)
		}
	}
	for _, z := range b.Zones {
		if svc.state.Detaches && b.Type == string(types.LoadBalancerTypeEnumNetwork) {
			svc.ec2.DetachInterfaces(b.owner(z.Subnet), InterfacesDetached)
		} else {
			svc.ec2.ReleaseInterfaces(b.owner(z.Subnet), BalancerInterfacesLinger)
		}
	}
	delete(svc.state.LoadBalancers, b.ARN)
	return &elb.DeleteLoadBalancerOutput{}, nil
}
