package elb

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// describeClassicTags returns the tags of a Classic Load Balancer.
func describeClassicTags(ctx context.Context, c *cloud.Clients, name string) (cloud.Tags, error) {
	return batchTags(ctx, c, "classic", name, false, func(ctx context.Context, names []string, found map[string]cloud.Tags) error {
		out, err := c.ELB.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: names})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			tags := cloud.Tags{}
			for _, t := range d.Tags {
				tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
			found[aws.ToString(d.LoadBalancerName)] = tags
		}
		return nil
	})
}

func classicSDKTags(t cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}
