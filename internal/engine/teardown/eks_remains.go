package teardown

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
)

// eksClusterNames lists the clusters of EKS in the region.
func eksClusterNames(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "EKS clusters", func(ctx context.Context) ([]string, error) {
		p := awseks.NewListClustersPaginator(c.EKS, &awseks.ListClustersInput{})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*awseks.ListClustersOutput, error) { return p.NextPage(ctx) },
			func(o *awseks.ListClustersOutput) []string { return o.Clusters })
	})
}

// remainingEKS lists the cluster of EKS that carries the tag, and what of ours
// hangs on it.
func remainingEKS(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	names, err := eksClusterNames(ctx, c)
	for _, name := range names {
		before := len(out)
		if err := out.addOwned(ctx, c, "eks-cluster", RankEKS, found(func(ctx context.Context, c *cloud.Clients) (*eks.ClusterState, error) {
			return eks.ClusterByName(ctx, c, name)
		}, (&eks.Cluster{}).Delete, eks.ClusterGoes, nil)); err != nil {
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
func TaggedEKS(ctx context.Context, c *cloud.Clients) (*eks.ClusterState, error) {
	names, err := eksClusterNames(ctx, c)
	for _, name := range names {
		s, err := eks.ClusterByName(ctx, c, name)
		if err != nil || s != nil && s.Ours(c) {
			return s, err
		}
	}
	return nil, err
}

// EKSByName returns a cluster of EKS, or nil.
func EKSByName(ctx context.Context, c *cloud.Clients, name string) (*eks.ClusterState, error) {
	return eks.ClusterByName(ctx, c, name)
}

// addParts adds node groups and Fargate profiles. Add-ons, access entries and
// identity providers go with the cluster.
func (r *Remains) addParts(ctx context.Context, c *cloud.Clients, cluster string) error {
	p, err := eks.PartsOf(ctx, c, cluster)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		kind  string
		names []string
	}{{"node-group", p.NodeGroups}, {"fargate-profile", p.Fargate}} {
		for _, name := range part.names {
			if err := r.addOwned(ctx, c, part.kind, RankOnCluster, partOfCluster(part.kind, name, func() string { return cluster })); err != nil {
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
		if err := out.addOwned(ctx, c, "role", RankUnderneath, found(func(ctx context.Context, c *cloud.Clients) (*iam.RoleState, error) {
			return iam.GetRole(ctx, c, name)
		}, iam.DeleteRole, 0, nil)); err != nil {
			return nil, err
		}
	}
	providers, err := c.IAM.ListOpenIDConnectProviders(ctx, &awsiam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return nil, err
	}
	for _, p := range providers.OpenIDConnectProviderList {
		arn := aws.ToString(p.Arn)
		if !strings.Contains(arn, "/oidc.eks."+c.Region+".") {
			continue
		}
		if err := out.addOwned(ctx, c, "oidc-provider", RankSecret, found(func(ctx context.Context, c *cloud.Clients) (*eks.OIDCProviderState, error) {
			return eks.OIDCProviderByARN(ctx, c, arn)
		}, (&eks.OIDCProvider{}).Delete, 0, nil)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// roleNames lists the roles that may have been made for a cluster of EKS: the
// generated names have these words in them.
func roleNames(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "role names", func(ctx context.Context) ([]string, error) {
		p := awsiam.NewListRolesPaginator(c.IAM, &awsiam.ListRolesInput{})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*awsiam.ListRolesOutput, error) { return p.NextPage(ctx) },
			func(o *awsiam.ListRolesOutput) (out []string) {
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
