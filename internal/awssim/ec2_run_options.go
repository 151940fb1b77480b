package awssim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// checkMarket looks at spot instances, capacity and CPU options.
func (a *AWS) checkMarket(l *launch) error {
	reserved := ""
	if c := l.in.CapacityReservationSpecification; c != nil {
		if t := c.CapacityReservationTarget; t != nil {
			if err := only("RunInstances", t, "CapacityReservationId"); err != nil {
				return err
			}
			reserved = aws.ToString(t.CapacityReservationId)
			if !a.state.EC2.Reservations[reserved] {
				return fail("InvalidCapacityReservationId.NotFound", "the capacity reservation '%s' does not exist", reserved)
			}
		}
		if reserved != "" && c.CapacityReservationPreference != "" && c.CapacityReservationPreference != types.CapacityReservationPreferenceCapacityReservationsOnly {
			return fail("InvalidParameterCombination", "a capacity reservation target and the preference %s exclude each other", c.CapacityReservationPreference)
		}
		l.model.Launch["capacity-reservation"], l.model.Launch["capacity-reservation-preference"] = reserved, string(c.CapacityReservationPreference)
	}
	if c := l.in.CpuOptions; c != nil {
		if err := only("RunInstances", c, "AmdSevSnp", "NestedVirtualization"); err != nil {
			return err
		}
		// No instance type of the catalogue has either.
		if c.AmdSevSnp == types.AmdSevSnpSpecificationEnabled || c.NestedVirtualization == types.NestedVirtualizationSpecificationEnabled {
			return fail("Unsupported", "instance type %s does not support these CPU options", l.kind.name)
		}
	}
	m := l.in.InstanceMarketOptions
	if m == nil {
		return nil
	}
	switch m.MarketType { //nolint:exhaustive // the others are refused
	case types.MarketTypeCapacityBlock:
		if reserved == "" || m.SpotOptions != nil {
			return fail("InvalidParameterCombination", "a capacity block needs a capacity reservation target and no spot options")
		}
		l.model.Launch["market"] = string(m.MarketType)
		return nil
	case types.MarketTypeSpot:
		if reserved != "" {
			return fail("InvalidParameterCombination", "a spot instance cannot use a capacity reservation")
		}
		return l.spot(m.SpotOptions)
	default:
		return fail("InvalidParameterValue", "value (%s) for parameter instanceMarketOptions.marketType is invalid", m.MarketType)
	}
}

// spot looks at the options of a spot instance. A persistent request would
// outlive its instance; it is not simulated.
func (l *launch) spot(o *types.SpotMarketOptions) error {
	l.model.Spot = true
	if o == nil {
		return nil
	}
	if err := only("RunInstances", o, "MaxPrice", "SpotInstanceType", "InstanceInterruptionBehavior"); err != nil {
		return err
	}
	if o.SpotInstanceType == types.SpotInstanceTypePersistent {
		return notSimulated("RunInstances: persistent spot requests")
	}
	if b := o.InstanceInterruptionBehavior; b != "" && b != types.InstanceInterruptionBehaviorTerminate {
		return fail("InvalidParameterCombination", "a one-time spot request allows no interruption behavior but terminate")
	}
	if o.MaxPrice != nil {
		if price, err := strconv.ParseFloat(*o.MaxPrice, 64); err != nil || price <= 0 {
			return fail("InvalidParameterValue", "invalid price: %s", *o.MaxPrice)
		}
		l.model.MaxPrice = *o.MaxPrice
	}
	return nil
}

func (a *AWS) checkMetadata(l *launch) error {
	l.model.Metadata = MetadataOptions{Endpoint: "enabled", IPv6: "disabled", Tokens: "optional", Tags: "disabled", HopLimit: 1}
	o := l.in.MetadataOptions
	if o == nil {
		return nil
	}
	return l.model.Metadata.set(string(o.HttpEndpoint), string(o.HttpProtocolIpv6), string(o.HttpTokens), string(o.InstanceMetadataTags), o.HttpPutResponseHopLimit)
}

