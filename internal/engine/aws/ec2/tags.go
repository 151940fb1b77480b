package ec2

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// createTags sets tags on an EC2 resource.
func createTags(ctx context.Context, c *cloud.Clients, id string, tags cloud.Tags) error {
	return Tag(ctx, c, []string{id}, tags)
}

// Tag sets tags on EC2 resources.
func Tag(ctx context.Context, c *cloud.Clients, ids []string, tags cloud.Tags) error {
	for part := range slices.Chunk(ids, 1000) { // AWS takes 1,000 resources
		if _, err := c.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: part, Tags: tags.EC2()}); err != nil {
			return err
		}
	}
	return nil
}

// MarkFailedJoin marks a worker on which kubeadm join has failed.
func MarkFailedJoin(ctx context.Context, c *cloud.Clients, have InstanceState) error {
	return createTags(ctx, c, have.ID, cloud.Tags{cloud.JoinFailedTag: "true"})
}

// untag removes tags from EC2 resources by key, whatever their values.
func untag(ctx context.Context, c *cloud.Clients, ids, keys []string) error {
	in := &ec2.DeleteTagsInput{}
	for _, key := range keys {
		in.Tags = append(in.Tags, types.Tag{Key: &key})
	}
	for in.Resources = range slices.Chunk(ids, 1000) { // AWS takes 1,000 resources
		if _, err := c.EC2.DeleteTags(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// changeTags makes the changes of tags that d lists, on an EC2 resource and on its parts, such as the volumes of a machine. It returns the resource
// with its new tags.
func changeTags(ctx context.Context, c *cloud.Clients, have identity.Object, want cloud.Tags, d plan.Diff, parts ...string) (_ identity.Object, err error) {
	ids := append([]string{have.ID}, parts...)
	have.Tags, err = identity.ChangeTags(have.Tags, want, d,
		func() error { return Tag(ctx, c, ids, want) },
		func(keys []string) error { return untag(ctx, c, ids, keys) })
	return have, err
}
