package ec2

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Zones lists the Availability Zones of the region that do not require an opt-in
// (DescribeAvailabilityZones, filter opt-in-status), sorted by name, without those with the
// IDs in avoid.
func Zones(ctx context.Context, c *cloud.Clients, avoid ...string) ([]string, error) {
	out, err := c.EC2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []types.Filter{cloud.Filter("state", "available"), cloud.Filter("opt-in-status", "opt-in-not-required")},
	})
	if err != nil {
		return nil, err
	}
	zones := map[string]bool{}
	for _, z := range out.AvailabilityZones {
		if !slices.Contains(avoid, aws.ToString(z.ZoneId)) {
			zones[aws.ToString(z.ZoneName)] = true
		}
	}
	return slices.Sorted(maps.Keys(zones)), nil
}

// ZoneInfo describes a zone of any kind.
type ZoneInfo struct {
	Type   string // availability-zone, local-zone or wavelength-zone
	Parent string // availability zone of a Local Zone or Wavelength Zone
	Closed string // group of zones that the account has to opt in to first; "" for none
}

// IsEdge reports whether it is a Local Zone or a Wavelength Zone.
func (z ZoneInfo) IsEdge() bool { return z.IsWavelength() || z.Type == "local-zone" }

// IsWavelength reports whether it is a Wavelength Zone.
func (z ZoneInfo) IsWavelength() bool { return z.Type == "wavelength-zone" }

// ZonesNamed returns the zones with these names that exist, also those that the account has
// not opted in to.
func ZonesNamed(ctx context.Context, c *cloud.Clients, names []string) (map[string]ZoneInfo, error) {
	out, err := c.EC2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		AllAvailabilityZones: aws.Bool(true), Filters: []types.Filter{cloud.Filter("zone-name", names...)},
	})
	if err != nil {
		return nil, err
	}
	zones := map[string]ZoneInfo{}
	for _, z := range out.AvailabilityZones {
		info := ZoneInfo{Type: aws.ToString(z.ZoneType), Parent: aws.ToString(z.ParentZoneName)}
		if z.OptInStatus == types.AvailabilityZoneOptInStatusNotOptedIn {
			info.Closed = aws.ToString(z.GroupName)
		}
		zones[aws.ToString(z.ZoneName)] = info
	}
	return zones, nil
}
