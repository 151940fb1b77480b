// Package pricing simulates the AWS Price List Query API: the prices of what a cluster of
// Cluster API consists of, in the main regions.
package pricing

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Service is the simulated Price List Query API.
type Service struct{ *core.Account }

// New registers the operations.
func New(a *core.Account) *Service {
	svc := &Service{a}
	core.OnEverywhere(a, svc.getProducts, "ServiceCode", "Filters", "FormatVersion", "MaxResults", "NextToken")
	a.Limit(pricing.ServiceID, limits())
	return svc
}

// endpoints lists the regions that have the API ("AWS Billing and Cost Management endpoints
// and quotas" in the AWS General Reference).
func endpoints(partition string) []string {
	switch partition {
	case "aws-cn":
		return []string{"cn-northwest-1"}
	case "aws":
		return []string{"us-east-1", "eu-central-1", "ap-south-1"}
	}
	return nil // AWS GovCloud (US) has none
}

// getProducts returns the products that match all filters. AWS does not say what it does
// with a filter for an attribute that no product has; here it is refused.
func (svc *Service) getProducts(ctx context.Context, in *pricing.GetProductsInput) (*pricing.GetProductsOutput, error) {
	if region := awsmiddleware.GetRegion(ctx); !slices.Contains(endpoints(svc.Partition()), region) {
		return nil, core.Fail("UnknownEndpoint", "the Price List Query API has no endpoint in %s", region)
	}
	var found []product
	for _, p := range products() {
		if p.service == aws.ToString(in.ServiceCode) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, &types.NotFoundException{Message: aws.String("The service code does not exist.")}
	}
	for _, f := range in.Filters {
		field, value := aws.ToString(f.Field), aws.ToString(f.Value)
		if f.Type != types.FilterTypeTermMatch {
			return nil, core.NotSimulated("the filter type %q", f.Type)
		}
		if !slices.ContainsFunc(found, func(p product) bool { return p.field(field) != "" }) {
			return nil, &types.InvalidParameterException{Message: aws.String("no product has the attribute " + field)}
		}
		found = slices.DeleteFunc(found, func(p product) bool { return !strings.EqualFold(p.field(field), value) })
		if len(found) == 0 {
			break
		}
	}
	part, next, err := core.Page(svc.Account, found, in.NextToken, in.MaxResults, 100)
	out := &pricing.GetProductsOutput{FormatVersion: aws.String("aws_v1"), NextToken: next}
	for _, p := range part {
		data, err := json.Marshal(p.document())
		if err != nil {
			return nil, err
		}
		out.PriceList = append(out.PriceList, string(data))
	}
	return out, err
}
