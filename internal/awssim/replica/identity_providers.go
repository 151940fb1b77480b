package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

func (r *reader) identityProviders(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var all []types.IdentityProviderConfig
	err := pages(
		ctx,
		eks.NewListIdentityProviderConfigsPaginator(c, &eks.ListIdentityProviderConfigsInput{ClusterName: &own.Name}),
		func(p *eks.ListIdentityProviderConfigsOutput) {
			all = append(all, p.IdentityProviderConfigs...)
		},
	)
	if err != nil {
		return err
	}
	for _, config := range all {
		out, err := c.DescribeIdentityProviderConfig(ctx, &eks.DescribeIdentityProviderConfigInput{ClusterName: &own.Name, IdentityProviderConfig: &config})
		if err != nil {
			return err
		}
		x := out.IdentityProviderConfig.Oidc
		p := &sim.Provider{
			Name: aws.ToString(
				x.IdentityProviderConfigName,
			),
			ARN:    aws.ToString(x.IdentityProviderConfigArn),
			Issuer: aws.ToString(x.IssuerUrl),
			Client: aws.ToString(x.ClientId),
			UserClaim: aws.ToString(
				x.UsernameClaim,
			),
			UserPrefix:     aws.ToString(x.UsernamePrefix),
			GroupsClaim:    aws.ToString(x.GroupsClaim),
			GroupsPrefix:   aws.ToString(x.GroupsPrefix),
			RequiredClaims: x.RequiredClaims,
			Tags:           x.Tags,
		}
		p.Ready = r.until(x.Status == types.ConfigStatusCreating, r.old())
		if x.Status == types.ConfigStatusDeleting {
			p.Deleted = r.Now
		}
		own.Providers[p.Name] = p
	}
	return nil
}
