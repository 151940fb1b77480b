package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

func (r *reader) fargate(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var names []string
	err := pages(ctx, eks.NewListFargateProfilesPaginator(c, &eks.ListFargateProfilesInput{ClusterName: &own.Name}), func(p *eks.ListFargateProfilesOutput) {
		names = append(names, p.FargateProfileNames...)
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		out, err := c.DescribeFargateProfile(ctx, &eks.DescribeFargateProfileInput{ClusterName: &own.Name, FargateProfileName: &name})
		if err != nil {
			return err
		}
		x := out.FargateProfile
		f := &sim.Fargate{
			Name:    name,
			ARN:     aws.ToString(x.FargateProfileArn),
			RoleARN: aws.ToString(x.PodExecutionRoleArn),
			Subnets: x.Subnets,
			Tags:    x.Tags,
			Born:    r.since(x.CreatedAt),
		}
		f.Ready = r.until(x.Status == types.FargateProfileStatusCreating, f.Born)
		if x.Status == types.FargateProfileStatusDeleting {
			f.Deleted = r.Now
		}
		for _, s := range x.Selectors {
			f.Selectors = append(f.Selectors, sim.Selector{Namespace: aws.ToString(s.Namespace), Labels: s.Labels})
		}
		own.Fargate[name] = f
	}
	return nil
}
