package eks

import (
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Provider is an OIDC identity provider for users of a cluster.
type Provider struct {
	Name, ARN, Issuer, Client, UserClaim, UserPrefix, GroupsClaim, GroupsPrefix, Token string
	RequiredClaims, Tags                                                               map[string]string
	Ready                                                                              time.Time
	Deleted                                                                            time.Time // start of the disassociation; zero: none
	Failed                                                                             bool      // the last operation fails; see Faults
}

// ProviderTakes is how long an association or a disassociation takes.
const ProviderTakes = 15 * time.Minute

func (svc *Service) simulateProviders() {
	core.On(svc.Account, svc.associateProvider, "ClusterName", "Oidc", "Tags", "ClientRequestToken")
	core.On(svc.Account, svc.describeProvider, "ClusterName", "IdentityProviderConfig")
	core.On(svc.Account, svc.listProviders, "ClusterName", "MaxResults", "NextToken")
	core.On(svc.Account, svc.disassociateProvider, "ClusterName", "IdentityProviderConfig", "ClientRequestToken")
}

func (svc *Service) settleProviders(c *Cluster) {
	maps.DeleteFunc(c.Providers, func(_ string, p *Provider) bool {
		switch over := svc.Now().Sub(p.Deleted) >= ProviderTakes; {
		case p.Deleted.IsZero(): // ConfigStatus has no state of failure: a provider that EKS cannot associate is not there
			return p.Failed && !svc.Now().Before(p.Ready)
		case over && p.Failed:
			p.Deleted, p.Failed = time.Time{}, false
			return false
		default:
			return over
		}
	})
}

func (p *Provider) status(now time.Time) types.ConfigStatus {
	switch {
	case !p.Deleted.IsZero():
		return types.ConfigStatusDeleting
	case now.Before(p.Ready):
		return types.ConfigStatusCreating
	}
	return types.ConfigStatusActive
}

// associateProvider adds an identity provider, as an update of the cluster. A cluster can
// have one.
func (svc *Service) associateProvider(in *eks.AssociateIdentityProviderConfigInput) (*eks.AssociateIdentityProviderConfigOutput, error) {
	c, err := svc.readyCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	o := in.Oidc
	switch {
	case o == nil || aws.ToString(o.IdentityProviderConfigName) == "" || aws.ToString(o.ClientId) == "":
		return nil, invalid("oidc with identityProviderConfigName and clientId is required")
	case !strings.HasPrefix(aws.ToString(o.IssuerUrl), "https://"):
		return nil, invalid("The issuer URL must begin with https://")
	case strings.ContainsAny(aws.ToString(o.IssuerUrl), "?#"): // OidcIdentityProviderConfigRequest, EKS API reference
		return nil, invalid("The issuer URL must not have query parameters")
	case regex.Of(`^https://(localhost|127\.|10\.|192\.168\.|169\.254\.|\[f[cd]|[^/:]*\.(local|internal)[:/]|[^./:\[]+([:/]|$))`).MatchString(*o.IssuerUrl + "/"): // the same
		return nil, invalid("The issuer URL must be publicly accessible over the internet")
	case strings.Contains(aws.ToString(o.GroupsPrefix)+" "+aws.ToString(o.UsernamePrefix), "system:"): // AWS::EKS::IdentityProviderConfig, CloudFormation
		return nil, invalid("The prefix can't contain system:")
	case len(c.Providers) > 0:
		return nil, &types.ResourceLimitExceededException{
			Message:     aws.String("The maximum number of identity provider configurations (1) has been reached"),
			ClusterName: in.ClusterName,
		}
	}
	tags, err := checkTags(in.Tags)
	if err != nil {
		return nil, err
	}
	u, err := svc.beginUpdate(c, types.UpdateTypeAssociateIdentityProviderConfig, ProviderTakes, Update{})
	if err != nil {
		return nil, err
	}
	p := &Provider{
		Name: *o.IdentityProviderConfigName, ARN: svc.RegionalARN("eks", "identityproviderconfig/"+c.Name+"/oidc/"+*o.IdentityProviderConfigName+"/"+svc.Hash()[:8]),
		Issuer: *o.IssuerUrl, Client: *o.ClientId, UserClaim: aws.ToString(o.UsernameClaim), UserPrefix: aws.ToString(o.UsernamePrefix),
		GroupsClaim: aws.ToString(o.GroupsClaim), GroupsPrefix: aws.ToString(o.GroupsPrefix), RequiredClaims: maps.Clone(o.RequiredClaims), Tags: tags,
		Token: aws.ToString(in.ClientRequestToken), Ready: svc.Now().Add(ProviderTakes), Failed: svc.state.Faults.Update != "",
	}
	c.Providers[p.Name] = p
	return &eks.AssociateIdentityProviderConfigOutput{Update: u, Tags: maps.Clone(tags)}, nil
}

// provider returns an identity provider of a cluster.
func (svc *Service) provider(cluster *string, id *types.IdentityProviderConfig) (*Cluster, *Provider, error) {
	c, err := svc.cluster(cluster)
	if err != nil {
		return nil, nil, err
	}
	if id == nil || aws.ToString(id.Type) != "oidc" {
		return nil, nil, invalid("the type of an identity provider is oidc")
	}
	p, ok := c.Providers[aws.ToString(id.Name)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{
			Message:     aws.String("Identity provider config is not associated with cluster: " + c.Name),
			ClusterName: cluster,
		}
	}
	return c, p, nil
}

func (svc *Service) describeProvider(in *eks.DescribeIdentityProviderConfigInput) (*eks.DescribeIdentityProviderConfigOutput, error) {
	c, p, err := svc.provider(in.ClusterName, in.IdentityProviderConfig)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeIdentityProviderConfigOutput{IdentityProviderConfig: &types.IdentityProviderConfigResponse{Oidc: &types.OidcIdentityProviderConfig{
		ClusterName: &c.Name, IdentityProviderConfigName: aws.String(p.Name), IdentityProviderConfigArn: aws.String(p.ARN), IssuerUrl: aws.String(p.Issuer),
		ClientId: aws.String(p.Client), UsernameClaim: core.Text(p.UserClaim), UsernamePrefix: core.Text(p.UserPrefix), GroupsClaim: core.Text(p.GroupsClaim),
		GroupsPrefix: core.Text(p.GroupsPrefix), RequiredClaims: maps.Clone(p.RequiredClaims), Tags: maps.Clone(p.Tags), Status: p.status(svc.Now()),
	}}}, nil
}

func (svc *Service) listProviders(in *eks.ListIdentityProviderConfigsInput) (*eks.ListIdentityProviderConfigsOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	list := core.Each(core.ByKey(c.Providers), func(p *Provider) types.IdentityProviderConfig {
		return types.IdentityProviderConfig{Name: aws.String(p.Name), Type: aws.String("oidc")}
	})
	part, next, err := page(svc, list, in.NextToken, in.MaxResults)
	return &eks.ListIdentityProviderConfigsOutput{IdentityProviderConfigs: part, NextToken: next}, err
}

func (svc *Service) disassociateProvider(in *eks.DisassociateIdentityProviderConfigInput) (*eks.DisassociateIdentityProviderConfigOutput, error) {
	c, p, err := svc.provider(in.ClusterName, in.IdentityProviderConfig)
	if err != nil {
		return nil, err
	}
	if s := p.status(svc.Now()); s != types.ConfigStatusActive {
		return nil, busy("the identity provider is currently %s", s)
	}
	u, err := svc.beginUpdate(c, types.UpdateTypeDisassociateIdentityProviderConfig, ProviderTakes, Update{})
	if err != nil {
		return nil, err
	}
	p.Deleted, p.Failed = svc.Now(), svc.state.Faults.Update != ""
	return &eks.DisassociateIdentityProviderConfigOutput{Update: u}, nil
}
