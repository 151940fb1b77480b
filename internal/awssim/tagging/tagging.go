package tagging

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulate() {
	core.On(svc.Account, svc.getResources, "TagFilters", "ResourceTypeFilters", "ResourcesPerPage", "PaginationToken")
}

// everythingTagged lists the resources of all services that have tags, as the
// Resource Groups Tagging API finds them, in order of ARN; AWS promises none.
// Three behaviours it does not imitate: AWS also lists what had tags once, AWS goes
// on for a while listing what has been deleted, and new tags show up late
// (here: with the account's lag, counted from when the resource was created). Roles
// and instance profiles are of no region, and AWS does not list them either.
func (svc *Service) everythingTagged() (all []core.Tagged) {
	for _, service := range svc.services {
		for _, t := range service.Tagged() {
			if len(t.Tags) > 0 && svc.Visible(t.Born) {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(x, y core.Tagged) int { return strings.Compare(x.ARN, y.ARN) })
	return all
}

func invalid(format string, args ...any) error {
	return &types.InvalidParameterException{Message: aws.String(fmt.Sprintf(format, args...))}
}

// getResources lists tagged resources that match all filters: each with one of its values
// or, without values, with its key.
func (svc *Service) getResources(in *tagging.GetResourcesInput) (*tagging.GetResourcesOutput, error) {
	if n := in.ResourcesPerPage; n != nil && (*n < 1 || *n > 100) {
		return nil, invalid("ResourcesPerPage must be between 1 and 100")
	}
	if len(in.TagFilters) > 50 || len(in.ResourceTypeFilters) > 100 {
		return nil, invalid("there may be 50 tag filters and 100 resource types")
	}
	for _, f := range in.TagFilters {
		if aws.ToString(f.Key) == "" || len(f.Values) > 20 {
			return nil, invalid("a tag filter has a key, and 20 values at most")
		}
	}
	list := []types.ResourceTagMapping{}
	for _, r := range svc.everythingTagged() {
		if ofTypes(r.ARN, in.ResourceTypeFilters) && passesTagFilters(r.Tags, in.TagFilters) {
			list = append(list, types.ResourceTagMapping{
				ResourceARN: aws.String(r.ARN), Tags: core.WriteTags(maps.Clone(r.Tags), func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
			})
		}
	}
	size := int32(50)
	core.Set(&size, in.ResourcesPerPage)
	part, next, err := core.Page(svc.Account, list, in.PaginationToken, &size, 100)
	if err != nil {
		return nil, &types.PaginationTokenExpiredException{Message: aws.String("The pagination token is not valid.")}
	}
	// On the last page, the token is an empty string and not missing.
	return &tagging.GetResourcesOutput{ResourceTagMappingList: part, PaginationToken: aws.String(aws.ToString(next))}, nil
}

// ofTypes reports whether an ARN has one of the types: "ec2", or "ec2:instance".
func ofTypes(arn string, kinds []string) bool {
	parts := strings.SplitN(arn, ":", 6)
	resource, _, _ := strings.Cut(parts[5], "/")
	resource, _, _ = strings.Cut(resource, ":")
	if parts[2] == "s3" {
		resource = "bucket"
	}
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k string) bool { return k == parts[2] || k == parts[2]+":"+resource })
}

// passesTagFilters reports whether tags match all filters.
func passesTagFilters(tags map[string]string, filters []types.TagFilter) bool {
	return !slices.ContainsFunc(filters, func(f types.TagFilter) bool {
		v, ok := tags[*f.Key]
		return !ok || len(f.Values) > 0 && !slices.Contains(f.Values, v)
	})
}