func (a *AWS) checkNames(l *launch) error {
	l.model.HostnameType, l.model.ResourceNameA, l.model.ResourceNameAAAA = l.subnet.HostnameType, l.subnet.ResourceNameA, l.subnet.ResourceNameAAAA
	o := l.in.PrivateDnsNameOptions
	if o == nil {
		return nil
	}
	if o.HostnameType != "" {
		if !slices.Contains(o.HostnameType.Values(), o.HostnameType) || l.subnet.Native && o.HostnameType == types.HostnameTypeIpName {
			return fail("InvalidParameterValue", "value (%s) for parameter privateDnsNameOptions.hostnameType is invalid", o.HostnameType)
		}
		l.model.HostnameType = string(o.HostnameType)
	}
	if o.EnableResourceNameDnsAAAARecord != nil {
		if *o.EnableResourceNameDnsAAAARecord && l.subnet.IPv6CIDR == "" {
			return fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", l.subnet.ID)
		}
		l.model.ResourceNameAAAA = *o.EnableResourceNameDnsAAAARecord
	}
	if o.EnableResourceNameDnsARecord != nil {
		l.model.ResourceNameA = *o.EnableResourceNameDnsARecord
	}
	return nil
}

func (a *AWS) checkPlacement(l *launch) error {
	p := l.in.Placement
	l.model.Placement.Tenancy = a.state.EC2.VPCs[l.subnet.VPC].Tenancy
	if p == nil {
		return nil
	}
	if err := only("RunInstances", p, "AvailabilityZone", "Tenancy", "GroupName", "PartitionNumber", "HostId", "Affinity"); err != nil {
		return err
	}
	if p.Tenancy != "" {
		l.model.Placement.Tenancy = string(p.Tenancy)
	}
	group, partition, host := aws.ToString(p.GroupName), aws.ToInt32(p.PartitionNumber), aws.ToString(p.HostId)
	strategy, known := a.state.EC2.PlacementGroups[group]
	switch {
	case p.AvailabilityZone != nil && *p.AvailabilityZone != l.subnet.Zone:
		return fail("InvalidParameterValue", "the subnet %s is not in the zone %s", l.subnet.ID, *p.AvailabilityZone)
	case p.Tenancy != "" && !slices.Contains(p.Tenancy.Values(), p.Tenancy):
		return fail("InvalidParameterValue", "value (%s) for parameter tenancy is invalid", p.Tenancy)
	case group != "" && !known:
		return fail("InvalidPlacementGroup.Unknown", "the placement group '%s' is unknown", group)
	case partition != 0 && (strategy != "partition" || partition < 1 || partition > 7):
		return fail("InvalidParameterCombination", "the partition number %d needs a placement group with partitions", partition)
	case group != "" && strategy == "cluster" && strings.HasPrefix(l.kind.name, "t"):
		return fail("InvalidParameterCombination", "cluster placement groups are not supported by the '%s' instance type", l.kind.name)
	case host != "" && !a.state.EC2.Hosts[host]:
		return fail("InvalidHostID.NotFound", "the host '%s' does not exist", host)
	case (host != "" || p.Affinity != nil) && p.Tenancy != types.TenancyHost:
		return fail("InvalidParameterCombination", "a host and affinity need the tenancy host")
	case l.model.Spot && p.Tenancy == types.TenancyHost:
		return fail("InvalidParameterCombination", "spot instances do not support the tenancy host")
	case p.Affinity != nil && *p.Affinity != "default" && *p.Affinity != "host":
		return fail("InvalidParameterValue", "value (%s) for parameter affinity is invalid", *p.Affinity)
	}
	l.model.Placement = Placement{
		Tenancy: l.model.Placement.Tenancy, Group: group, Host: host, Affinity: aws.ToString(p.Affinity), Partition: partition,
	}
	return nil
}

func (a *AWS) checkTags(l *launch) (err error) {
	kinds := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}
	if l.model.Spot {
		kinds = append(kinds, types.ResourceTypeSpotInstancesRequest)
	}
	if l.tags, err = specified(l.in.TagSpecifications, kinds...); err != nil {
		return err
	}
	if len(l.existing) > 0 && l.tags[types.ResourceTypeNetworkInterface] != nil {
		return fail("InvalidParameterCombination", "network interfaces that exist already cannot be tagged on launch")
	}
	return l.model.Metadata.allow(l.tags[types.ResourceTypeInstance])
}
