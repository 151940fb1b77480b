package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

func (r *reader) addons(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var names []string
	err := pages(
		ctx,
		eks.NewListAddonsPaginator(c, &eks.ListAddonsInput{ClusterName: &own.Name}),
		func(p *eks.ListAddonsOutput) { names = append(names, p.Addons...) },
	)
	if err != nil {
		return err
	}
	for _, name := range names {
		out, err := c.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &own.Name, AddonName: &name})
		if err != nil {
			return err
		}
		x := out.Addon
		a := &sim.Addon{
			Name:          name,
			Version:       aws.ToString(x.AddonVersion),
			ARN:           aws.ToString(x.AddonArn),
			RoleARN:       aws.ToString(x.ServiceAccountRoleArn),
			Configuration: aws.ToString(x.ConfigurationValues),
			Tags:          x.Tags,
			Born:          r.since(x.CreatedAt),
			Modified:      r.since(x.ModifiedAt),
			OnFargate:     x.Status == types.AddonStatusActive,
		}
		a.Ready = r.until(x.Status == types.AddonStatusCreating || x.Status == types.AddonStatusUpdating, a.Born)
		if a.Updated = x.Status == types.AddonStatusUpdating; x.Status == types.AddonStatusDeleting {
			a.Deleted = r.Now
		}
		own.Addons[name] = a
	}
	return nil
}
