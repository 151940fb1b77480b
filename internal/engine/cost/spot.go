package cost

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// fetchSpot returns the spot price of a machine: the highest of the zones of the region.
// Where it cannot be read, it is at most the On-Demand price, above which AWS sells no spot
// capacity unless the machine's maximum price is higher.
func fetchSpot(ctx context.Context, c *cloud.Clients, p Product) (Price, error) {
	demand, err := fetch(ctx, c, p)
	if err != nil {
		return demand, err
	}
	now := c.Now()
	out, err := c.EC2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []types.InstanceType{
			types.InstanceType(p.Spot),
		},
		ProductDescriptions: []string{"Linux/UNIX"},
		StartTime:           &now, // it returns the prices of this moment
	})
	if err != nil {
		out = &ec2.DescribeSpotPriceHistoryOutput{}
	}
	highest := 0.0
	for _, x := range out.SpotPriceHistory {
		if amount, err := strconv.ParseFloat(aws.ToString(x.SpotPrice), 64); err == nil {
			highest = max(highest, amount)
		}
	}
	if highest == 0 {
		demand.AtMost = true
		return demand, nil
	}
	demand.Amount = highest
	return demand, nil
}
