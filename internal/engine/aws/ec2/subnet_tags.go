package ec2

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// SubnetTags are the tags of the cluster on an existing subnet (CAPA: feature gate
// TagUnmanagedNetworkResources). They are removed with the cluster. Tags that existed
// before are not changed: an additional tag lists the keys that were added.
type SubnetTags struct {
	Subnet *graph.Ref[SubnetState]
	Tags   cloud.Tags
}

// SubnetTagsState are the tags of a subnet, and the keys that were added for the cluster.
type SubnetTagsState struct {
	identity.Object
	Added  []string // keys
	others []string // keys that were added for other clusters
}

var _ graph.Managed[SubnetTagsState] = (*SubnetTags)(nil)

// AddedTagPrefix with the name of the cluster is the key of the additional tag. The value
// lists the keys of the added tags, separated by spaces. It always contains the cloud
// provider tag, with existedPrefix if that tag existed before.
const (
	AddedTagPrefix = "clusterawsadm/added/"
	existedPrefix  = "="
)

// Needs implements graph.Desired.
func (t *SubnetTags) Needs() []graph.Edge { return graph.On(t.Subnet) }

// Find implements graph.Desired.
func (t *SubnetTags) Find(ctx context.Context, c *cloud.Clients) (*SubnetTagsState, error) {
	subnet, ok := t.Subnet.Found()
	if !ok {
		return nil, nil
	}
	all, err := SubnetsOf(ctx, c, subnet.VPC)
	for _, x := range all {
		if x.ID == subnet.ID {
			return subnetTagsState(c, x), err
		}
	}
	return nil, err
}

// Diff implements graph.Desired. It does not compare tags that existed before.
func (t *SubnetTags) Diff(have *SubnetTagsState) (d plan.Diff) {
	want := maps.Clone(t.Tags)
	maps.DeleteFunc(want, func(k, _ string) bool {
		_, there := have.Tags[k]
		return there && !slices.Contains(have.Added, k)
	})
	d.Tags(have.Tags, want)
	dropped := t.dropped(have)
	d.Untag(have.Tags, dropped)
	for _, k := range dropped {
		if _, there := have.Tags[k]; !there { // a run has died between the two writes, or somebody has removed it
			d.Set("added tag", k, "")
		}
	}
	return d
}

// dropped lists the keys of tags that were added for the cluster and are not in the manifest any more.
func (t *SubnetTags) dropped(have *SubnetTagsState) (keys []string) {
	for _, k := range have.Added {
		if _, wanted := t.Tags[k]; !wanted && !strings.HasPrefix(k, existedPrefix) && !slices.Contains(have.others, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Create implements graph.Creator.
func (t *SubnetTags) Create(ctx context.Context, c *cloud.Clients) (*SubnetTagsState, error) {
	subnet, _ := t.Subnet.Found()
	return t.Update(ctx, c, &SubnetTagsState{Object: subnet.Object, others: addedForOthers(c, subnet.Tags)}, nil)
}

// Update implements graph.Updater. A tag that was added for another cluster is listed for
// this one, too; the last of them removes it. Tags are removed before the list is written: if the run dies in between, the next one still finds them
// in the list.
func (t *SubnetTags) Update(ctx context.Context, c *cloud.Clients, have *SubnetTagsState, d plan.Diff) (*SubnetTagsState, error) {
	tags, dropped, after := cloud.Tags{}, t.dropped(have), have.Object
	if gone := d.Untagged(); len(gone) > 0 {
		if err := untag(ctx, c, []string{have.ID}, gone); err != nil {
			return nil, err
		}
		after.Tags = after.Tags.Without(gone)
	}
	added := slices.DeleteFunc(slices.Clone(have.Added), func(x string) bool {
		_, again := t.Tags[strings.TrimPrefix(x, existedPrefix)]
		return again || slices.Contains(dropped, x)
	})
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		_, there := have.Tags[k]
		switch {
		case !there || slices.Contains(have.Added, k) || slices.Contains(have.others, k):
			added, tags[k] = append(added, k), t.Tags[k]
		case strings.HasPrefix(k, cloud.CloudProviderTagPrefix):
			added = append(added, existedPrefix+k)
		}
	}
	tags[AddedTagPrefix+c.Cluster] = strings.Join(added, " ")
	after.Tags = after.Tags.With(tags)
	return &SubnetTagsState{Object: after, Added: added, others: have.others}, createTags(ctx, c, have.ID, tags)
}

// Delete implements graph.Deleter. It does not remove tags that are listed for another
// cluster. If CAPA created another cluster in the subnet, which has no such list, it
// removes only the cloud provider tag.
func (t *SubnetTags) Delete(ctx context.Context, c *cloud.Clients, have *SubnetTagsState) error {
	listed := slices.Concat(have.Added, have.others)
	used := slices.ContainsFunc(slices.Collect(maps.Keys(have.Tags)), func(k string) bool {
		return strings.HasPrefix(k, cloud.CloudProviderTagPrefix) && !slices.Contains(listed, k) && !slices.Contains(listed, existedPrefix+k)
	})
	gone := []types.Tag{{Key: aws.String(AddedTagPrefix + c.Cluster)}}
	for _, k := range have.Added {
		own, kept := strings.HasPrefix(k, cloud.CloudProviderTagPrefix), strings.HasPrefix(k, existedPrefix)
		if own || !kept && !used && !slices.Contains(have.others, k) {
			gone = append(gone, types.Tag{Key: &k})
		}
	}
	_, err := c.EC2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{have.ID}, Tags: gone})
	return err
}

// addedForOthers lists the keys of the tags that were added for other clusters.
func addedForOthers(c *cloud.Clients, tags cloud.Tags) (keys []string) {
	for k, list := range tags {
		if name, is := strings.CutPrefix(k, AddedTagPrefix); is && name != c.Cluster {
			keys = append(keys, strings.Fields(list)...)
		}
	}
	return keys
}

// subnetTagsState returns the tags of the cluster on a subnet, or nil.
func subnetTagsState(c *cloud.Clients, s SubnetState) *SubnetTagsState {
	list, ok := s.Tags[AddedTagPrefix+c.Cluster]
	if !ok {
		return nil
	}
	return &SubnetTagsState{s.Object, strings.Fields(list), addedForOthers(c, s.Tags)}
}

// TaggedSubnets lists the existing subnets with tags of the cluster.
func TaggedSubnets(ctx context.Context, c *cloud.Clients) (out []SubnetTagsState, err error) {
	all, err := DescribeSubnets(ctx, c, "subnets with added tags", []types.Filter{cloud.Filter("tag-key", AddedTagPrefix+c.Cluster)})
	for _, x := range all {
		if s := subnetTagsState(c, x); s != nil {
			out = append(out, *s)
		}
	}
	return out, err
}

// SubnetTagsKind is the name of the kind of tags of existing subnets.
const SubnetTagsKind = "subnet-tags"

// subnetTagsKind declares tags of existing subnets.
func subnetTagsKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: SubnetTagsKind, Borrowed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeSubnet,
		ReadActions: []string{"ec2:DescribeSubnets"}, Statement: kind.Network, Actions: []string{"ec2:CreateTags", "ec2:DeleteTags"},
	}, kind.Functions[SubnetTagsState]{
		List: kind.Tagged(TaggedSubnets), Delete: &SubnetTags{},
	})
}
