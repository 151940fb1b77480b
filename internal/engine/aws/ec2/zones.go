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
