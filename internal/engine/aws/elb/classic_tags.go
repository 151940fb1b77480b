package elb

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// describeClassicTags returns the tags of a Classic Load Balancer.
func describeClassicTags(ctx context.Context, c *cloud.Clients, name string) (cloud.Tags, error) {
	return batchTags(ctx, c, tagAPI{name: "classic", describe: describeSomeClassic, gone: goneClassic}, name, false)
}

// describeSomeClassic adds the tags of some Classic Load Balancers to found.
func describeSomeClassic(ctx context.Context, c *cloud.Clients, names []string, found map[string]cloud.Tags) error {
	out, err := c.ELB.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: names})
	if err != nil {
		return err
	}
	for _, d := range out.TagDescriptions {
		found[aws.ToString(d.LoadBalancerName)] = cloud.TagsFrom(d.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	}
	return nil
}

// goneClassic returns those of some Classic Load Balancers that AWS does not list.
func goneClassic(ctx context.Context, c *cloud.Clients, names []string) ([]string, error) {
	all, err := ClassicLoadBalancers(cloud.Live(ctx), c)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(all, func(s ClassicLoadBalancerState) bool { return s.ID == name })
	}), err
}

func classicSDKTags(t cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

// changeClassicTags makes the changes of tags that d lists on a Classic Load Balancer.
func changeClassicTags(ctx context.Context, c *cloud.Clients, name string, want cloud.Tags, d plan.Diff) error {
	_, err := identity.ChangeTags(nil, want, d, func() error {
		_, err := c.ELB.AddTags(ctx, &elb.AddTagsInput{LoadBalancerNames: []string{name}, Tags: classicSDKTags(want)})
		return err
	}, func(keys []string) error {
		in := &elb.RemoveTagsInput{LoadBalancerNames: []string{name}}
		for _, key := range keys {
			in.Tags = append(in.Tags, types.TagKeyOnly{Key: &key})
		}
		_, err := c.ELB.RemoveTags(ctx, in)
		return err
	})
	return err
}
