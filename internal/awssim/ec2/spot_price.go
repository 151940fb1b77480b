package ec2

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/pricing"
)

// spotPrice is the spot price of an instance type in a zone: in the first zone 40 % of the On-Demand price, and one percent
// more in each further one. AWS's prices change over time.
func (svc *Service) spotPrice(instanceType, zone string) (price float64, ok bool) {
	demand, ok := pricing.OnDemand(svc.Region, instanceType)
	for n, z := range svc.zones() {
		if ok && z.name == zone && z.parent == "" && z.offered(instanceType) {
			return demand * (0.40 + 0.01*float64(n)), true
		}
	}
	return 0, false
}

// describeSpotPriceHistory returns the spot prices of this moment.
func (svc *Service) describeSpotPriceHistory(in *ec2.DescribeSpotPriceHistoryInput) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	switch {
	case in.StartTime == nil || in.StartTime.Before(svc.Now().Add(-time.Minute)):
		return nil, core.NotSimulated("the history of spot prices")
	case !slices.Equal(in.ProductDescriptions, []string{"Linux/UNIX"}):
		return nil, core.NotSimulated("spot prices of %v", in.ProductDescriptions)
	}
	out := &ec2.DescribeSpotPriceHistoryOutput{}
	for _, t := range in.InstanceTypes {
		for _, z := range svc.zones() {
			price, ok := svc.spotPrice(string(t), z.name)
			if !ok {
				continue
			}
			out.SpotPriceHistory = append(out.SpotPriceHistory, types.SpotPrice{
				AvailabilityZone: aws.String(z.name), InstanceType: t, ProductDescription: types.RIProductDescriptionLinuxUnix,
				SpotPrice: aws.String(strconv.FormatFloat(price, 'f', 6, 64)), Timestamp: in.StartTime,
			})
		}
	}
	return out, nil
}
