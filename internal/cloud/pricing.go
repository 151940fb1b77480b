package cloud

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
)

// priceList makes a client use the endpoint of the price list that is next to its region,
// and repeat a call only once: nothing waits for prices.
func priceList(o *pricing.Options) {
	if at := PriceListRegion(o.Region); at != "" {
		o.Region = at
	}
	o.Retryer = retry.AddWithMaxAttempts(o.Retryer, 2)
}

// PriceListRegion returns the region with the price list of another one; "" if its partition
// has none. Only four regions have it ("AWS Billing and Cost Management endpoints and quotas"
// in the AWS General Reference).
func PriceListRegion(region string) string {
	area, _, _ := strings.Cut(region, "-")
	if strings.HasPrefix(region, "us-gov-") || strings.Contains(region, "-iso") {
		return ""
	}
	switch area {
	case "cn":
		return "cn-northwest-1"
	case "eu", "il", "me", "af":
		return "eu-central-1"
	case "ap":
		return "ap-south-1"
	}
	return "us-east-1"
}
