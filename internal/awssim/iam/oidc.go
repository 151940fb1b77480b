package iam

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// OIDCProvider is an OpenID Connect provider.
type OIDCProvider struct {
	ARN, URL             string // the URL without https://
	Clients, Thumbprints []string
	Tags                 map[string]string
	Born                 time.Time
}

func (svc *Service) simulateOIDC() {
	core.On(svc.Account, svc.createOIDC, "Url", "ClientIDList", "ThumbprintList", "Tags")
	core.On(svc.Account, svc.getOIDC, "OpenIDConnectProviderArn")
	core.On(svc.Account, svc.listOIDC)
	core.On(svc.Account, svc.deleteOIDC, "OpenIDConnectProviderArn")
	core.On(svc.Account, svc.addOIDCClient, "OpenIDConnectProviderArn", "ClientID")
	core.On(svc.Account, svc.tagOIDC, "OpenIDConnectProviderArn", "Tags")
	core.On(svc.Account, svc.untagOIDC, "OpenIDConnectProviderArn", "TagKeys")
}

func (svc *Service) createOIDC(in *iam.CreateOpenIDConnectProviderInput) (*iam.CreateOpenIDConnectProviderOutput, error) {
	u, err := url.Parse(aws.ToString(in.Url))
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, core.Fail("ValidationError", "Invalid Open ID Connect Provider URL")
	}
	p := &OIDCProvider{
		URL:         u.Host + u.Path,
		Clients:     slices.Clone(in.ClientIDList),
		Thumbprints: slices.Clone(in.ThumbprintList),
		Tags:        map[string]string{},
		Born:        svc.Now(),
	}
	p.ARN = "arn:" + svc.Partition() + ":iam::" + svc.Number() + ":oidc-provider/" + p.URL
	if svc.state.Providers[p.ARN] != nil {
		return nil, &types.EntityAlreadyExistsException{Message: aws.String("Provider with url https://" + p.URL + " already exists.")}
	}
	if err := checkTagKeys(in.Tags); err != nil {
		return nil, err
	}
	if len(p.Thumbprints) == 0 {
		p.Thumbprints = []string{strings.Repeat("9e99a48a", 5)} // IAM retrieves the thumbprint itself
	}
	putTags(&p.Tags, in.Tags)
	svc.state.Providers[p.ARN] = p
	return &iam.CreateOpenIDConnectProviderOutput{OpenIDConnectProviderArn: &p.ARN}, nil
}

// KnowsIssuer reports whether there is a provider for an issuer.
func (svc *Service) KnowsIssuer(issuer string) bool {
	return svc.state.Providers["arn:"+svc.Partition()+":iam::"+svc.Number()+":oidc-provider/"+strings.TrimPrefix(issuer, "https://")] != nil
}

// oidc returns the provider with an ARN.
func (svc *Service) oidc(arn *string) (*OIDCProvider, error) {
	p := svc.state.Providers[aws.ToString(arn)]
	if p == nil {
		return nil, NoEntity("OpenIDConnect Provider", "for arn "+aws.ToString(arn))
	}
	return p, nil
}

func (svc *Service) getOIDC(in *iam.GetOpenIDConnectProviderInput) (*iam.GetOpenIDConnectProviderOutput, error) {
	p, err := svc.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	out := &iam.GetOpenIDConnectProviderOutput{
		Url:            &p.URL,
		ClientIDList:   slices.Clone(p.Clients),
		ThumbprintList: slices.Clone(p.Thumbprints),
		CreateDate:     &p.Born,
	}
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		out.Tags = append(out.Tags, types.Tag{Key: aws.String(k), Value: aws.String(p.Tags[k])})
	}
	return out, nil
}

func (svc *Service) listOIDC(*iam.ListOpenIDConnectProvidersInput) (*iam.ListOpenIDConnectProvidersOutput, error) {
	return &iam.ListOpenIDConnectProvidersOutput{
		OpenIDConnectProviderList: core.Each(core.ByKey(svc.state.Providers), func(p *OIDCProvider) types.OpenIDConnectProviderListEntry {
			return types.OpenIDConnectProviderListEntry{Arn: &p.ARN}
		}),
	}, nil
}

// deleteOIDC succeeds if the provider does not exist, as in AWS.
func (svc *Service) deleteOIDC(in *iam.DeleteOpenIDConnectProviderInput) (*iam.DeleteOpenIDConnectProviderOutput, error) {
	delete(svc.state.Providers, aws.ToString(in.OpenIDConnectProviderArn))
	return &iam.DeleteOpenIDConnectProviderOutput{}, nil
}

func (svc *Service) addOIDCClient(in *iam.AddClientIDToOpenIDConnectProviderInput) (*iam.AddClientIDToOpenIDConnectProviderOutput, error) {
	p, err := svc.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	if id := aws.ToString(in.ClientID); !slices.Contains(p.Clients, id) {
		p.Clients = append(p.Clients, id)
	}
	return &iam.AddClientIDToOpenIDConnectProviderOutput{}, nil
}

func (svc *Service) tagOIDC(in *iam.TagOpenIDConnectProviderInput) (*iam.TagOpenIDConnectProviderOutput, error) {
	p, err := svc.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	putTags(&p.Tags, in.Tags)
	return &iam.TagOpenIDConnectProviderOutput{}, nil
}

func (svc *Service) untagOIDC(in *iam.UntagOpenIDConnectProviderInput) (*iam.UntagOpenIDConnectProviderOutput, error) {
	p, err := svc.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(p.Tags, k)
	}
	return &iam.UntagOpenIDConnectProviderOutput{}, nil
}
