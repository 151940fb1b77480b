package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PlacementGroupByName looks up a placement group. If the call fails, for lack of
// permission or in an emulator, the lookup assumes that it exists.
func PlacementGroupByName(name string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		n := Named(name)
		out, err := cloud.Remember(ctx, c, "placement group "+name, func(ctx context.Context) (*ec2.DescribePlacementGroupsOutput, error) {
			return c.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{cloud.Filter("group-name", name)}})
		})
		switch {
		case err != nil && ctx.Err() == nil:
			return &n, nil // RunInstances reports an error if it does not exist
		case err != nil:
			return nil, err
		}
		for _, g := range out.PlacementGroups {
			if g.State == types.PlacementGroupStateAvailable || g.State == types.PlacementGroupStatePending {
				return &n, nil
			}
		}
		return nil, fmt.Errorf("placement group %q does not exist in %s: create it (aws ec2 create-placement-group), or set another one", name, c.Region)
	}
}

// placementGroupKind declares placement groups. A cluster uses existing ones and never
// creates any.
func placementGroupKind() *kind.Kind {
	return &kind.Kind{Name: "placement-group", Area: plan.AreaPrerequisites, ReadActions: []string{"ec2:DescribePlacementGroups"}}
}
