package eks

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// IdentityProvider is an OpenID Connect identity provider with which users authenticate
// to a cluster (CAPA: AWSManagedControlPlane spec.oidcIdentityProviderConfig). EKS
// accepts one per cluster and has no API to change it.
type IdentityProvider struct {
	Cluster                                          *graph.Ref[ClusterState]
	Name, Issuer, Client                             string
	UserClaim, UserPrefix, GroupsClaim, GroupsPrefix string
	RequiredClaims                                   map[string]string
	After                                            []graph.Resource // created first: EKS does not change the cluster during the association
	Tags                                             cloud.Tags
}

// IdentityProviderState is an associated provider.
type IdentityProviderState struct {
	identity.Object                                  // the ID is its ARN
	Name, Status, Issuer, Client                     string
	UserClaim, UserPrefix, GroupsClaim, GroupsPrefix string
	RequiredClaims                                   map[string]string
	lastUpdate                                       // of the cluster, which associates or disassociates it
}

// Deleting implements graph.Deleting.
func (s IdentityProviderState) Deleting() bool { return s.Status == string(types.ConfigStatusDeleting) }

var (
	_ graph.Managed[IdentityProviderState]  = (*IdentityProvider)(nil)
	_ graph.Follower[IdentityProviderState] = (*IdentityProvider)(nil)
	_ graph.Timed                           = (*IdentityProvider)(nil)
)

// Needs implements graph.Desired.
func (p *IdentityProvider) Needs() []graph.Edge {
	return append(graph.DeletedWith(p.Cluster), graph.Awaits(p.After...)...)
}

// Takes implements graph.Timed.
func (p *IdentityProvider) Takes() (create, remove time.Duration) {
	return identityProviderCreateTime, identityProviderDeleteTime
}

// Find implements graph.Desired.
func (p *IdentityProvider) Find(ctx context.Context, c *cloud.Clients) (*IdentityProviderState, error) {
	cluster, ok := p.Cluster.Found()
	if !ok {
		return nil, nil
	}
	return IdentityProviderByName(ctx, c, cluster.Name, p.Name)
}

// Follow implements graph.Follower. A provider has no state of failure: one that EKS cannot associate is
// not there, and one that it cannot disassociate stays. Only the update of the cluster says why.
func (p *IdentityProvider) Follow(ctx context.Context, c *cloud.Clients, last *IdentityProviderState) (*IdentityProviderState, error) {
	s, err := p.Find(ctx, c)
	if err != nil || last.Update == "" {
		return s, err
	}
	stays := s != nil && last.Deleting() && s.Status == string(types.ConfigStatusActive)
	if cluster, ok := p.Cluster.Found(); ok && (s == nil || stays) {
		if _, err := last.follow(ctx, c, "", eks.DescribeUpdateInput{Name: &cluster.Name}); err != nil {
			return nil, err
		}
	}
	if s == nil {
		return nil, nil
	}
	have := *s
	have.lastUpdate = last.lastUpdate
	return &have, nil
}

// Diff implements graph.Desired. To change a provider, Update disassociates it, and it is
// associated again. This takes half an hour.
func (p *IdentityProvider) Diff(have *IdentityProviderState) (d plan.Diff) {
	d.Await("status", have.Status, string(types.ConfigStatusActive))
	d.Set("issuerUrl", have.Issuer, p.Issuer)
	d.Set("clientId", have.Client, p.Client)
	d.Set("usernameClaim", have.UserClaim, p.UserClaim)
	d.Set("usernamePrefix", have.UserPrefix, p.UserPrefix)
	d.Set("groupsClaim", have.GroupsClaim, p.GroupsClaim)
	d.Set("groupsPrefix", have.GroupsPrefix, p.GroupsPrefix)
	d.Lines("requiredClaim", pairs(have.RequiredClaims), pairs(p.RequiredClaims))
	d.Tags(have.Tags, p.Tags)
	return d
}

