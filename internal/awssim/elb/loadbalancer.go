package elb

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

const (
	typeNetwork          = "network"
	typeApplication      = "application"
	schemeInternetFacing = "internet-facing"
)

func (svc *Service) simulate() {
	core.On(svc.Account, svc.createLoadBalancer, "Name", "Type", "Scheme", "Subnets", "SubnetMappings", "SecurityGroups", "IpAddressType", "Tags")
	core.On(svc.Account, svc.describeLoadBalancers, "LoadBalancerArns", "Names", "Marker", "PageSize")
	core.On(svc.Account, svc.describeLoadBalancerAttributes, "LoadBalancerArn")
	core.On(svc.Account, svc.modifyLoadBalancerAttributes, "LoadBalancerArn", "Attributes")
	core.On(svc.Account, svc.setSecurityGroups, "LoadBalancerArn", "SecurityGroups")
	core.On(svc.Account, svc.setSubnets, "LoadBalancerArn", "Subnets", "SubnetMappings", "IpAddressType")
	core.On(svc.Account, svc.deleteLoadBalancer, "LoadBalancerArn")
	svc.simulateTargetGroups()
	svc.simulateListeners()
	svc.simulateTags()
	svc.simulateClassic()
}

// Settle removes targets after draining or termination.
func (svc *Service) Settle() {
	for _, g := range svc.state.TargetGroups {
		g.Targets = slices.DeleteFunc(g.Targets, func(t *Target) bool {
			return !t.Drained.IsZero() && !svc.Now().Before(t.Drained) || svc.ec2.InstanceGone(t.ID)
		})
	}
	for _, c := range svc.state.Classic {
		maps.DeleteFunc(c.Instances, func(id string, _ time.Time) bool { return svc.ec2.InstanceGone(id) })
	}
}

func noLoadBalancer(id string) error {
	return &types.LoadBalancerNotFoundException{Message: aws.String("Load balancer '" + id + "' not found")}
}

// loadBalancer returns a load balancer by its ARN.
func (svc *Service) loadBalancer(arn *string) (*LoadBalancer, error) {
	return byARN(svc, svc.state.LoadBalancers, "load balancer", arn, noLoadBalancer)
}

func (svc *Service) createLoadBalancer(in *elb.CreateLoadBalancerInput) (*elb.CreateLoadBalancerOutput, error) {
	b, err := svc.newLoadBalancer(in)
	if err != nil {
		return nil, err
	}
	for _, old := range svc.state.LoadBalancers {
		if old.Name != b.Name {
			continue
		}
		// What counts as settings is not documented. Classic load balancers count tags,
		// so tags count here too.
		if !old.like(b) {
			return nil, &types.DuplicateLoadBalancerNameException{
				Message: aws.String("A load balancer with the same name '" + b.Name + "' exists, but with different settings"),
			}
		}
		return &elb.CreateLoadBalancerOutput{LoadBalancers: []types.LoadBalancer{svc.showLoadBalancer(old)}}, nil
	}
	if svc.count(b.Type) >= map[string]int{"network": svc.Quotas().Network, "application": svc.Quotas().Application}[b.Type] {
		return nil, core.Fail("TooManyLoadBalancers", "the maximum number of load balancers has been reached")
	}
	svc.place(b)
	svc.state.LoadBalancers[b.ARN] = b
	return &elb.CreateLoadBalancerOutput{LoadBalancers: []types.LoadBalancer{svc.showLoadBalancer(b)}}, nil
}

// count returns the number of load balancers of a type.
func (svc *Service) count(kind string) (n int) {
	for _, b := range svc.state.LoadBalancers {
		if b.Type == kind {
			n++
		}
	}
	return n
}

// newLoadBalancer validates a call and returns the load balancer, without the fields that
// are set at creation.
func (svc *Service) newLoadBalancer(in *elb.CreateLoadBalancerInput) (*LoadBalancer, error) {
	b := &LoadBalancer{
		Name:   aws.ToString(in.Name),
		Type:   string(in.Type),
		IPType: string(in.IpAddressType),
		Groups: slices.Sorted(slices.Values(in.SecurityGroups)),
	}
	if err := checkName("load balancer", b.Name); err != nil {
		return nil, err
	}
	switch b.Type {
	case "":
		b.Type = typeApplication
	case typeNetwork, typeApplication:
	default:
		return nil, core.NotSimulated("CreateLoadBalancer: type %s", b.Type)
	}
	var err error
	if b.Zones, b.VPC, err = svc.loadBalancerZones("CreateLoadBalancer", b, in.Subnets, in.SubnetMappings); err != nil {
		return nil, err
	}
	if b.Scheme, err = svc.balancerScheme(string(in.Scheme), b.VPC); err != nil {
		return nil, err
	}
	if err := svc.checkAllocations(b, b.Zones); err != nil {
		return nil, err
	}
	if err := svc.balancerGroups(b.Groups, b.VPC); err != nil {
		return nil, err
	}
	if b.Type == typeApplication && len(b.Groups) == 0 {
		b.Groups = svc.ec2.DefaultGroup(b.VPC)
	}
	if err := svc.checkIPType(b); err != nil {
		return nil, err
	}
	b.Tags, err = readTags(nil, in.Tags)
	b.Attributes = loadBalancerDefaults(b.Type, b.Scheme)
	return b, err
}

