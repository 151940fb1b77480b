package elb

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// describeTags returns the tags of one resource of Elastic Load Balancing.
func describeTags(ctx context.Context, c *cloud.Clients, arn string) (cloud.Tags, error) {
	return describeTagsOf(ctx, c, arn, time.Time{})
}

// describeTagsOf is describeTags for a resource that was created at a time; zero if that is not known.
func describeTagsOf(ctx context.Context, c *cloud.Clients, arn string, born time.Time) (cloud.Tags, error) {
	old := !born.IsZero() && c.Now().Sub(born) > cloud.ConsistencyDelay
	return batchTags(ctx, c, tagAPI{name: "elbv2", describe: describeSome, gone: gone}, arn, old)
}

// describeSome adds the tags of some resources to found.
func describeSome(ctx context.Context, c *cloud.Clients, arns []string, found map[string]cloud.Tags) error {
	out, err := c.ELBV2.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: arns})
	if err != nil {
		return err
	}
	for _, d := range out.TagDescriptions {
		found[aws.ToString(d.ResourceArn)] = cloud.TagsFrom(d.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	}
	return nil
}

// gone returns those of some load balancers and target groups that AWS does not list.
func gone(ctx context.Context, c *cloud.Clients, arns []string) (out []string, err error) {
	ctx = cloud.Live(ctx)
	balancers, errBalancers := unlisted(arns, ":loadbalancer/", func() ([]LoadBalancerState, error) { return LoadBalancers(ctx, c) })
	groups, errGroups := unlisted(arns, ":targetgroup/", func() ([]TargetGroupState, error) { return TargetGroups(ctx, c) })
	return append(balancers, groups...), cmp.Or(errBalancers, errGroups)
}

// unlisted returns those of some ARNs of a type that a list does not have.
func unlisted[S interface{ CloudID() string }](arns []string, part string, list func() ([]S, error)) (out []string, err error) {
	for _, arn := range arns {
		if strings.Contains(arn, part) {
			out = append(out, arn)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	all, err := list()
	return slices.DeleteFunc(out, func(arn string) bool {
		return slices.ContainsFunc(all, func(s S) bool { return s.CloudID() == arn })
	}), err
}

// tagsPerCall is the number of resources that DescribeTags accepts.
const tagsPerCall = 20

// tagAPI is one of the two APIs of Elastic Load Balancing, which describe the tags of several resources at once.
type tagAPI struct {
	name     string
	describe func(ctx context.Context, c *cloud.Clients, ids []string, found map[string]cloud.Tags) error
	gone     func(ctx context.Context, c *cloud.Clients, ids []string) ([]string, error) // those that AWS does not list
}

// batchTags returns the tags of one resource. Callers at the same time share one call for all of their resources. AWS
// answers such a call with an error if one of the resources has just been deleted, also one of another cluster: see each.
// old says that the resource was created long enough ago for AWS to know it everywhere.
func batchTags(ctx context.Context, c *cloud.Clients, api tagAPI, id string, old bool) (cloud.Tags, error) {
	return cloud.Remember(ctx, c, "tags of "+api.name+" "+id, func(ctx context.Context) (cloud.Tags, error) {
		type described struct {
			tags cloud.Tags
			err  error
		}
		ask := func(ctx context.Context) (described, error) {
			return cloud.Batch(ctx, c, api.name+" tags", id, func(ctx context.Context, ids []string) ([]described, error) {
				found, missing := map[string]cloud.Tags{}, map[string]error{}
				for part := range slices.Chunk(ids, tagsPerCall) {
					if err := api.each(ctx, c, part, found, missing); err != nil {
						return nil, err
					}
				}
				out := make([]described, len(ids))
				for i, id := range ids {
					out[i] = described{found[id], missing[id]}
				}
				return out, nil
			})
		}
		d, err := cloud.RememberUntil(ctx, c, "owner of "+api.name+" "+id, func(ctx context.Context) (described, time.Time, error) {
			d, err := ask(ctx)
			until := c.Clock.Now()
			if ofAnotherCluster(c, d.tags) || old && cloud.NotFound(d.err) {
				until = until.Add(foreignTags)
			}
			return d, until, err
		})
		return d.tags, cmp.Or(err, d.err)
	})
}

// foreignTags is for how long the tags of a resource of another cluster are remembered, and for how
// long it is remembered that an old resource does not exist, because AWS lists load balancers for a
// while after their deletion. With 50 clusters in an account, a run would otherwise describe the tags of
// 50 load balancers whenever it looks for its own.
const foreignTags = 10 * time.Minute

// ofAnotherCluster reports whether tags are those of a resource that only another cluster owns.
func ofAnotherCluster(c *cloud.Clients, tags cloud.Tags) bool {
	return len(tags.Owners()) > 0 && tags[c.OwnerTag()] == "" && tags[cloud.CloudProviderTagPrefix+c.Cluster] == ""
}

// each describes resources with as few calls as possible, although AWS describes none of a call if one of them does not
// exist: then it leaves out those that AWS does not list any more. It stores the error of each resource that does not
// exist in missing.
func (api tagAPI) each(ctx context.Context, c *cloud.Clients, ids []string, found map[string]cloud.Tags, missing map[string]error) error {
	err := api.describe(ctx, c, ids, found)
	switch {
	case !cloud.NotFound(err):
		return err
	case len(ids) == 1:
		missing[ids[0]] = err
		return nil
	}
	deleted, unlisted := api.gone(ctx, c, ids)
	if unlisted != nil {
		return unlisted
	}
	for _, id := range deleted {
		missing[id] = err
	}
	there := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return missing[id] != nil })
	return api.inParts(ctx, c, there, found, missing)
}

// inParts describes resources, of which AWS may still list some that it has deleted: if a call fails, it asks again in
// groups of five, and in the group that fails for each resource.
func (api tagAPI) inParts(ctx context.Context, c *cloud.Clients, ids []string, found map[string]cloud.Tags, missing map[string]error) error {
	if len(ids) == 0 {
		return nil
	}
	err := api.describe(ctx, c, ids, found)
	switch {
	case !cloud.NotFound(err):
		return err
	case len(ids) == 1:
		missing[ids[0]] = err
		return nil
	}
	const part = 5
	size := part
	if len(ids) <= part {
		size = 1
	}
	for some := range slices.Chunk(ids, size) {
		if err := api.inParts(ctx, c, some, found, missing); err != nil {
			return err
		}
	}
	return nil
}

func sdkTags(t cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

// changeTags makes the changes of tags that d lists, and returns the tags that the resource has then.
func changeTags(ctx context.Context, c *cloud.Clients, arn string, have, want cloud.Tags, d plan.Diff) (cloud.Tags, error) {
	return identity.ChangeTags(have, want, d, func() error {
		_, err := c.ELBV2.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{arn}, Tags: sdkTags(want)})
		return err
	}, func(keys []string) error {
		_, err := c.ELBV2.RemoveTags(ctx, &elb.RemoveTagsInput{ResourceArns: []string{arn}, TagKeys: keys})
		return err
	})
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
