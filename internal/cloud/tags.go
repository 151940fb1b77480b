package cloud

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Tag keys that everything of a cluster carries, byte for byte CAPA's
// (facts B.2), and the one that is ours.
const (
	// ClusterTagPrefix is followed by the name of the cluster; the value is
	// "owned".
	ClusterTagPrefix = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	// RoleTag says what a thing is for.
	RoleTag = "sigs.k8s.io/cluster-api-provider-aws/role"
	// CloudProviderTagPrefix is followed by the name of the cluster; it is
	// what the AWS cloud controller manager goes by.
	CloudProviderTagPrefix = "kubernetes.io/cluster/"
	// ResourceTag holds the ID of the node of our graph: the identity of a thing,
	// since users may change its Name.
	ResourceTag = "clusterawsadm/resource"
	// TemplateTag names what a machine was made from, so that a later run can
	// tell whether it would be made differently.
	TemplateTag = "clusterawsadm/template"
	// Owned is the value of the cluster tags of a thing that goes with the
	// cluster.
	Owned = "owned"
)

// Tags are the tags of one thing, by key.
type Tags map[string]string

// With returns the tags and more; more wins.
func (t Tags) With(more Tags) Tags {
	out := maps.Clone(t)
	if out == nil {
		out = Tags{}
	}
	maps.Copy(out, more)
	return out
}

// EC2 returns the tags as EC2 takes them, in order of key.
func (t Tags) EC2() []types.Tag {
	var out []types.Tag
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

// On returns the tags as an EC2 create call takes them, for each kind.
func (t Tags) On(kinds ...types.ResourceType) (out []types.TagSpecification) {
	for _, kind := range kinds {
		out = append(out, types.TagSpecification{ResourceType: kind, Tags: t.EC2()})
	}
	return out
}

// FromEC2 returns tags by key.
func FromEC2(tags []types.Tag) Tags {
	out := make(Tags, len(tags))
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

// Filter returns one EC2 filter.
func Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// OwnerTag is the key of the tag that says that a thing belongs to the
// cluster.
func (c *Clients) OwnerTag() string { return ClusterTagPrefix + c.Cluster }

// InsideTag is the key of the tag of what controllers in the cluster made.
func (c *Clients) InsideTag() string { return CloudProviderTagPrefix + c.Inside }

// Ours returns EC2 filters that match only what belongs to the cluster.
func (c *Clients) Ours(more ...types.Filter) []types.Filter {
	return append(more, Filter("tag:"+c.OwnerTag(), Owned))
}
