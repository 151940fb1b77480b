package reconcile

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
)

// ClusterSummary is one cluster of an account, found by its tags.
type ClusterSummary struct {
	Name   string         `json:"name"`
	Region string         `json:"region"`
	Kinds  map[string]int `json:"resources"` // number of resources of each kind
}

// List finds the clusters of the region of the target by their tags.
func List(ctx context.Context, t Target) ([]ClusterSummary, error) {
	c := cloud.New(t.Config, "", t.options())
	all, err := teardown.Clusters(cloud.ReadOnly(ctx), c)
	if err != nil {
		return nil, err
	}
	var out []ClusterSummary
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, ClusterSummary{Name: name, Region: t.Config.Region, Kinds: all[name]})
	}
	return out, nil
}

// Regions lists the regions that are enabled in the account.
func Regions(ctx context.Context, t Target) (names []string, err error) {
	out, err := cloud.New(t.Config, "", t.options()).EC2.DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Regions {
		names = append(names, *r.RegionName)
	}
	slices.Sort(names)
	return names, nil
}
