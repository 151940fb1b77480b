package resource

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"clusterawsadm/internal/cloud"
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
		s, err := eksClusterNamed(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if s == nil || s.Tags[c.OwnerTag()] != cloud.Owned {
			continue
		}
		again := func(ctx context.Context, c *cloud.Clients) (*EKSClusterState, error) {
			return eksClusterNamed(ctx, c, name)
		}
		c.Inside, c.Managed = name, true
		out = append(out, remain("eks-cluster", RankEKS, *s, s.Object, eksClusterGoes, again, (&EKSCluster{}).Delete))
		parts, err := remainingParts(ctx, c, name)
		if err != nil {
			return nil, err
		}
		out = append(out, parts...)
	}
	return out, err
}

// TaggedEKS returns the cluster of EKS that carries the tag, or nil.
func TaggedEKS(ctx context.Context, c *cloud.Clients) (*EKSClusterState, error) {
	names, err := eksClusterNames(ctx, c)
	for _, name := range names {
		s, err := eksClusterNamed(ctx, c, name)
		if err != nil || s != nil && s.Tags[c.OwnerTag()] == cloud.Owned {
			return s, err
		}
	}
	return nil, err
}

// EKSByName returns a cluster of EKS, or nil.
func EKSByName(ctx context.Context, c *cloud.Clients, name string) (*EKSClusterState, error) {
	return eksClusterNamed(ctx, c, name)
}

// remainingParts lists node groups, Fargate profiles and add-ons. Access
// entries and identity providers go with the cluster.
func remainingParts(ctx context.Context, c *cloud.Clients, cluster string) (out Remains, err error) {
	p, err := PartsOfEKS(ctx, c, cluster)
	if err != nil {
		return nil, err
	}
	for _, name := range p.NodeGroups {
		find := func(ctx context.Context, c *cloud.Clients) (*EKSNodeGroupState, error) {
			return nodeGroupNamed(ctx, c, cluster, name)
		}
		s, err := find(ctx, c)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, remain("node-group", RankOnCluster, *s, s.Object, eksNodeGroupGoes, find, func(ctx context.Context, c *cloud.Clients, s *EKSNodeGroupState) error {
				return deleteNodeGroup(ctx, c, cluster, s)
			}))
		}
	}
	for _, name := range p.Fargate {
		find := func(ctx context.Context, c *cloud.Clients) (*EKSFargateProfileState, error) {
			return fargateNamed(ctx, c, cluster, name)
		}
		s, err := find(ctx, c)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, remain("fargate-profile", RankOnCluster, *s, s.Object, eksFargateGoes, find, func(ctx context.Context, c *cloud.Clients, s *EKSFargateProfileState) error {
				return eksNotYet(deleteFargate(ctx, c, cluster, s)) // one at a time
			}))
		}
	}
	return out, nil
}

// remainingIAM lists the roles and OIDC providers that carry the tag. IAM
// cannot be asked for tags: only those with a telling name are looked at.
func remainingIAM(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	names, err := roleNames(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		find := func(ctx context.Context, c *cloud.Clients) (*IAMRoleState, error) { return roleNamed(ctx, c, name) }
		s, err := find(ctx, c)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, remain("role", RankUnderneath, *s, s.Object, 0, find, removeRole))
		}
	}
	providers, err := c.IAM.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return nil, err
	}
	for _, p := range providers.OpenIDConnectProviderList {
		arn := str(p.Arn)
		if !strings.Contains(arn, "/oidc.eks."+c.Region+".") {
			continue
		}
		find := func(ctx context.Context, c *cloud.Clients) (*OIDCProviderState, error) {
			return oidcProvider(ctx, c, arn)
		}
		s, err := find(ctx, c)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, remain("oidc-provider", RankSecret, *s, s.Object, 0, find, (&OIDCProvider{}).Delete))
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
					name := str(r.RoleName)
					if strings.Contains(name, c.Cluster) || strings.HasPrefix(name, "capa_") {
						out = append(out, name)
					}
				}
				return out
			})
	})
}
