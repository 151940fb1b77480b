package cost

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// SpotPrices returns the spot prices of an instance type now, by the hour and in US dollars, by zone.
func SpotPrices(ctx context.Context, c *cloud.Clients, instanceType string) (map[string]float64, error) {
	return cloud.Remember(ctx, c, "spot prices of "+instanceType, func(ctx context.Context) (map[string]float64, error) {
		now := c.Now()
		out, err := c.EC2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{
			InstanceTypes:       []types.InstanceType{types.InstanceType(instanceType)},
			ProductDescriptions: []string{"Linux/UNIX"},
			StartTime:           &now, // it returns the prices of this moment
		})
		if err != nil {
			return nil, err
		}
		prices := map[string]float64{}
		for _, x := range out.SpotPriceHistory {
			if amount, err := strconv.ParseFloat(aws.ToString(x.SpotPrice), 64); err == nil {
				prices[aws.ToString(x.AvailabilityZone)] = amount
			}
		}
		return prices, nil
	})
}

// fetchSpot returns the spot price of a machine: the highest of the zones of the region.
// Where it cannot be read, it is at most the On-Demand price, above which AWS sells no spot
// capacity unless the machine's maximum price is higher.
func fetchSpot(ctx context.Context, c *cloud.Clients, p Product) (Price, error) {
	demand, err := fetch(ctx, c, p)
	if err != nil {
		return demand, err
	}
	highest := 0.0
	prices, _ := SpotPrices(ctx, c, p.Spot) // without them, the price is not exact
	for _, amount := range prices {
		highest = max(highest, amount)
	}
	if highest == 0 {
		demand.AtMost = true
		return demand, nil
	}
	demand.Amount = highest
	return demand, nil
}
