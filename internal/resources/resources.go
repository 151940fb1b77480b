// Package resources lists what a cluster has in an AWS account, by tag.
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

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

// perPage is the largest page that the tagging API gives.
const perPage = 100

// Resource is one thing in AWS. The names in JSON are those that clusterawsadm
// has always printed; Ownership is new, and there only with All.
type Resource struct {
	Partition string `json:"partition"`
	Service   string `json:"service"`
	Region    string `json:"region"`
	AccountID string `json:"account_id"`
	Resource  string `json:"resource"` // "vpc/vpc-0123"
	ARN       string `json:"arn"`
	// Ownership says by which tag it was found: OwnedByCAPA, or, of the
	// cloud controller's tag, its value "owned" or "shared".
	Ownership string `json:"ownership,omitempty"`
}

// What resources are to a cluster.
const (
	// OwnedByCAPA is what Cluster API Provider AWS made, or this program.
	OwnedByCAPA = "capa"
	// Owned is what was made for the cluster by others: load balancers,
	// volumes and security groups of the cloud controller and of drivers.
	Owned = "owned"
	// Shared is what the cluster may use, and does not go with it.
	Shared = "shared"
)

// Options say what to list.
type Options struct {
	Cluster string // name of the Cluster object
	// All lists also what carries the tag of the cloud controller,
	// "kubernetes.io/cluster/NAME".
	All bool
}

// List returns what a cluster has in the region of the configuration: in the
// order in which AWS lists it, what CAPA owns first, each thing once.
func List(ctx context.Context, cfg aws.Config, o Options) (all []Resource, err error) {
	c := tagging.NewFromConfig(cfg)
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
				return fmt.Errorf("AWS lists something with the ARN %q: %w", id, err)
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
	ordered.By(all, func(x, y Resource) int { return rank(x) - rank(y) })
	return all, err
}

// valueOf is the value of a tag. The cloud controller takes any but "shared"
// for "owned".
func valueOf(tags []types.Tag, key string) string {
	for _, t := range tags {
		if aws.ToString(t.Key) == key && strings.EqualFold(aws.ToString(t.Value), Shared) {
			return Shared
		}
	}
	return Owned
}

func rank(r Resource) int { return slices.Index([]string{OwnedByCAPA, Owned, Shared}, r.Ownership) }

// tagged lists what has a tag, with one of those values, if there are any.
func tagged(ctx context.Context, c *tagging.Client, key string, values ...string) (all []types.ResourceTagMapping, err error) {
	pages := tagging.NewGetResourcesPaginator(c, &tagging.GetResourcesInput{
		TagFilters: []types.TagFilter{{Key: &key, Values: values}}, ResourcesPerPage: aws.Int32(perPage),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list what is tagged %s: %w", key, err)
		}
		all = append(all, page.ResourceTagMappingList...)
	}
	return all, nil
}