// checkIPType validates the address type of a load balancer against its subnets.
func (svc *Service) checkIPType(b *LoadBalancer) error {
	switch b.IPType {
	case "":
		b.IPType = "ipv4"
	case "ipv4":
	case "dualstack":
		for _, z := range b.Zones {
			if svc.ec2.Subnet(z.Subnet).IPv6CIDR == "" {
				return core.Fail("InvalidSubnet", "subnet '%s' must have an associated IPv6 CIDR block", z.Subnet)
			}
		}
	default:
		return core.Fail("ValidationError", "IP address type '%s' is not valid for load balancers of type '%s'", b.IPType, b.Type)
	}
	return nil
}

// loadBalancerZones returns the zones of a load balancer.
func (svc *Service) loadBalancerZones(
	op string,
	b *LoadBalancer,
	subnets []string,
	mappings []types.SubnetMapping,
) (zones []LoadBalancerZone, vpc string, err error) {
	if len(subnets) > 0 && len(mappings) > 0 {
		return nil, "", core.Fail("ValidationError", "you can specify subnets or subnet mappings, not both")
	}
	allocations := map[string]string{}
	for _, m := range mappings {
		if err := core.Only(op, &m, "SubnetId", "AllocationId"); err != nil {
			return nil, "", err
		}
		subnets = append(subnets, aws.ToString(m.SubnetId))
		allocations[aws.ToString(m.SubnetId)] = aws.ToString(m.AllocationId)
	}
	found, err := svc.balancerSubnets(subnets)
	if err != nil {
		return nil, "", err
	}
	if b.Type == typeApplication && len(found) < 2 {
		return nil, "", core.Fail("ValidationError", "at least two subnets in two different Availability Zones must be specified")
	}
	for _, s := range found {
		zones = append(zones, LoadBalancerZone{Zone: s.Zone, Subnet: s.ID, Allocation: allocations[s.ID]})
	}
	return zones, found[0].VPC, nil
}

// checkAllocations validates the elastic IPs of a load balancer.
func (svc *Service) checkAllocations(b *LoadBalancer, zones []LoadBalancerZone) error {
	for i, z := range zones {
		if z.Allocation == "" {
			continue
		}
		if b.Scheme != schemeInternetFacing || b.Type != typeNetwork {
			return core.Fail("InvalidConfigurationRequest", "elastic IP addresses are only for internet-facing network load balancers")
		}
		address := svc.ec2.Address(z.Allocation)
		if address == nil || !svc.ec2.Known(address.Thing) {
			return core.Fail("AllocationIdNotFound", "the allocation ID '%s' does not exist", z.Allocation)
		}
		twice := slices.ContainsFunc(zones[:i], func(o LoadBalancerZone) bool { return o.Allocation == z.Allocation })
		if twice || address.Association != "" && !svc.holds(b, z.Allocation) {
			return core.Fail("ResourceInUse", "the allocation ID '%s' is already in use", z.Allocation)
		}
		zones[i].PublicIP = address.PublicIP
	}
	return nil
}

// holds reports whether a load balancer with that name uses an elastic IP.
func (svc *Service) holds(b *LoadBalancer, allocation string) bool {
	for _, old := range svc.state.LoadBalancers {
		if old.Name == b.Name && slices.ContainsFunc(old.Zones, func(z LoadBalancerZone) bool { return z.Allocation == allocation }) {
			return true
		}
	}
	return false
}

// like reports whether two load balancers have the same settings.
func (b *LoadBalancer) like(o *LoadBalancer) bool {
	same := func(x, y LoadBalancerZone) bool { return x.Subnet == y.Subnet && x.Allocation == y.Allocation }
	return b.Type == o.Type && b.Scheme == o.Scheme && b.IPType == o.IPType && slices.Equal(b.Groups, o.Groups) &&
		slices.EqualFunc(b.Zones, o.Zones, same) && maps.Equal(b.Tags, o.Tags)
}

// path returns the end of the ARN of a load balancer: "net/name/hash".
func (b *LoadBalancer) path() string {
	_, path, _ := strings.Cut(b.ARN, ":loadbalancer/")
	return path
}

