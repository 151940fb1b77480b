package ec2

import (
	"fmt"
	"maps"
	"slices"

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
	core.On(svc.Account, svc.describeHosts, "Filter", "HostIds", "MaxResults", "NextToken")
	core.On(svc.Account, svc.describeReservations, "CapacityReservationIds")
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
		"vpc-max-security-groups-per-interface": fmt.Sprint(GroupsPerInterface),
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

// partitions is the number of partitions of a placement group: at most 7 in a zone ("Partition placement groups", EC2 user guide).
func (svc *Service) partitions(group string) int32 {
	const most = 7
	if n, ok := svc.state.Partitions[group]; ok {
		return n
	}
	return most
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
			g := types.PlacementGroup{
				GroupName: aws.String(name), GroupId: aws.String(GivenID("pg", svc.Region, name)),
				State: types.PlacementGroupStateAvailable, Strategy: types.PlacementStrategy(groups[name]),
			}
			if g.Strategy == types.PlacementStrategyPartition {
				g.PartitionCount = aws.Int32(svc.partitions(name))
			}
			out.PlacementGroups = append(out.PlacementGroups, g)
		}
	}
	return out, nil
}
