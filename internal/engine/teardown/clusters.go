package teardown

import (
	"context"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// Clusters counts the resources with a tag of each cluster of the region, by cluster name
// and kind. Some resources keep their tags for an hour after they are deleted; these are
// not counted.
func Clusters(ctx context.Context, c *cloud.Clients) (map[string]map[string]int, error) {
	tags, err := describeTags(ctx, c, cloud.Filter("key", cloud.ClusterTagPrefix+"*"), cloud.Filter("value", cloud.Owned))
	if err != nil {
		return nil, err
	}
	kinds := map[types.ResourceType]*kind.Kind{}
	for _, k := range aws.Kinds() {
		if kinds[k.Type] == nil {
			kinds[k.Type] = k
		}
	}
	exist, asked, err := existing(ctx, c, tags, kinds)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]int{}
	for _, t := range tags {
		if asked[t.ResourceType] && !exist[awssdk.ToString(t.ResourceId)] {
			continue
		}
		name := strings.TrimPrefix(awssdk.ToString(t.Key), cloud.ClusterTagPrefix)
		if found[name] == nil {
			found[name] = map[string]int{}
		}
		of := string(t.ResourceType) // EC2 has a hundred resource types; those without a kind keep their names
		if k := kinds[t.ResourceType]; k != nil {
			of = k.Name
		}
		found[name][of]++
	}
	return found, nil
}

// existing returns the IDs of existing resources of the types that keep their tags for an
// hour after deletion, and which types these are.
func existing(
	ctx context.Context,
	c *cloud.Clients,
	tags []types.TagDescription,
	kinds map[types.ResourceType]*kind.Kind,
) (exist map[string]bool, asked map[types.ResourceType]bool, err error) {
	exist, asked = map[string]bool{}, map[types.ResourceType]bool{}
	for _, t := range tags {
		k := kinds[t.ResourceType]
		if k == nil || k.Existing == nil || asked[t.ResourceType] {
			continue
		}
		asked[t.ResourceType] = true
		ids, err := k.Existing(ctx, c, cloud.Filter("tag-key", cloud.ClusterTagPrefix+"*"))
		if err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			exist[id] = true
		}
	}
	return exist, asked, nil
}
