package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

func (r *reader) placementGroups(ctx context.Context) error {
	out, err := ec2.NewFromConfig(r.Config).DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{})
	if err != nil {
		return err
	}
	r.to.EC2.PlacementGroups = map[string]string{}
	for _, g := range out.PlacementGroups {
		r.to.EC2.PlacementGroups[aws.ToString(g.GroupName)] = string(g.Strategy)
	}
	return nil
}
