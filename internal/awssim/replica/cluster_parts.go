package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

func (r *reader) fargate(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var names []string
	err := pages(ctx, eks.NewListFargateProfilesPaginator(c, &eks.ListFargateProfilesInput{ClusterName: &own.Name}), func(p *eks.ListFargateProfilesOutput) {
		names = append(names, p.FargateProfileNames...)
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		out, err := c.DescribeFargateProfile(ctx, &eks.DescribeFargateProfileInput{ClusterName: &own.Name, FargateProfileName: &name})
		if err != nil {
			return err
		}
		x := out.FargateProfile
		f := &sim.Fargate{Name: name, ARN: aws.ToString(x.FargateProfileArn), RoleARN: aws.ToString(x.PodExecutionRoleArn), Subnets: x.Subnets, Tags: x.Tags, Born: r.since(x.CreatedAt)}
		f.Ready = r.until(x.Status == types.FargateProfileStatusCreating, f.Born)
		if x.Status == types.FargateProfileStatusDeleting {
			f.Deleted = r.Now
		}
		for _, s := range x.Selectors {
			f.Selectors = append(f.Selectors, sim.Selector{Namespace: aws.ToString(s.Namespace), Labels: s.Labels})
		}
		own.Fargate[name] = f
	}
	return nil
}

// access reads access entries, which clusters with the authentication mode CONFIG_MAP do not
// have.
func (r *reader) access(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	if own.Authentication == string(types.AuthenticationModeConfigMap) {
		return nil
	}
	var principals []string
	err := pages(ctx, eks.NewListAccessEntriesPaginator(c, &eks.ListAccessEntriesInput{ClusterName: &own.Name}), func(p *eks.ListAccessEntriesOutput) {
		principals = append(principals, p.AccessEntries...)
	})
	if err != nil {
		return err
	}
	for _, arn := range principals {
		out, err := c.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &own.Name, PrincipalArn: &arn})
		if err != nil {
			return err
		}
		x := out.AccessEntry
		e := &sim.Access{
			Principal: arn, ARN: aws.ToString(x.AccessEntryArn), Type: aws.ToString(x.Type), User: aws.ToString(x.Username), Groups: x.KubernetesGroups, Tags: x.Tags,
			Born: r.since(x.CreatedAt), Modified: r.since(x.ModifiedAt),
		}
		in := &eks.ListAssociatedAccessPoliciesInput{ClusterName: &own.Name, PrincipalArn: &arn}
		err = pages(ctx, eks.NewListAssociatedAccessPoliciesPaginator(c, in), func(p *eks.ListAssociatedAccessPoliciesOutput) {
			for _, a := range p.AssociatedAccessPolicies {
				policy := sim.AccessPolicy{ARN: aws.ToString(a.PolicyArn), Born: r.since(a.AssociatedAt)}
				if a.AccessScope != nil {
					policy.Namespaces = a.AccessScope.Namespaces
				}
				e.Policies = append(e.Policies, policy)
			}
		})
		if err != nil {
			return err
		}
		own.Access[arn] = e
	}
	return nil
}

func (r *reader) identityProviders(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var all []types.IdentityProviderConfig
	err := pages(ctx, eks.NewListIdentityProviderConfigsPaginator(c, &eks.ListIdentityProviderConfigsInput{ClusterName: &own.Name}), func(p *eks.ListIdentityProviderConfigsOutput) {
		all = append(all, p.IdentityProviderConfigs...)
	})
	if err != nil {
		return err
	}
	for _, config := range all {
		out, err := c.DescribeIdentityProviderConfig(ctx, &eks.DescribeIdentityProviderConfigInput{ClusterName: &own.Name, IdentityProviderConfig: &config})
		if err != nil {
			return err
		}
		x := out.IdentityProviderConfig.Oidc
		p := &sim.Provider{
			Name: aws.ToString(x.IdentityProviderConfigName), ARN: aws.ToString(x.IdentityProviderConfigArn), Issuer: aws.ToString(x.IssuerUrl), Client: aws.ToString(x.ClientId),
			UserClaim: aws.ToString(x.UsernameClaim), UserPrefix: aws.ToString(x.UsernamePrefix), GroupsClaim: aws.ToString(x.GroupsClaim), GroupsPrefix: aws.ToString(x.GroupsPrefix),
			RequiredClaims: x.RequiredClaims, Tags: x.Tags,
		}
		p.Ready = r.until(x.Status == types.ConfigStatusCreating, r.old())
		if x.Status == types.ConfigStatusDeleting {
			p.Deleted = r.Now
		}
		own.Providers[p.Name] = p
	}
	return nil
}

func (r *reader) podIdentities(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var ids []*string
	err := pages(ctx, eks.NewListPodIdentityAssociationsPaginator(c, &eks.ListPodIdentityAssociationsInput{ClusterName: &own.Name}), func(p *eks.ListPodIdentityAssociationsOutput) {
		for _, a := range p.Associations {
			ids = append(ids, a.AssociationId)
		}
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		out, err := c.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: &own.Name, AssociationId: id})
		if err != nil {
			return err
		}
		x := out.Association
		own.PodIdentities[*id] = &sim.PodIdentity{
			ID: *id, Namespace: aws.ToString(x.Namespace), ServiceAccount: aws.ToString(x.ServiceAccount), RoleARN: aws.ToString(x.RoleArn), Tags: x.Tags,
			Born: r.since(x.CreatedAt), Modified: r.since(x.ModifiedAt),
		}
	}
	return nil
}
