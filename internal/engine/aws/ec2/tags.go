package ec2

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
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

// setTags sets tags on an EC2 resource and returns its object with the new tags.
func setTags(ctx context.Context, c *cloud.Clients, have identity.Object, tags cloud.Tags) (identity.Object, error) {
	have.Tags = have.Tags.With(tags)
	return have, createTags(ctx, c, have.ID, tags)
}
