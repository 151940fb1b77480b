package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
)

func ec2Tags[T any](get func(T) []types.Tag) func(T) cloud.Tags {
	return func(t T) cloud.Tags { return cloud.FromEC2(get(t)) }
}

// createTags sets tags on a thing of EC2.
func createTags(ctx context.Context, c *cloud.Clients, id string, tags cloud.Tags) error {
	_, err := c.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags.EC2()})
	return err
}

// setTags sets tags on a thing of EC2 and returns its object as it is then.
func setTags(ctx context.Context, c *cloud.Clients, have identity.Object, tags cloud.Tags) (identity.Object, error) {
	have.Tags = have.Tags.With(tags)
	return have, createTags(ctx, c, have.ID, tags)
}
