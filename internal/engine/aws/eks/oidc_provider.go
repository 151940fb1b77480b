package eks

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// OIDCProvider is an OpenID Connect provider in IAM for the service accounts of a cluster
// (CAPA: AWSManagedControlPlane spec.associateOIDCProvider). IAM retrieves the thumbprint
// of the issuer's certificate itself (CreateOpenIDConnectProvider).
type OIDCProvider struct {
	Cluster *graph.Ref[ClusterState]
	Tags    cloud.Tags
}

// OIDCProviderState is an OIDC provider of IAM, as AWS describes it.
type OIDCProviderState struct {
	identity.Object // the ID is its ARN
	Clients         []string
}

// stsAudience is the audience of service account tokens for AWS.
const stsAudience = "sts.amazonaws.com"

var _ graph.Managed[OIDCProviderState] = (*OIDCProvider)(nil)

// Needs implements graph.Desired.
func (o *OIDCProvider) Needs() []graph.Edge { return graph.On(o.Cluster) }

// Find implements graph.Desired.
func (o *OIDCProvider) Find(ctx context.Context, c *cloud.Clients) (*OIDCProviderState, error) {
	cluster, ok := o.Cluster.Found()
	if !ok {
		return nil, nil
	}
	return OIDCProviderOf(ctx, c, cluster)
}

// OIDCProviderOf returns the provider of a cluster, or nil.
func OIDCProviderOf(ctx context.Context, c *cloud.Clients, cluster ClusterState) (*OIDCProviderState, error) {
	if cluster.Issuer == "" {
		return nil, nil
	}
	return OIDCProviderByARN(ctx, c, providerARN(cluster))
}

// providerARN returns the ARN that the provider of a cluster has in IAM.
func providerARN(cluster ClusterState) string {
	parts := strings.Split(cluster.ID, ":") // arn:PARTITION:eks:REGION:ACCOUNT:cluster/NAME
	if len(parts) < 6 {
		return ""
	}
	return "arn:" + parts[1] + ":iam::" + parts[4] + ":oidc-provider/" + strings.TrimPrefix(cluster.Issuer, "https://")
}

// Diff implements graph.Desired.
func (o *OIDCProvider) Diff(have *OIDCProviderState) (d plan.Diff) {
	if !slices.Contains(have.Clients, stsAudience) {
		d.Set("audience", "", stsAudience)
	}
	d.Tags(have.Tags, o.Tags)
	return d
}

// Create implements graph.Creator.
func (o *OIDCProvider) Create(ctx context.Context, c *cloud.Clients) (*OIDCProviderState, error) {
	cluster, _ := o.Cluster.Found()
	out, err := c.IAM.CreateOpenIDConnectProvider(ctx, &awsiam.CreateOpenIDConnectProviderInput{
		Url: &cluster.Issuer, ClientIDList: []string{stsAudience}, Tags: iam.Tags(o.Tags),
	})
	if err != nil {
		return nil, err
	}
	return &OIDCProviderState{identity.Object{ID: aws.ToString(out.OpenIDConnectProviderArn), Tags: o.Tags}, []string{stsAudience}}, nil
}

// Update implements graph.Updater.
func (o *OIDCProvider) Update(ctx context.Context, c *cloud.Clients, have *OIDCProviderState, d plan.Diff) (*OIDCProviderState, error) {
	after := *have
	if d.Has("audience") {
		audience := stsAudience
		if _, err := c.IAM.AddClientIDToOpenIDConnectProvider(ctx, &awsiam.AddClientIDToOpenIDConnectProviderInput{
			OpenIDConnectProviderArn: &have.ID, ClientID: &audience,
		}); err != nil {
			return nil, err
		}
		after.Clients = append(slices.Clone(have.Clients), stsAudience)
	}
	var err error
	after.Tags, err = identity.ChangeTags(have.Tags, o.Tags, d, func() error {
		_, err := c.IAM.TagOpenIDConnectProvider(ctx, &awsiam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: &have.ID, Tags: iam.Tags(o.Tags)})
		return err
	}, func(keys []string) error {
		_, err := c.IAM.UntagOpenIDConnectProvider(ctx, &awsiam.UntagOpenIDConnectProviderInput{OpenIDConnectProviderArn: &have.ID, TagKeys: keys})
		return err
	})
	return &after, err
}

// Delete implements graph.Deleter.
func (o *OIDCProvider) Delete(ctx context.Context, c *cloud.Clients, have *OIDCProviderState) error {
	_, err := c.IAM.DeleteOpenIDConnectProvider(ctx, &awsiam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: &have.ID})
	return err
}

// OIDCProviderByARN returns a provider, or nil.
func OIDCProviderByARN(ctx context.Context, c *cloud.Clients, arn string) (*OIDCProviderState, error) {
	return cloud.Remember(ctx, c, "OIDC provider "+arn, func(ctx context.Context) (*OIDCProviderState, error) {
		out, err := c.IAM.GetOpenIDConnectProvider(ctx, &awsiam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &arn})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		return &OIDCProviderState{identity.Object{ID: arn, Tags: iam.FromIAM(out.Tags)}, out.ClientIDList}, nil
	})
}

// OIDCProviderKind is the kind of OIDC providers.
const OIDCProviderKind = "oidc-provider"

// oidcProviderKind declares OIDC providers.
func oidcProviderKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        OIDCProviderKind,
		Area:        plan.AreaSecurity,
		ByNameOnly:  true,
		ReadActions: []string{"iam:GetOpenIDConnectProvider", "iam:ListOpenIDConnectProviders"},
		Statement:   kind.OIDCProviders,
		Actions: []string{
			"iam:AddClientIDToOpenIDConnectProvider",
			"iam:CreateOpenIDConnectProvider",
			"iam:DeleteOpenIDConnectProvider",
			"iam:TagOpenIDConnectProvider", "iam:UntagOpenIDConnectProvider",
		},
	}, kind.Functions[OIDCProviderState]{
		List: ownedOIDCProviders, Delete: &OIDCProvider{},
		ID: func(OIDCProviderState) plan.ID { return OIDCProviderKind },
		Find: func(ctx context.Context, c *cloud.Clients, s OIDCProviderState) (*OIDCProviderState, error) {
			return OIDCProviderByARN(ctx, c, s.ID)
		},
		Refers: func(s OIDCProviderState) []string {
			_, url, _ := strings.Cut(s.ID, ":oidc-provider/")
			return []string{issuerAlias(url)}
		},
	})
}

// ownedOIDCProviders lists the providers that the cluster owns. The list call of IAM does
// not return tags, so it reads all providers of EKS clusters in the region.
func ownedOIDCProviders(ctx context.Context, c *cloud.Clients, _ kind.Owner) (out []OIDCProviderState, err error) {
	all, err := c.IAM.ListOpenIDConnectProviders(ctx, &awsiam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return nil, err
	}
	for _, p := range all.OpenIDConnectProviderList {
		arn := aws.ToString(p.Arn)
		if !strings.Contains(arn, "/oidc.eks."+c.Region+".") {
			continue
		}
		s, err := OIDCProviderByARN(ctx, c, arn)
		if err != nil {
			return nil, err
		}
		if s != nil && s.IsOwned(c) {
			out = append(out, *s)
		}
	}
	return out, nil
}
