package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

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