// place creates a load balancer and its interfaces.
func (svc *Service) place(b *LoadBalancer) {
	hash, kind, takes := svc.Hash(), "net", NLBTakes
	b.DNSName = b.Name + "-" + hash + ".elb." + svc.Region + "." + core.DNSSuffix(svc.Region)
	if b.Type == typeApplication {
		kind, takes = "app", ALBTakes
		b.DNSName = b.Name + "-" + strconv.Itoa(1_000_000_000+svc.Serial()) + "." + svc.Region + ".elb." + core.DNSSuffix(svc.Region)
		if b.Scheme == "internal" {
			b.DNSName = "internal-" + b.DNSName
		}
	}
	b.ARN = svc.RegionalARN("elasticloadbalancing", "loadbalancer/"+kind+"/"+b.Name+"/"+hash)
	b.Born, b.Ready = svc.Now(), svc.Now().Add(takes)
	if b.Failed, b.Impaired = svc.state.Failure, svc.state.Impaired; b.Failed != "" {
		b.Ready = svc.Now().Add(LoadBalancerFails)
	}
	for i := range b.Zones {
		svc.enter(b, &b.Zones[i])
	}
}

// owner is the owner of the interface in a subnet.
func (b *LoadBalancer) owner(subnet string) string { return b.ARN + " " + subnet }

// enter creates the interface of a load balancer in a zone.
func (svc *Service) enter(b *LoadBalancer, z *LoadBalancerZone) {
	kind := "network_load_balancer"
	if b.Type == typeApplication {
		kind = "interface"
	}
	i := svc.ec2.NewInterface(z.Subnet, "ELB "+b.path(), kind, b.owner(z.Subnet), slices.Clone(b.Groups))
	i.Managed, z.Interface = true, i.ID
	if b.Scheme != schemeInternetFacing {
		return
	}
	if address := svc.ec2.Address(z.Allocation); address != nil {
		i.PublicIP = address.PublicIP
		address.Interface, address.Association = i.ID, svc.ID("eipassoc")
		return
	}
	i.PublicIP = svc.ec2.PublicIP()
}

func (svc *Service) showLoadBalancer(b *LoadBalancer) types.LoadBalancer {
	state := &types.LoadBalancerState{Code: types.LoadBalancerStateEnumActive}
	switch { // "failed - The load balancer could not be set up"; "active_impaired - routing traffic but does not have the resources it needs to scale"
	case svc.Now().Before(b.Ready):
		state.Code = types.LoadBalancerStateEnumProvisioning
	case b.Failed != "":
		state.Code, state.Reason = types.LoadBalancerStateEnumFailed, &b.Failed
	case b.Impaired != "":
		state.Code, state.Reason = types.LoadBalancerStateEnumActiveImpaired, &b.Impaired
	}
	return types.LoadBalancer{
		LoadBalancerArn: aws.String(b.ARN), LoadBalancerName: aws.String(b.Name), Type: types.LoadBalancerTypeEnum(b.Type),
		Scheme: types.LoadBalancerSchemeEnum(b.Scheme), VpcId: aws.String(b.VPC), DNSName: aws.String(b.DNSName),
		CanonicalHostedZoneId: aws.String("Z26RNL4JYFTOTI"), CreatedTime: aws.Time(b.Born), IpAddressType: types.IpAddressType(b.IPType),
		SecurityGroups: slices.Clone(b.Groups), State: state, AvailabilityZones: showZones(b.Zones),
	}
}

func showZones(zones []LoadBalancerZone) (out []types.AvailabilityZone) {
	for _, z := range zones {
		shown := types.AvailabilityZone{ZoneName: aws.String(z.Zone), SubnetId: aws.String(z.Subnet)}
		if z.Allocation != "" {
			shown.LoadBalancerAddresses = []types.LoadBalancerAddress{{AllocationId: aws.String(z.Allocation), IpAddress: aws.String(z.PublicIP)}}
		}
		out = append(out, shown)
	}
	return out
}

func (svc *Service) describeLoadBalancers(in *elb.DescribeLoadBalancersInput) (*elb.DescribeLoadBalancersOutput, error) {
	if len(in.Names) > 0 && len(in.LoadBalancerArns) > 0 {
		return nil, core.Fail("ValidationError", "load balancer names and load balancer ARNs cannot be specified at the same time")
	}
	if len(in.Names) > 20 || len(in.LoadBalancerArns) > 20 {
		return nil, core.Fail("ValidationError", "at most 20 load balancers can be described in a call")
	}
	found := map[string]bool{}
	var list []types.LoadBalancer
	for _, b := range core.ByKey(svc.state.LoadBalancers) {
		asked := len(in.Names)+len(in.LoadBalancerArns) == 0 || slices.Contains(in.Names, b.Name) || slices.Contains(in.LoadBalancerArns, b.ARN)
		if asked && svc.Visible(b.Born) {
			found[b.Name], found[b.ARN] = true, true
			list = append(list, svc.showLoadBalancer(b))
		}
	}
	for _, id := range slices.Concat(in.Names, in.LoadBalancerArns) {
		if !found[id] {
			return nil, noLoadBalancer(id)
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.PageSize, 400)
	return &elb.DescribeLoadBalancersOutput{LoadBalancers: part, NextMarker: next}, err
}