// CheckCreation implements graph.CheckedCreation: EKS takes one provider for a cluster, and does not rename it ("Grant users access to Kubernetes
// with an external OIDC provider", EKS user guide). A run disassociates one that the cluster owns before. Without the permission to list
// them, the run finds out.
func (p *IdentityProvider) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	cluster, ok := p.Cluster.Found()
	if !ok {
		return "", nil
	}
	name, err := otherIdentityProvider(ctx, c, cluster.Name, p.Name)
	if err != nil || name == "" {
		return "", err
	}
	other, err := IdentityProviderByName(ctx, c, cluster.Name, name)
	if err != nil || other == nil || other.IsOwned(c) {
		return "", err
	}
	if other.Deleting() {
		return fmt.Sprintf("the cluster has the identity provider %s, and EKS takes one: EKS disassociates it: run this again when it is gone", name), nil
	}
	return fmt.Sprintf("the cluster has the identity provider %s, and EKS takes one: set identityProviderConfigName: %[1]s, or disassociate it first "+
		"(aws eks disassociate-identity-provider-config --cluster-name %s --identity-provider-config type=oidc,name=%[1]s)", name, cluster.Name), nil
}

// IdentityProviderNames lists the names of the identity providers of a cluster.
func IdentityProviderNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of identity providers", func(ctx context.Context) (names []string, err error) {
		out, err := c.EKS.ListIdentityProviderConfigs(ctx, &eks.ListIdentityProviderConfigsInput{ClusterName: &cluster})
		if err != nil {
			return nil, err
		}
		for _, x := range out.IdentityProviderConfigs {
			names = append(names, aws.ToString(x.Name))
		}
		return names, nil
	})
}

// otherIdentityProvider returns the name of the identity provider of a cluster if it is not the one in the manifest, whose name is given. It
// returns "" if there is none, or if the caller may not list them.
func otherIdentityProvider(ctx context.Context, c *cloud.Clients, cluster, name string) (string, error) {
	if name != "" {
		if s, err := IdentityProviderByName(ctx, c, cluster, name); s != nil || err != nil {
			return "", err // EKS takes one
		}
	}
	names, err := IdentityProviderNames(ctx, c, cluster)
	if cloud.Denied(err) {
		return "", nil
	}
	if err != nil || len(names) == 0 || names[0] == name {
		return "", err
	}
	return names[0], nil
}

// retiredIdentityProvider is a provider that is disassociated if the cluster owns it. Unlike kind.Retire, it follows the update of the cluster,
// which says why EKS has not disassociated it.
type retiredIdentityProvider struct{ *IdentityProvider }

// Find implements graph.Desired.
func (r retiredIdentityProvider) Find(ctx context.Context, c *cloud.Clients) (*IdentityProviderState, error) {
	return identity.FindOwned(ctx, c, r.IdentityProvider.Find)
}

// RetireIdentityProvider adds the disassociation of an identity provider that is not desired any more, if the cluster owns it.
func RetireIdentityProvider(g *graph.Graph, id plan.ID, name string, cluster *graph.Ref[ClusterState], after []graph.Resource) graph.Resource {
	return graph.Retire(g, id, retiredIdentityProvider{&IdentityProvider{Cluster: cluster, Name: name, After: after}}, graph.From("no longer in the manifest"))
}

// Create implements graph.Creator.
func (p *IdentityProvider) Create(ctx context.Context, c *cloud.Clients) (*IdentityProviderState, error) {
	cluster, _ := p.Cluster.Found()
	given := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	out, err := c.EKS.AssociateIdentityProviderConfig(ctx, &eks.AssociateIdentityProviderConfigInput{
		ClusterName: &cluster.Name, Tags: p.Tags, ClientRequestToken: c.Token("identity-provider", cluster.Name, p.Name, p.Issuer, p.Client),
		Oidc: &types.OidcIdentityProviderConfigRequest{
			IdentityProviderConfigName: &p.Name, IssuerUrl: &p.Issuer, ClientId: &p.Client, UsernameClaim: given(p.UserClaim), UsernamePrefix: given(p.UserPrefix),
			GroupsClaim: given(p.GroupsClaim), GroupsPrefix: given(p.GroupsPrefix), RequiredClaims: p.RequiredClaims,
		},
	})
	if err != nil {
		return nil, err
	}
	return &IdentityProviderState{
		Object: identity.Object{Tags: p.Tags}, Name: p.Name, Status: string(types.ConfigStatusCreating), Issuer: p.Issuer, Client: p.Client,
		UserClaim: p.UserClaim, UserPrefix: p.UserPrefix, GroupsClaim: p.GroupsClaim, GroupsPrefix: p.GroupsPrefix, RequiredClaims: p.RequiredClaims,
		lastUpdate: begun(out.Update),
	}, nil
}

