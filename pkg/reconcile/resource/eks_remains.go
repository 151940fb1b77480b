package resource

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// eksClusterNames lists the clusters of EKS in the region.
func eksClusterNames(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "EKS clusters", func(ctx context.Context) ([]string, error) {
		p := eks.NewListClustersPaginator(c.EKS, &eks.ListClustersInput{})
		return pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListClustersOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListClustersOutput) []string { return o.Clusters })
	})
}

// remainingEKS lists the cluster of EKS that carries the tag, and what of ours
// hangs on it.
func remainingEKS(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	names, err := eksClusterNames(ctx, c)
	for _, name := range names {
		before := len(out)
		if err := out.addOwned(ctx, c, "eks-cluster", RankEKS, found(func(ctx context.Context, c *cloud.Clients) (*EKSClusterState, error) {
			return eksClusterNamed(ctx, c, name)
		}, (&EKSCluster{}).Delete, eksClusterGoes, nil)); err != nil {
			return nil, err
		}
		if len(out) > before {
			c.Inside, c.Managed = name, true
			if err := out.addParts(ctx, c, name); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// TaggedEKS returns the cluster of EKS that carries the tag, or nil.
func TaggedEKS(ctx context.Context, c *cloud.Clients) (*EKSClusterState, error) {
	names, err := eksClusterNames(ctx, c)
	for _, name := range names {
		s, err := eksClusterNamed(ctx, c, name)
		if err != nil || s != nil && s.ours(c) {
			return s, err
		}
	}
	return nil, err
}

// EKSByName returns a cluster of EKS, or nil.
func EKSByName(ctx context.Context, c *cloud.Clients, name string) (*EKSClusterState, error) {
	return eksClusterNamed(ctx, c, name)
}

// addParts adds node groups and Fargate profiles. Add-ons, access entries and
// identity providers go with the cluster.
func (r *Remains) addParts(ctx context.Context, c *cloud.Clients, cluster string) error {
	p, err := PartsOfEKS(ctx, c, cluster)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		kind  string
		names []string
	}{{"node-group", p.NodeGroups}, {"fargate-profile", p.Fargate}} {
		for _, name := range part.names {
			if err := r.addOwned(ctx, c, part.kind, RankOnCluster, partOfEKS(part.kind, name, func() string { return cluster })); err != nil {
				return err
			}
		}
	}
	return nil
}

// remainingIAM lists the roles and OIDC providers that carry the tag. IAM
// cannot be asked for tags: only those with a telling name are looked at.
func remainingIAM(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	names, err := roleNames(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := out.addOwned(ctx, c, "role", RankUnderneath, found(func(ctx context.Context, c *cloud.Clients) (*IAMRoleState, error) {
			return roleNamed(ctx, c, name)
		}, removeRole, 0, nil)); err != nil {
			return nil, err
		}
	}
	providers, err := c.IAM.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return nil, err
	}
	for _, p := range providers.OpenIDConnectProviderList {
		arn := aws.ToString(p.Arn)
		if !strings.Contains(arn, "/oidc.eks."+c.Region+".") {
			continue
		}
		if err := out.addOwned(ctx, c, "oidc-provider", RankSecret, found(func(ctx context.Context, c *cloud.Clients) (*OIDCProviderState, error) {
			return oidcProvider(ctx, c, arn)
		}, (&OIDCProvider{}).Delete, 0, nil)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// roleNames lists the roles that may have been made for a cluster of EKS: the
// generated names have these words in them.
func roleNames(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "role names", func(ctx context.Context) ([]string, error) {
		p := iam.NewListRolesPaginator(c.IAM, &iam.ListRolesInput{})
		return pages(ctx, p.HasMorePages, func(ctx context.Context) (*iam.ListRolesOutput, error) { return p.NextPage(ctx) },
			func(o *iam.ListRolesOutput) (out []string) {
				for _, r := range o.Roles {
					name := aws.ToString(r.RoleName)
					if strings.Contains(name, c.Cluster) || strings.HasPrefix(name, "capa_") {
						out = append(out, name)
					}
				}
				return out
			})
	})
}
