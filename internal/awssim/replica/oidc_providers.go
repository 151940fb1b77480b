package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// oidcProviders reads the OpenID Connect providers of the account.
func (r *reader) oidcProviders(ctx context.Context) error {
	c := iam.NewFromConfig(r.Config)
	list, err := c.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return err
	}
	r.to.IAM.Providers = map[string]*sim.OIDCProvider{}
	for _, p := range list.OpenIDConnectProviderList {
		out, err := c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: p.Arn})
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		own := &sim.OIDCProvider{
			ARN: aws.ToString(
				p.Arn,
			),
			URL:         aws.ToString(out.Url),
			Clients:     out.ClientIDList,
			Thumbprints: out.ThumbprintList,
			Tags:        roleTags(out.Tags),
			Born:        r.since(out.CreateDate),
		}
		r.to.IAM.Providers[own.ARN] = own
	}
	return nil
}