// Update implements graph.Updater.
func (p *IdentityProvider) Update(ctx context.Context, c *cloud.Clients, have *IdentityProviderState, d plan.Diff) (*IdentityProviderState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = changeTags(ctx, c, have.Object, p.Tags, d)
		return &after, err
	}
	update, err := p.disassociate(ctx, c, have)
	if err != nil {
		return nil, err
	}
	after.Status, after.lastUpdate = string(types.ConfigStatusDeleting), begun(update)
	return &after, nil
}

// Delete implements graph.Deleter.
func (p *IdentityProvider) Delete(ctx context.Context, c *cloud.Clients, have *IdentityProviderState) error {
	_, err := p.disassociate(ctx, c, have)
	return err
}

func (p *IdentityProvider) disassociate(ctx context.Context, c *cloud.Clients, have *IdentityProviderState) (*types.Update, error) {
	cluster, ok := p.Cluster.Found()
	if !ok || have.Deleting() {
		return nil, nil
	}
	out, err := c.EKS.DisassociateIdentityProviderConfig(ctx, &eks.DisassociateIdentityProviderConfigInput{
		ClusterName: &cluster.Name, IdentityProviderConfig: &types.IdentityProviderConfig{Name: &have.Name, Type: aws.String("oidc")},
	})
	if err != nil {
		return nil, err
	}
	return out.Update, nil
}

// How long EKS usually takes to associate and to disassociate an identity provider.
const (
	identityProviderCreateTime = 15 * time.Minute
	identityProviderDeleteTime = 15 * time.Minute
)

// IdentityProviderByName returns a provider, or nil.
func IdentityProviderByName(ctx context.Context, c *cloud.Clients, cluster, name string) (*IdentityProviderState, error) {
	return cloud.Remember(ctx, c, "identity provider "+name, func(ctx context.Context) (*IdentityProviderState, error) {
		out, err := c.EKS.DescribeIdentityProviderConfig(ctx, &eks.DescribeIdentityProviderConfigInput{
			ClusterName: &cluster, IdentityProviderConfig: &types.IdentityProviderConfig{Name: &name, Type: aws.String("oidc")},
		})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		x := out.IdentityProviderConfig.Oidc
		return &IdentityProviderState{
			Object: identity.Object{
				ID:   aws.ToString(x.IdentityProviderConfigArn),
				Tags: x.Tags,
			},
			Name:   aws.ToString(x.IdentityProviderConfigName),
			Status: string(x.Status),
			Issuer: aws.ToString(x.IssuerUrl),
			Client: aws.ToString(
				x.ClientId,
			),
			UserClaim:      aws.ToString(x.UsernameClaim),
			UserPrefix:     aws.ToString(x.UsernamePrefix),
			GroupsClaim:    aws.ToString(x.GroupsClaim),
			GroupsPrefix:   aws.ToString(x.GroupsPrefix),
			RequiredClaims: x.RequiredClaims,
		}, nil
	})
}

// IdentityProviderKind is the kind of identity providers.
const IdentityProviderKind = "identity-provider"

// identityProviderKind declares identity providers.
func identityProviderKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        IdentityProviderKind,
		Rehearsed:   true,
		Area:        plan.AreaSecurity,
		ReadActions: []string{"eks:DescribeIdentityProviderConfig", "eks:DescribeUpdate", "eks:ListIdentityProviderConfigs"},
		Statement:   kind.EKS,
		Actions:     []string{"eks:AssociateIdentityProviderConfig", "eks:DisassociateIdentityProviderConfig", "eks:TagResource", "eks:UntagResource"},
	}, kind.Functions[IdentityProviderState]{})
}
