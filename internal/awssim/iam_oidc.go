package awssim

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// OIDCProvider is an OpenID Connect provider of the account.
type OIDCProvider struct {
	ARN, URL             string // the URL without https://
	Clients, Thumbprints []string
	Tags                 map[string]string
	Born                 time.Time
}

func (a *AWS) simulateOIDC() {
	on(a, a.createOIDC, "Url", "ClientIDList", "ThumbprintList", "Tags")
	on(a, a.getOIDC, "OpenIDConnectProviderArn")
	on(a, a.listOIDC)
	on(a, a.deleteOIDC, "OpenIDConnectProviderArn")
	on(a, a.addOIDCClient, "OpenIDConnectProviderArn", "ClientID")
	on(a, a.tagOIDC, "OpenIDConnectProviderArn", "Tags")
}

func (a *AWS) createOIDC(in *iam.CreateOpenIDConnectProviderInput) (*iam.CreateOpenIDConnectProviderOutput, error) {
	u, err := url.Parse(aws.ToString(in.Url))
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, fail("ValidationError", "Invalid Open ID Connect Provider URL")
	}
	p := &OIDCProvider{URL: u.Host + u.Path, Clients: slices.Clone(in.ClientIDList), Thumbprints: slices.Clone(in.ThumbprintList), Tags: map[string]string{}, Born: a.now()}
	p.ARN = "arn:" + a.partition() + ":iam::" + Account + ":oidc-provider/" + p.URL
	if a.state.IAM.Providers[p.ARN] != nil {
		return nil, &types.EntityAlreadyExistsException{Message: aws.String("Provider with url https://" + p.URL + " already exists.")}
	}
	if len(p.Thumbprints) == 0 {
		p.Thumbprints = []string{strings.Repeat("9e99a48a", 5)} // IAM asks the issuer itself
	}
	for _, t := range in.Tags {
		p.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	a.state.IAM.Providers[p.ARN] = p
	return &iam.CreateOpenIDConnectProviderOutput{OpenIDConnectProviderArn: &p.ARN}, nil
}

// oidc returns the provider of an ARN.
func (a *AWS) oidc(arn *string) (*OIDCProvider, error) {
	p := a.state.IAM.Providers[aws.ToString(arn)]
	if p == nil {
		return nil, noEntity("OpenIDConnect Provider", "for arn "+aws.ToString(arn))
	}
	return p, nil
}

func (a *AWS) getOIDC(in *iam.GetOpenIDConnectProviderInput) (*iam.GetOpenIDConnectProviderOutput, error) {
	p, err := a.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	out := &iam.GetOpenIDConnectProviderOutput{Url: &p.URL, ClientIDList: slices.Clone(p.Clients), ThumbprintList: slices.Clone(p.Thumbprints), CreateDate: &p.Born}
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		out.Tags = append(out.Tags, types.Tag{Key: aws.String(k), Value: aws.String(p.Tags[k])})
	}
	return out, nil
}

func (a *AWS) listOIDC(*iam.ListOpenIDConnectProvidersInput) (*iam.ListOpenIDConnectProvidersOutput, error) {
	return &iam.ListOpenIDConnectProvidersOutput{OpenIDConnectProviderList: each(byKey(a.state.IAM.Providers), func(p *OIDCProvider) types.OpenIDConnectProviderListEntry {
		return types.OpenIDConnectProviderListEntry{Arn: &p.ARN}
	})}, nil
}

// deleteOIDC succeeds for what is not there, as AWS does.
func (a *AWS) deleteOIDC(in *iam.DeleteOpenIDConnectProviderInput) (*iam.DeleteOpenIDConnectProviderOutput, error) {
	delete(a.state.IAM.Providers, aws.ToString(in.OpenIDConnectProviderArn))
	return &iam.DeleteOpenIDConnectProviderOutput{}, nil
}

func (a *AWS) addOIDCClient(in *iam.AddClientIDToOpenIDConnectProviderInput) (*iam.AddClientIDToOpenIDConnectProviderOutput, error) {
	p, err := a.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	if id := aws.ToString(in.ClientID); !slices.Contains(p.Clients, id) {
		p.Clients = append(p.Clients, id)
	}
	return &iam.AddClientIDToOpenIDConnectProviderOutput{}, nil
}

func (a *AWS) tagOIDC(in *iam.TagOpenIDConnectProviderInput) (*iam.TagOpenIDConnectProviderOutput, error) {
	p, err := a.oidc(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	for _, t := range in.Tags {
		p.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return &iam.TagOpenIDConnectProviderOutput{}, nil
}
