package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateCatalog() {
	core.On(svc.Account, svc.describeAvailabilityZones, "Filters", "ZoneNames", "ZoneIds", "AllAvailabilityZones")
	core.On(svc.Account, svc.describeInstanceTypes, "InstanceTypes", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.describeInstanceTypeOfferings, "LocationType", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.describeSpotPriceHistory, "InstanceTypes", "ProductDescriptions", "StartTime")
	core.On(svc.Account, svc.describeKeyPairs, "KeyNames", "Filters")
	core.On(svc.Account, svc.describeAccountAttributes, "AttributeNames")
	core.On(svc.Account, svc.describePlacementGroups, "GroupNames", "Filters")
}

// ZoneID returns the ID of a zone, which is the same in all accounts; "" for none.
func (svc *Service) ZoneID(name string) string {
	z, _ := svc.zone(name)
	return z.id
}

// zone returns the zone with that name, if the account may use it.
func (svc *Service) zone(name string) (zone, bool) {
	for _, z := range zonesOf(svc.Region) {
		if z.name == name && z.optIn != types.AvailabilityZoneOptInStatusNotOptedIn {
			return z, true
		}
	}
	return zone{}, false
}

func (z zone) out(region string) types.AvailabilityZone {
	out := types.AvailabilityZone{
		ZoneName: aws.String(z.name), ZoneId: aws.String(z.id), GroupName: aws.String(z.group), NetworkBorderGroup: aws.String(z.group),
		RegionName: aws.String(region), OptInStatus: z.optIn, State: types.AvailabilityZoneStateAvailable, ZoneType: aws.String("availability-zone"),
	}
	if z.parent != "" {
		out.ZoneType, out.ParentZoneName = aws.String("local-zone"), aws.String(z.parent)
	}
	if z.wavelength {
		out.ZoneType = aws.String("wavelength-zone")
	}
	return out
}

func (svc *Service) describeAvailabilityZones(in *ec2.DescribeAvailabilityZonesInput) (*ec2.DescribeAvailabilityZonesOutput, error) {
	keep, err := matching(in.Filters, fields[zone]{
		"zone-name":     func(z zone) []string { return []string{z.name} },
		"zone-id":       func(z zone) []string { return []string{z.id} },
		"group-name":    func(z zone) []string { return []string{z.group} },
		"opt-in-status": func(z zone) []string { return []string{string(z.optIn)} },
		"state":         func(zone) []string { return []string{"available"} },
		"region-name":   func(zone) []string { return []string{svc.Region} },
		"zone-type":     func(z zone) []string { return []string{aws.ToString(z.out(svc.Region).ZoneType)} },
	}, nil)
	if err != nil {
		return nil, err
	}
	zones := zonesOf(svc.Region)
	for _, name := range in.ZoneNames {
		if !slices.ContainsFunc(zones, func(z zone) bool { return z.name == name }) {
			return nil, core.Fail("InvalidParameterValue", "invalid availability zone: [%s]", name)
		}
	}
	slices.Reverse(zones) // AWS does not guarantee an order
	out := &ec2.DescribeAvailabilityZonesOutput{}
	for _, z := range zones {
		named := len(in.ZoneNames)+len(in.ZoneIds) == 0 || slices.Contains(in.ZoneNames, z.name) || slices.Contains(in.ZoneIds, z.id)
		open := aws.ToBool(in.AllAvailabilityZones) || z.optIn != types.AvailabilityZoneOptInStatusNotOptedIn
		if named && open && keep(z) {
			out.AvailabilityZones = append(out.AvailabilityZones, z.out(svc.Region))
		}
	}
	return out, nil
}

func (t instanceType) out() types.InstanceTypeInfo {
	info := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(t.name), CurrentGeneration: aws.Bool(t.current),
		ProcessorInfo:            &types.ProcessorInfo{SupportedArchitectures: t.architectures},
		VCpuInfo:                 &types.VCpuInfo{DefaultVCpus: aws.Int32(t.vcpus)},
		MemoryInfo:               &types.MemoryInfo{SizeInMiB: aws.Int64(t.memory)},
		SupportedUsageClasses:    []types.UsageClassType{types.UsageClassTypeOnDemand, types.UsageClassTypeSpot},
		SupportedRootDeviceTypes: []types.RootDeviceType{types.RootDeviceTypeEbs},
		Hypervisor:               types.InstanceTypeHypervisorNitro,
	}
	info.SupportedVirtualizationTypes = []types.VirtualizationType{types.VirtualizationTypeHvm}
	if strings.HasPrefix(t.name, "t2.") {
		info.Hypervisor = types.InstanceTypeHypervisorXen
	}
	if t.gpu {
		info.GpuInfo = &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{Count: aws.Int32(1), Manufacturer: aws.String("NVIDIA")}}}
	}
	return info
}

func (svc *Service) describeInstanceTypes(in *ec2.DescribeInstanceTypesInput) (*ec2.DescribeInstanceTypesOutput, error) {
	keep, err := matching(in.Filters, fields[instanceType]{
		"instance-type":      func(t instanceType) []string { return []string{t.name} },
		"current-generation": func(t instanceType) []string { return flag(t.current) },
		"processor-info.supported-architecture": func(t instanceType) []string {
			return core.Each(t.architectures, func(x types.ArchitectureType) string { return string(x) })
		},
		"vcpu-info.default-vcpus": func(t instanceType) []string { return []string{fmt.Sprint(t.vcpus)} },
	}, nil)
	if err != nil {
		return nil, err
	}
	if len(in.InstanceTypes) > 100 || in.MaxResults != nil && *in.MaxResults > 100 {
		return nil, core.Fail("InvalidParameterValue", "at most 100 instance types are described in one call")
	}
	var ids []string
	for _, t := range in.InstanceTypes {
		if _, ok := typeNamed(string(t)); !ok {
			return nil, core.Fail("InvalidInstanceType", "the following supplied instance types do not exist: [%s]", t)
		}
		ids = append(ids, string(t))
	}
	var found []instanceType
	for _, t := range instanceTypes() {
		if (len(ids) == 0 || slices.Contains(ids, t.name)) && keep(t) {
			found = append(found, t)
		}
	}
	part, next, err := paged(svc, found, query{ids: ids, token: in.NextToken, size: in.MaxResults})
	return &ec2.DescribeInstanceTypesOutput{InstanceTypes: core.Each(part, instanceType.out), NextToken: next}, err
}

