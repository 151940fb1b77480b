package awssim

import (
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSProvider is an identity provider that users of a cluster log in with.
type EKSProvider struct {
	Name, ARN, Issuer, Client, UserClaim, UserPrefix, GroupsClaim, GroupsPrefix, Token string
	RequiredClaims, Tags                                                               map[string]string
	Ready                                                                              time.Time
	Deleted                                                                            time.Time // when disassociation was asked for; zero: not
}

// EKSProviderTakes is how long an identity provider is associated, and how
// long it takes to get rid of it.
const EKSProviderTakes = 15 * time.Minute

func (a *AWS) simulateEKSProviders() {
	on(a, a.associateProvider, "ClusterName", "Oidc", "Tags", "ClientRequestToken")
	on(a, a.describeProvider, "ClusterName", "IdentityProviderConfig")
	on(a, a.listProviders, "ClusterName", "MaxResults", "NextToken")
	on(a, a.disassociateProvider, "ClusterName", "IdentityProviderConfig", "ClientRequestToken")
}

func (a *AWS) settleEKSProviders(c *EKSCluster) {
	maps.DeleteFunc(c.Providers, func(_ string, p *EKSProvider) bool {
		return !p.Deleted.IsZero() && a.now().Sub(p.Deleted) >= EKSProviderTakes
	})
}

func (p *EKSProvider) status(now time.Time) types.ConfigStatus {
	switch {
	case !p.Deleted.IsZero():
		return types.ConfigStatusDeleting
	case now.Before(p.Ready):
		return types.ConfigStatusCreating
	}
	return types.ConfigStatusActive
}

// associateProvider adds an identity provider. A cluster has one at most, and
// it is an update of the cluster.
func (a *AWS) associateProvider(in *eks.AssociateIdentityProviderConfigInput) (*eks.AssociateIdentityProviderConfigOutput, error) {
	c, err := a.readyEKSCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	o := in.Oidc
	switch {
	case o == nil || aws.ToString(o.IdentityProviderConfigName) == "" || aws.ToString(o.ClientId) == "":
		return nil, invalidEKS("oidc with identityProviderConfigName and clientId is required")
	case !strings.HasPrefix(aws.ToString(o.IssuerUrl), "https://"):
		return nil, invalidEKS("The issuer URL must begin with https://")
	case len(c.Providers) > 0:
		return nil, &types.ResourceLimitExceededException{Message: aws.String("The maximum number of identity provider configurations (1) has been reached"), ClusterName: in.ClusterName}
	}
	tags, err := eksTags(in.Tags)
	if err != nil {
		return nil, err
	}
	u, err := a.beginEKSUpdate(c, types.UpdateTypeAssociateIdentityProviderConfig, EKSProviderTakes, EKSUpdate{})
	if err != nil {
		return nil, err
	}
	p := &EKSProvider{
		Name: *o.IdentityProviderConfigName, ARN: a.regionalARN("eks", "identityproviderconfig/"+c.Name+"/oidc/"+*o.IdentityProviderConfigName+"/"+a.hash()[:8]),
		Issuer: *o.IssuerUrl, Client: *o.ClientId, UserClaim: aws.ToString(o.UsernameClaim), UserPrefix: aws.ToString(o.UsernamePrefix),
		GroupsClaim: aws.ToString(o.GroupsClaim), GroupsPrefix: aws.ToString(o.GroupsPrefix), RequiredClaims: maps.Clone(o.RequiredClaims), Tags: tags,
		Token: aws.ToString(in.ClientRequestToken), Ready: a.now().Add(EKSProviderTakes),
	}
	c.Providers[p.Name] = p
	return &eks.AssociateIdentityProviderConfigOutput{Update: u, Tags: maps.Clone(tags)}, nil
}

// provider returns the provider that a call names.
func (a *AWS) provider(cluster *string, id *types.IdentityProviderConfig) (*EKSCluster, *EKSProvider, error) {
	c, err := a.eksCluster(cluster)
	if err != nil {
		return nil, nil, err
	}
	if id == nil || aws.ToString(id.Type) != "oidc" {
		return nil, nil, invalidEKS("the type of an identity provider is oidc")
	}
	p, ok := c.Providers[aws.ToString(id.Name)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{Message: aws.String("Identity provider config is not associated with cluster: " + c.Name), ClusterName: cluster}
	}
	return c, p, nil
}

func (a *AWS) describeProvider(in *eks.DescribeIdentityProviderConfigInput) (*eks.DescribeIdentityProviderConfigOutput, error) {
	c, p, err := a.provider(in.ClusterName, in.IdentityProviderConfig)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeIdentityProviderConfigOutput{IdentityProviderConfig: &types.IdentityProviderConfigResponse{Oidc: &types.OidcIdentityProviderConfig{
		ClusterName: &c.Name, IdentityProviderConfigName: aws.String(p.Name), IdentityProviderConfigArn: aws.String(p.ARN), IssuerUrl: aws.String(p.Issuer),
		ClientId: aws.String(p.Client), UsernameClaim: text(p.UserClaim), UsernamePrefix: text(p.UserPrefix), GroupsClaim: text(p.GroupsClaim),
		GroupsPrefix: text(p.GroupsPrefix), RequiredClaims: maps.Clone(p.RequiredClaims), Tags: maps.Clone(p.Tags), Status: p.status(a.now()),
	}}}, nil
}

func (a *AWS) listProviders(in *eks.ListIdentityProviderConfigsInput) (*eks.ListIdentityProviderConfigsOutput, error) {
	c, err := a.eksCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	list := each(byKey(c.Providers), func(p *EKSProvider) types.IdentityProviderConfig {
		return types.IdentityProviderConfig{Name: aws.String(p.Name), Type: aws.String("oidc")}
	})
	part, next, err := eksPage(a, list, in.NextToken, in.MaxResults)
	return &eks.ListIdentityProviderConfigsOutput{IdentityProviderConfigs: part, NextToken: next}, err
}

func (a *AWS) disassociateProvider(in *eks.DisassociateIdentityProviderConfigInput) (*eks.DisassociateIdentityProviderConfigOutput, error) {
	c, p, err := a.provider(in.ClusterName, in.IdentityProviderConfig)
	if err != nil {
		return nil, err
	}
	if s := p.status(a.now()); s != types.ConfigStatusActive {
		return nil, busyEKS("the identity provider is currently %s", s)
	}
	u, err := a.beginEKSUpdate(c, types.UpdateTypeDisassociateIdentityProviderConfig, EKSProviderTakes, EKSUpdate{})
	if err != nil {
		return nil, err
	}
	p.Deleted = a.now()
	return &eks.DisassociateIdentityProviderConfigOutput{Update: u}, nil
}
