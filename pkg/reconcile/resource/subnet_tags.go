package resource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile/graph"
)

// SubnetTags are the tags that a subnet which is somebody else's carries for
// the cluster, and loses with it (CAPA: TagUnmanagedNetworkResources). Only
// the cluster's own tag is removed: other clusters share the rest.
type SubnetTags struct {
	Subnet *graph.Ref[SubnetState]
	Tags   cloud.Tags
	Own    string // the key of the tag that is the cluster's alone
}

// SubnetTagsState are the cluster's tags on a subnet.
type SubnetTagsState struct{ Object }

var _ graph.Resource[SubnetTagsState] = (*SubnetTags)(nil)

// Needs implements graph.Resource.
func (t *SubnetTags) Needs() []graph.Edge { return graph.On(t.Subnet) }

// Find implements graph.Resource.
func (t *SubnetTags) Find(ctx context.Context, c *cloud.Clients) (*SubnetTagsState, error) {
	subnet, ok := t.Subnet.Found()
	if !ok {
		return nil, nil //nolint:nilnil // none is Find's documented answer
	}
	all, err := describeSubnets(ctx, c, "subnets of "+subnet.VPC, []types.Filter{cloud.Filter("vpc-id", subnet.VPC)})
	for _, x := range all {
		if _, tagged := x.Tags[t.Own]; x.ID == subnet.ID && tagged {
			return &SubnetTagsState{x.Object}, err
		}
	}
	return nil, err
}

// Diff implements graph.Resource.
func (t *SubnetTags) Diff(have *SubnetTagsState) (d graph.Diff) {
	d.Tags(have.Tags, t.Tags)
	return d
}

// Create implements graph.Resource.
func (t *SubnetTags) Create(ctx context.Context, c *cloud.Clients) (*SubnetTagsState, error) {
	id := t.Subnet.CloudID()
	return &SubnetTagsState{Object{id, t.Tags}}, tag(ctx, c, id, t.Tags)
}

// Update implements graph.Resource.
func (t *SubnetTags) Update(ctx context.Context, c *cloud.Clients, have *SubnetTagsState, _ graph.Diff) (*SubnetTagsState, error) {
	o, err := retagged(ctx, c, have.Object, t.Tags)
	return &SubnetTagsState{o}, err
}

// Delete implements graph.Resource. The tags for load balancers stay while
// another cluster uses the subnet.
func (t *SubnetTags) Delete(ctx context.Context, c *cloud.Clients, have *SubnetTagsState) error {
	gone := []types.Tag{{Key: aws.String(t.Own)}}
	shared := slices.ContainsFunc(slices.Collect(maps.Keys(have.Tags)), func(k string) bool {
		return strings.HasPrefix(k, cloud.CloudProviderTagPrefix) && k != t.Own
	})
	if !shared {
		for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
			if k != t.Own && have.Tags[k] == t.Tags[k] {
				gone = append(gone, types.Tag{Key: &k})
			}
		}
	}
	_, err := c.EC2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{have.ID}, Tags: gone})
	return err
}
