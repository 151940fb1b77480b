package ec2

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// typeFields are the filters of DescribeInstanceTypes.
func typeFields() fields[instanceType] {
	return fields[instanceType]{
		"instance-type":                         func(t instanceType) []string { return []string{t.name} },
		"current-generation":                    func(t instanceType) []string { return flag(aws.ToBool(t.info.CurrentGeneration)) },
		"bare-metal":                            func(t instanceType) []string { return flag(aws.ToBool(t.info.BareMetal)) },
		"burstable-performance-supported":       func(t instanceType) []string { return flag(aws.ToBool(t.info.BurstablePerformanceSupported)) },
		"instance-storage-supported":            func(t instanceType) []string { return flag(aws.ToBool(t.info.InstanceStorageSupported)) },
		"hypervisor":                            func(t instanceType) []string { return oneValue(string(t.info.Hypervisor)) },
		"supported-usage-class":                 func(t instanceType) []string { return texts(t.info.SupportedUsageClasses) },
		"supported-boot-mode":                   func(t instanceType) []string { return texts(t.info.SupportedBootModes) },
		"supported-virtualization-type":         func(t instanceType) []string { return texts(t.info.SupportedVirtualizationTypes) },
		"processor-info.supported-architecture": func(t instanceType) []string { return texts(t.architectures()) },
		"vcpu-info.default-vcpus":               func(t instanceType) []string { return []string{fmt.Sprint(t.vcpus())} },
		"memory-info.size-in-mib":               func(t instanceType) []string { return []string{fmt.Sprint(aws.ToInt64(t.info.MemoryInfo.SizeInMiB))} },
		"network-info.efa-supported":            func(t instanceType) []string { return flag(aws.ToBool(t.info.NetworkInfo.EfaSupported)) },
		"network-info.ipv6-supported":           func(t instanceType) []string { return flag(aws.ToBool(t.info.NetworkInfo.Ipv6Supported)) },
	}
}

func texts[T ~string](list []T) []string {
	return core.Each(list, func(x T) string { return string(x) })
}

// typesIn returns the names of the instance types that some zones offer, among those that a
// filter names.
func (svc *Service) typesIn(zones []zone, filters []types.Filter) ([]string, error) {
	filters = slices.DeleteFunc(slices.Clone(filters), func(f types.Filter) bool { return aws.ToString(f.Name) != "instance-type" })
	named, err := matching(filters, fields[string]{"instance-type": oneValue}, nil)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(svc.typeNames(), func(name string) bool { return !named(name) || !offeredIn(zones, name) }), nil
}

// offeredIn reports whether one of some zones offers an instance type.
func offeredIn(zones []zone, name string) bool {
	return slices.ContainsFunc(zones, func(z zone) bool { return z.offered(name) })
}

func (svc *Service) describeInstanceTypes(in *ec2.DescribeInstanceTypesInput) (*ec2.DescribeInstanceTypesOutput, error) {
	keep, err := matching(in.Filters, typeFields(), nil)
	if err != nil {
		return nil, err
	}
	if len(in.InstanceTypes) > 100 || in.MaxResults != nil && *in.MaxResults > 100 {
		return nil, core.Fail("InvalidParameterValue", "at most 100 instance types are described in one call")
	}
	zones := svc.zones()
	names, err := svc.typesIn(zones, in.Filters)
	if err != nil {
		return nil, err
	}
	ids := texts(in.InstanceTypes)
	for _, name := range ids {
		if !offeredIn(zones, name) {
			return nil, core.Fail("InvalidInstanceType", "the following supplied instance types do not exist: [%s]", name)
		}
	}
	var found []types.InstanceTypeInfo
	for _, name := range names {
		if len(ids) > 0 && !slices.Contains(ids, name) {
			continue
		}
		if t, _ := svc.typeNamed(name); keep(t) {
			found = append(found, t.info)
		}
	}
	part, next, err := paged(svc, found, query{ids: ids, token: in.NextToken, size: in.MaxResults})
	return &ec2.DescribeInstanceTypesOutput{InstanceTypes: part, NextToken: next}, err
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
	locations, err := svc.locations(kind)
	if err != nil {
		return nil, err
	}
	names, err := svc.typesIn(svc.zones(), in.Filters)
	if err != nil {
		return nil, err
	}
	var offers []types.InstanceTypeOffering
	places := core.SortedKeys(locations)
	for _, name := range names {
		for _, place := range places {
			if !offeredIn(locations[place], name) {
				continue
			}
			o := types.InstanceTypeOffering{InstanceType: types.InstanceType(name), Location: aws.String(place), LocationType: kind}
			if keep(o) {
				offers = append(offers, o)
			}
		}
	}
	part, next, err := paged(svc, offers, query{token: in.NextToken, size: in.MaxResults})
	return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: part, NextToken: next}, err
}

// locations returns the zones of each location.
func (svc *Service) locations(kind types.LocationType) (map[string][]zone, error) {
	locations := map[string][]zone{}
	for _, z := range svc.zones() {
		switch kind { //nolint:exhaustive // the others are not simulated
		case types.LocationTypeAvailabilityZone:
			locations[z.name] = []zone{z}
		case types.LocationTypeAvailabilityZoneId:
			locations[z.id] = []zone{z}
		case types.LocationTypeRegion:
			locations[svc.Region] = append(locations[svc.Region], z)
		default:
			return nil, core.NotSimulated("the location type %q", kind)
		}
	}
	return locations, nil
}
