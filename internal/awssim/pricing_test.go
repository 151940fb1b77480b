package awssim_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// The price list has the shape of AWS's, and many products besides the one that is asked for.
func TestPriceList(t *testing.T) {
	ask := func(endpoint string, filters ...string) ([]string, error) {
		cfg := awssim.New(awssim.Options{Region: "us-west-2"}).Config()
		cfg.Region, cfg.RetryMaxAttempts = endpoint, 20 // the pages are read faster than the API's rate
		in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(10)}
		for i := 0; i < len(filters); i += 2 {
			in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeTermMatch, Field: &filters[i], Value: &filters[i+1]})
		}
		var all []string
		for p := pricing.NewGetProductsPaginator(pricing.NewFromConfig(cfg), in); p.HasMorePages(); {
			page, err := p.NextPage(t.Context())
			if err != nil {
				return nil, err
			}
			all = append(all, page.PriceList...)
		}
		return all, nil
	}
	machine := []string{"regionCode", "us-west-2", "instanceType", "m5.large"}
	all, err := ask("us-east-1", machine...)
	require.NoError(t, err)
	require.Len(t, all, 6)
	all, err = ask("us-east-1", append(machine, "operatingSystem", "Linux", "tenancy", "Shared", "preInstalledSw", "NA", "capacitystatus", "Used")...)
	require.NoError(t, err)
	require.Len(t, all, 1)
	var entry struct {
		Product struct{ Attributes map[string]string }
		Terms   struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct{ PricePerUnit map[string]string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(all[0]), &entry))
	require.Equal(t, "USW2-BoxUsage:m5.large", entry.Product.Attributes["usagetype"])
	for _, term := range entry.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			require.Equal(t, map[string]string{"USD": "0.0960000000"}, d.PricePerUnit)
		}
	}
	many, err := ask("us-east-1", "regionCode", "us-west-2", "operatingSystem", "Linux")
	require.NoError(t, err)
	require.Greater(t, len(many), 100, "several pages")

	none, err := ask("us-east-1", "regionCode", "us-west-2", "instanceType", "x9.huge")
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = ask("us-east-1", "colour", "red")
	require.ErrorContains(t, err, "InvalidParameterException")
	_, err = ask("us-west-2", machine...)
	require.ErrorContains(t, err, "no endpoint in us-west-2")
}
