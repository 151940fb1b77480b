package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Named is the state of something that is known by its name.
type Named string

// CloudID implements graph.State.
func (n Named) CloudID() string { return string(n) }

// Zones lists the Availability Zones of the region that do not require an opt-in
// (DescribeAvailabilityZones, filter opt-in-status), sorted by name.
func Zones(ctx context.Context, c *cloud.Clients) ([]string, error) {
	out, err := c.EC2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []types.Filter{cloud.Filter("state", "available"), cloud.Filter("opt-in-status", "opt-in-not-required")},
	})
	if err != nil {
		return nil, err
	}
	zones := map[string]bool{}
	for _, z := range out.AvailabilityZones {
		zones[aws.ToString(z.ZoneName)] = true
	}
	return slices.Sorted(maps.Keys(zones)), nil
}

func filterList(filters map[string][]string) (text string, out []types.Filter) {
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		out = append(out, cloud.Filter(name, filters[name]...))
		text += fmt.Sprintf(" %s=%s", name, strings.Join(filters[name], ","))
	}
	return strings.TrimSpace(text), out
}
