package elb

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// describeTags returns the tags of one resource of Elastic Load Balancing.
func describeTags(ctx context.Context, c *cloud.Clients, arn string) (cloud.Tags, error) {
	return batchTags(ctx, c, "elbv2", arn, func(ctx context.Context, arns []string, found map[string]cloud.Tags) error {
		out, err := c.ELBV2.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: arns})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			tags := cloud.Tags{}
			for _, t := range d.Tags {
				tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
			found[aws.ToString(d.ResourceArn)] = tags
		}
		return nil
	})
}

// tagsPerCall is the number of resources that DescribeTags accepts.
const tagsPerCall = 20

// batchTags returns the tags of one resource. Concurrent callers share the calls of
// describe, which adds the tags of some resources to found. If one of them is deleted at
// that moment, by whomever it belongs to, AWS describes none: then each is described alone.
func batchTags(
	ctx context.Context,
	c *cloud.Clients,
	api, id string,
	describe func(ctx context.Context, ids []string, found map[string]cloud.Tags) error,
) (cloud.Tags, error) {
	return cloud.Remember(ctx, c, "tags of "+api+" "+id, func(ctx context.Context) (cloud.Tags, error) {
		type described struct {
			tags cloud.Tags
			err  error
		}
		d, err := cloud.Batch(ctx, c, api+" tags", id, func(ctx context.Context, ids []string) ([]described, error) {
			found, missing := map[string]cloud.Tags{}, map[string]error{}
			for part := range slices.Chunk(ids, tagsPerCall) {
				err := describe(ctx, part, found)
				if cloud.NotFound(err) {
					for _, id := range part {
						missing[id] = describe(ctx, []string{id}, found)
					}
				} else if err != nil {
					return nil, err
				}
			}
			out := make([]described, len(ids))
			for i, id := range ids {
				out[i] = described{found[id], missing[id]}
			}
			return out, nil
		})
		return d.tags, cmp.Or(err, d.err)
	})
}

func sdkTags(t cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

func addTags(ctx context.Context, c *cloud.Clients, arn string, tags cloud.Tags) error {
	_, err := c.ELBV2.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{arn}, Tags: sdkTags(tags)})
	return err
}

// filterByOwner returns the resources of a list that are deleted with a cluster.
func filterByOwner[S interface{ ResourceTags() cloud.Tags }](
	all []S,
	of kind.Owner,
	describe func(S) (cloud.Tags, error),
	set func(*S, cloud.Tags),
) ([]S, error) {
	all, err := withTags(all, describe, set)
	return slices.DeleteFunc(all, func(s S) bool { return !of.Has(s.ResourceTags()) }), err
}

// withTags returns the resources of a list with their tags. It describes the tags
// concurrently, so that they share calls.
func withTags[S any](all []S, describe func(S) (cloud.Tags, error), set func(*S, cloud.Tags)) (out []S, err error) {
	var wg crash.Group
	tags, errs := make([]cloud.Tags, len(all)), make([]error, len(all))
	for i, s := range all {
		wg.Go(func() { tags[i], errs[i] = describe(s) })
	}
	wg.Wait()
	for i, s := range all {
		if cloud.NotFound(errs[i]) {
			errs[i] = nil // it has been deleted since it was listed
			continue
		}
		set(&s, tags[i])
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}
