// Package resources lists the resources of a cluster in an AWS account, by tag.
package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// perPage is the maximum page size of GetResources.
const perPage = 100

// Resource is one resource in AWS. The JSON names are those of upstream's clusterawsadm;
// Ownership is an addition, and set only with Options.All.
type Resource struct {
	Partition string `json:"partition"`
	Service   string `json:"service"`
	Region    string `json:"region"`
	AccountID string `json:"account_id"`
	Resource  string `json:"resource"` // "vpc/vpc-0123"
	ARN       string `json:"arn"`
	// Ownership says by which tag the resource was found: OwnedByCAPA, or the value
	// "owned" or "shared" of the cloud controller's tag.
	Ownership string `json:"ownership,omitempty"`
}

// Values of Resource.Ownership.
const (
	// OwnedByCAPA marks resources that Cluster API Provider AWS or this program has
	// created.
	OwnedByCAPA = "capa"
	// Owned marks resources that others have created for the cluster: load balancers,
	// volumes and security groups of the cloud controller and of drivers.
	Owned = "owned"
	// Shared marks resources that the cluster may use and that are not deleted with it.
	Shared = "shared"
)

// Options select what to list.
type Options struct {
	Cluster string // name of the Cluster object
	// All also lists resources with the tag of the cloud controller,
	// kubernetes.io/cluster/NAME.
	All bool
}

// List returns the resources of a cluster in the region of the configuration, in the
// order of AWS, those with CAPA's tag first, without duplicates.
func List(ctx context.Context, cfg aws.Config, o Options) (all []Resource, err error) {
	c := tagging.NewFromConfig(awshttp.Checked(cfg))
	seen := map[string]bool{}
	add := func(found []types.ResourceTagMapping, ownership func(tags []types.Tag) string) error {
		for _, r := range found {
			id := aws.ToString(r.ResourceARN)
			if seen[id] {
				continue
			}
			seen[id] = true
			parsed, err := arn.Parse(id)
			if err != nil {
				return fmt.Errorf("AWS lists a resource with the invalid ARN %q: %w", id, err)
			}
			all = append(all, Resource{parsed.Partition, parsed.Service, parsed.Region, parsed.AccountID, parsed.Resource, id, ownership(r.Tags)})
		}
		return nil
	}
	found, err := tagged(ctx, c, cloud.ClusterTagPrefix+o.Cluster, cloud.Owned)
	if err != nil {
		return nil, err
	}
	if !o.All {
		return all, add(found, func([]types.Tag) string { return "" })
	}
	if err := add(found, func([]types.Tag) string { return OwnedByCAPA }); err != nil {
		return nil, err
	}
	key := cloud.CloudProviderTagPrefix + o.Cluster
	if found, err = tagged(ctx, c, key); err != nil {
		return nil, err
	}
	err = add(found, func(tags []types.Tag) string { return valueOf(tags, key) })
	slices.SortStableFunc(all, func(x, y Resource) int { return rank(x) - rank(y) })
	return all, err
}

// valueOf returns the value of a tag. The cloud controller treats every value but
// "shared" as "owned".
func valueOf(tags []types.Tag, key string) string {
	for _, t := range tags {
		if aws.ToString(t.Key) == key && strings.EqualFold(aws.ToString(t.Value), Shared) {
			return Shared
		}
	}
	return Owned
}

func rank(r Resource) int { return slices.Index([]string{OwnedByCAPA, Owned, Shared}, r.Ownership) }

// tagged lists the resources that have a tag, with one of the values if any are given.
func tagged(ctx context.Context, c *tagging.Client, key string, values ...string) (all []types.ResourceTagMapping, err error) {
	pages := tagging.NewGetResourcesPaginator(c, &tagging.GetResourcesInput{
		TagFilters: []types.TagFilter{{Key: &key, Values: values}}, ResourcesPerPage: aws.Int32(perPage),
	})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list resources with the tag %s: %w", key, err)
		}
		all = append(all, page.ResourceTagMappingList...)
	}
	return all, nil
}