func (svc *Service) describeInstanceTypeOfferings(in *ec2.DescribeInstanceTypeOfferingsInput) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	keep, err := matching(in.Filters, fields[types.InstanceTypeOffering]{
		"instance-type": func(o types.InstanceTypeOffering) []string { return []string{string(o.InstanceType)} },
		"location":      func(o types.InstanceTypeOffering) []string { return []string{aws.ToString(o.Location)} },
	}, nil)
	if err != nil {
		return nil, err
	}
	kind := cmp.Or(in.LocationType, types.LocationTypeRegion)
	locations, offers := map[string][]zone{}, []types.InstanceTypeOffering(nil)
	for _, z := range zonesOf(svc.Region) {
		switch kind { //nolint:exhaustive // the others are not simulated
		case types.LocationTypeAvailabilityZone:
			locations[z.name] = []zone{z}
		case types.LocationTypeAvailabilityZoneId:
			locations[z.id] = []zone{z}
		case types.LocationTypeRegion:
			locations[svc.Region] = append(locations[svc.Region], z)
		default:
			return nil, core.NotSimulated("the location type %q", in.LocationType)
		}
	}
	for _, t := range instanceTypes() {
		for _, place := range slices.Sorted(maps.Keys(locations)) {
			if slices.ContainsFunc(locations[place], func(z zone) bool { return z.offered(t.name) }) {
				o := types.InstanceTypeOffering{InstanceType: types.InstanceType(t.name), Location: aws.String(place), LocationType: kind}
				if keep(o) {
					offers = append(offers, o)
				}
			}
		}
	}
	part, next, err := paged(svc, offers, query{token: in.NextToken, size: in.MaxResults})
	return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: part, NextToken: next}, err
}

func (svc *Service) describeKeyPairs(in *ec2.DescribeKeyPairsInput) (*ec2.DescribeKeyPairsOutput, error) {
	keep, err := matching(in.Filters, fields[string]{"key-name": oneValue}, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range in.KeyNames {
		if !svc.state.KeyPairs[name] {
			return nil, core.Fail("InvalidKeyPair.NotFound", "the key pair '%s' does not exist", name)
		}
	}
	out := &ec2.DescribeKeyPairsOutput{}
	for _, name := range slices.Sorted(maps.Keys(svc.state.KeyPairs)) {
		if keep(name) && (len(in.KeyNames) == 0 || slices.Contains(in.KeyNames, name)) {
			out.KeyPairs = append(out.KeyPairs, types.KeyPairInfo{
				KeyName: aws.String(name), KeyPairId: aws.String(GivenID("key", svc.Region, name)), KeyType: types.KeyTypeEd25519,
			})
		}
	}
	return out, nil
}

func (svc *Service) describeAccountAttributes(in *ec2.DescribeAccountAttributesInput) (*ec2.DescribeAccountAttributesOutput, error) {
	vpc := "none"
	for id, v := range svc.state.VPCs {
		if v.Default {
			vpc = id
		}
	}
	addresses := fmt.Sprint(svc.state.Limits.Addresses)
	values := map[string]string{
		"supported-platforms": "VPC", "default-vpc": vpc, "max-elastic-ips": addresses, "vpc-max-elastic-ips": addresses,
		"vpc-max-security-groups-per-interface": fmt.Sprint(groupsPerInterface),
	}
	out := &ec2.DescribeAccountAttributesOutput{}
	for _, name := range in.AttributeNames {
		if values[string(name)] == "" {
			return nil, core.NotSimulated("the account attribute %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(in.AttributeNames) == 0 || slices.Contains(in.AttributeNames, types.AccountAttributeName(name)) {
			out.AccountAttributes = append(out.AccountAttributes, types.AccountAttribute{
				AttributeName: aws.String(name), AttributeValues: []types.AccountAttributeValue{{AttributeValue: aws.String(values[name])}},
			})
		}
	}
	return out, nil
}

func (svc *Service) describePlacementGroups(in *ec2.DescribePlacementGroupsInput) (*ec2.DescribePlacementGroupsOutput, error) {
	groups := svc.state.PlacementGroups
	keep, err := matching(in.Filters, fields[string]{
		"group-name": oneValue,
		"strategy":   func(name string) []string { return oneValue(groups[name]) },
		"state":      func(string) []string { return []string{"available"} },
	}, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range in.GroupNames {
		if _, ok := groups[name]; !ok {
			return nil, core.Fail("InvalidPlacementGroup.Unknown", "the placement group '%s' is unknown", name)
		}
	}
	out := &ec2.DescribePlacementGroupsOutput{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if keep(name) && (len(in.GroupNames) == 0 || slices.Contains(in.GroupNames, name)) {
			out.PlacementGroups = append(out.PlacementGroups, types.PlacementGroup{
				GroupName: aws.String(name), GroupId: aws.String(GivenID("pg", svc.Region, name)),
				State: types.PlacementGroupStateAvailable, Strategy: types.PlacementStrategy(groups[name]),
			})
		}
	}
	return out, nil
}
