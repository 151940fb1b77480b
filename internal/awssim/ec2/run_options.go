package ec2

import (
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// checkMarket looks at spot instances, capacity and CPU options.
func (svc *Service) checkMarket(l *launch) error {
	reserved := ""
	if c := l.in.CapacityReservationSpecification; c != nil {
		if t := c.CapacityReservationTarget; t != nil {
			if err := core.Only("RunInstances", t, "CapacityReservationId"); err != nil {
				return err
			}
			reserved = aws.ToString(t.CapacityReservationId)
			if !svc.state.Reservations[reserved] {
				return core.Fail("InvalidCapacityReservationId.NotFound", "the capacity reservation '%s' does not exist", reserved)
			}
		}
		if reserved != "" && c.CapacityReservationPreference != "" && c.CapacityReservationPreference != types.CapacityReservationPreferenceCapacityReservationsOnly {
			return core.Fail("InvalidParameterCombination", "a capacity reservation target and the preference %s exclude each other", c.CapacityReservationPreference)
		}
		l.model.Launch["capacity-reservation"], l.model.Launch["capacity-reservation-preference"] = reserved, string(c.CapacityReservationPreference)
	}
	if c := l.in.CpuOptions; c != nil {
		if err := core.Only("RunInstances", c, "AmdSevSnp", "NestedVirtualization"); err != nil {
			return err
		}
		// No instance type of the catalogue has either.
		if c.AmdSevSnp == types.AmdSevSnpSpecificationEnabled || c.NestedVirtualization == types.NestedVirtualizationSpecificationEnabled {
			return core.Fail("Unsupported", "instance type %s does not support these CPU options", l.kind.name)
		}
	}
	m := l.in.InstanceMarketOptions
	if m == nil {
		return nil
	}
	switch m.MarketType { //nolint:exhaustive // the others are refused
	case types.MarketTypeCapacityBlock:
		if reserved == "" || m.SpotOptions != nil {
			return core.Fail("InvalidParameterCombination", "a capacity block needs a capacity reservation target and no spot options")
		}
		l.model.Launch["market"] = string(m.MarketType)
		return nil
	case types.MarketTypeSpot:
		if reserved != "" {
			return core.Fail("InvalidParameterCombination", "a spot instance cannot use a capacity reservation")
		}
		return l.spot(m.SpotOptions)
	default:
		return core.Fail("InvalidParameterValue", "value (%s) for parameter instanceMarketOptions.marketType is invalid", m.MarketType)
	}
}

// spot looks at the options of a spot instance. A persistent request would
// outlive its instance; it is not simulated.
func (l *launch) spot(o *types.SpotMarketOptions) error {
	l.model.Spot = true
	if o == nil {
		return nil
	}
	if err := core.Only("RunInstances", o, "MaxPrice", "SpotInstanceType", "InstanceInterruptionBehavior"); err != nil {
		return err
	}
	if o.SpotInstanceType == types.SpotInstanceTypePersistent {
		return core.NotSimulated("RunInstances: persistent spot requests")
	}
	if b := o.InstanceInterruptionBehavior; b != "" && b != types.InstanceInterruptionBehaviorTerminate {
		return core.Fail("InvalidParameterCombination", "a one-time spot request allows no interruption behavior but terminate")
	}
	if o.MaxPrice != nil {
		if price, err := strconv.ParseFloat(*o.MaxPrice, 64); err != nil || price <= 0 {
			return core.Fail("InvalidParameterValue", "invalid price: %s", *o.MaxPrice)
		}
		l.model.MaxPrice = *o.MaxPrice
	}
	return nil
}

func (svc *Service) checkMetadata(l *launch) error {
	l.model.Metadata = MetadataOptions{Endpoint: "enabled", IPv6: "disabled", Tokens: "optional", Tags: "disabled", HopLimit: 1}
	o := l.in.MetadataOptions
	if o == nil {
		return nil
	}
	return l.model.Metadata.set(string(o.HttpEndpoint), string(o.HttpProtocolIpv6), string(o.HttpTokens), string(o.InstanceMetadataTags), o.HttpPutResponseHopLimit)
}

func (svc *Service) checkNames(l *launch) error {
	l.model.HostnameType, l.model.ResourceNameA, l.model.ResourceNameAAAA = l.subnet.HostnameType, l.subnet.ResourceNameA, l.subnet.ResourceNameAAAA
	o := l.in.PrivateDnsNameOptions
	if o == nil {
		return nil
	}
	if o.HostnameType != "" {
		if !slices.Contains(o.HostnameType.Values(), o.HostnameType) || l.subnet.Native && o.HostnameType == types.HostnameTypeIpName {
			return core.Fail("InvalidParameterValue", "value (%s) for parameter privateDnsNameOptions.hostnameType is invalid", o.HostnameType)
		}
		l.model.HostnameType = string(o.HostnameType)
	}
	if o.EnableResourceNameDnsAAAARecord != nil {
		if *o.EnableResourceNameDnsAAAARecord && l.subnet.IPv6CIDR == "" {
			return core.Fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", l.subnet.ID)
		}
		l.model.ResourceNameAAAA = *o.EnableResourceNameDnsAAAARecord
	}
	if o.EnableResourceNameDnsARecord != nil {
		l.model.ResourceNameA = *o.EnableResourceNameDnsARecord
	}
	return nil
}

func (svc *Service) checkPlacement(l *launch) error {
	p := l.in.Placement
	l.model.Placement.Tenancy = svc.state.VPCs[l.subnet.VPC].Tenancy
	if p == nil {
		return nil
	}
	if err := core.Only("RunInstances", p, "AvailabilityZone", "Tenancy", "GroupName", "PartitionNumber", "HostId", "Affinity"); err != nil {
		return err
	}
	if p.Tenancy != "" {
		l.model.Placement.Tenancy = string(p.Tenancy)
	}
	group, partition, host := aws.ToString(p.GroupName), aws.ToInt32(p.PartitionNumber), aws.ToString(p.HostId)
	strategy, known := svc.state.PlacementGroups[group]
	switch {
	case p.AvailabilityZone != nil && *p.AvailabilityZone != l.subnet.Zone:
		return core.Fail("InvalidParameterValue", "the subnet %s is not in the zone %s", l.subnet.ID, *p.AvailabilityZone)
	case p.Tenancy != "" && !slices.Contains(p.Tenancy.Values(), p.Tenancy):
		return core.Fail("InvalidParameterValue", "value (%s) for parameter tenancy is invalid", p.Tenancy)
	case group != "" && !known:
		return core.Fail("InvalidPlacementGroup.Unknown", "the placement group '%s' is unknown", group)
	case partition != 0 && (strategy != "partition" || partition < 1 || partition > 7):
		return core.Fail("InvalidParameterCombination", "the partition number %d needs a placement group with partitions", partition)
	case group != "" && strategy == "cluster" && strings.HasPrefix(l.kind.name, "t"):
		return core.Fail("InvalidParameterCombination", "cluster placement groups are not supported by the '%s' instance type", l.kind.name)
	case host != "" && !svc.state.Hosts[host]:
		return core.Fail("InvalidHostID.NotFound", "the host '%s' does not exist", host)
	case (host != "" || p.Affinity != nil) && p.Tenancy != types.TenancyHost:
		return core.Fail("InvalidParameterCombination", "a host and affinity need the tenancy host")
	case l.model.Spot && p.Tenancy == types.TenancyHost:
		return core.Fail("InvalidParameterCombination", "spot instances do not support the tenancy host")
	case p.Affinity != nil && *p.Affinity != "default" && *p.Affinity != "host":
		return core.Fail("InvalidParameterValue", "value (%s) for parameter affinity is invalid", *p.Affinity)
	}
	l.model.Placement = Placement{
		Tenancy: l.model.Placement.Tenancy, Group: group, Host: host, Affinity: aws.ToString(p.Affinity), Partition: partition,
	}
	return nil
}

func (svc *Service) checkTags(l *launch) (err error) {
	kinds := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}
	if l.model.Spot {
		kinds = append(kinds, types.ResourceTypeSpotInstancesRequest)
	}
	if l.tags, err = specified(l.in.TagSpecifications, kinds...); err != nil {
		return err
	}
	if len(l.existing) > 0 && l.tags[types.ResourceTypeNetworkInterface] != nil {
		return core.Fail("InvalidParameterCombination", "network interfaces that exist already cannot be tagged on launch")
	}
	return l.model.Metadata.allow(l.tags[types.ResourceTypeInstance])
}
