package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

var (
	_ graph.Doubted = (*Instance)(nil)
	_ graph.Doubted = (*LaunchTemplate)(nil)
)

// Doubts implements graph.Doubted. EC2 launches no spot instance while its maximum price is below the spot price, which changes over time
// (SpotMaxPriceTooLow in "Error codes for the Amazon EC2 API").
func (i *Instance) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	if i.Boot == nil || i.Subnet == nil {
		return nil, nil // it runs
	}
	zone := ""
	if state, ok := i.Subnet.Found(); ok {
		zone = state.Zone
	} else if desired, ok := i.Subnet.Desired().(*Subnet); ok {
		zone = desired.Zone
	}
	cheap, err := tooCheap(ctx, c, i.Spec.InstanceType, zone, i.Spec.SpotMarketOptions)
	lost, err2 := losesAnswers(ctx, c, i.Subnet)
	return append(cheap, lost...), errors.Join(err, err2)
}

// Doubts implements graph.Doubted.
func (t *LaunchTemplate) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	return tooCheap(ctx, c, t.Spec.InstanceType, "", t.Spec.SpotMarketOptions)
}

// tooCheap warns of a maximum price below the spot price in a zone, or in all zones.
func tooCheap(ctx context.Context, c *cloud.Clients, instanceType, zone string, spot *infrav1.SpotMarketOptions) (warnings []string, err error) {
	if spot == nil || aws.ToString(spot.MaxPrice) == "" || instanceType == "" {
		return nil, nil
	}
	most, err := strconv.ParseFloat(*spot.MaxPrice, 64)
	if err != nil {
		return nil, nil //nolint:nilerr // the manifest is checked for that
	}
	prices, err := cost.SpotPrices(ctx, c, instanceType)
	if err != nil || len(prices) == 0 {
		return nil, err
	}
	price, known := prices[zone]
	if !known {
		price, zone = slices.Min(slices.Collect(maps.Values(prices))), c.Region
	}
	if most >= price {
		return nil, nil
	}
	return []string{fmt.Sprintf(
		"maxPrice %s is less than the spot price of %s in %s now, %.4f: AWS launches no machine until that falls: raise maxPrice, or remove it",
		*spot.MaxPrice,
		instanceType,
		zone,
		price,
	)}, nil
}
