package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

func (r *reader) podIdentities(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var ids []*string
	err := pages(
		ctx,
		eks.NewListPodIdentityAssociationsPaginator(c, &eks.ListPodIdentityAssociationsInput{ClusterName: &own.Name}),
		func(p *eks.ListPodIdentityAssociationsOutput) {
			for _, a := range p.Associations {
				ids = append(ids, a.AssociationId)
			}
		},
	)
	if err != nil {
		return err
	}
	for _, id := range ids {
		out, err := c.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: &own.Name, AssociationId: id})
		if err != nil {
			return err
		}
		x := out.Association
		own.PodIdentities[*id] = &sim.PodIdentity{
			Owner: aws.ToString(out.Association.OwnerArn),
			ID:    *id, Namespace: aws.ToString(x.Namespace), ServiceAccount: aws.ToString(x.ServiceAccount), RoleARN: aws.ToString(x.RoleArn), Tags: x.Tags,
			Born: r.since(x.CreatedAt), Modified: r.since(x.ModifiedAt),
		}
	}
	return nil
}
