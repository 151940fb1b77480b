package replica

import (
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// policiesOf reads the policies of a role: inline ones, and attached ones of the account.
func (r *reader) policiesOf(ctx context.Context, c *iam.Client, s *sim.State, role *sim.Role) error {
	if err := inlinePolicies(ctx, c, role); err != nil {
		return err
	}
	return r.attachedPolicies(ctx, c, s, role)
}

func inlinePolicies(ctx context.Context, c *iam.Client, role *sim.Role) error {
	var inline []string
	err := pages(ctx, iam.NewListRolePoliciesPaginator(c, &iam.ListRolePoliciesInput{RoleName: &role.Name}), func(p *iam.ListRolePoliciesOutput) {
		inline = append(inline, p.PolicyNames...)
	})
	if err != nil {
		return err
	}
	for _, name := range inline {
		out, err := c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role.Name, PolicyName: &name})
		if err != nil {
			return err
		}
		role.Inline[name] = document(out.PolicyDocument)
	}
	return nil
}

// attachedPolicies reads the attached policies of a role. AWS's own are not copied: the simulated
// account knows those that matter.
func (r *reader) attachedPolicies(ctx context.Context, c *iam.Client, s *sim.State, role *sim.Role) error {
	err := pages(
		ctx,
		iam.NewListAttachedRolePoliciesPaginator(c, &iam.ListAttachedRolePoliciesInput{RoleName: &role.Name}),
		func(p *iam.ListAttachedRolePoliciesOutput) {
			for _, a := range p.AttachedPolicies {
				role.Attached = append(role.Attached, aws.ToString(a.PolicyArn))
			}
		},
	)
	if err != nil {
		return err
	}
	for _, arn := range role.Attached {
		if strings.Contains(arn, ":iam::aws:") {
			continue
		}
		if err := r.policy(ctx, c, s, arn); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) policy(ctx context.Context, c *iam.Client, s *sim.State, arn string) error {
	out, err := c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &arn})
	if err != nil {
		return err
	}
	p := out.Policy
	version, err := c.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: &arn, VersionId: p.DefaultVersionId})
	if err != nil {
		return err
	}
	own := &sim.Policy{
		Name: aws.ToString(p.PolicyName), Path: aws.ToString(p.Path), Description: aws.ToString(p.Description), Default: aws.ToString(p.DefaultVersionId), Last: 1,
		Tags: roleTags(p.Tags), Born: r.since(p.CreateDate), Changed: r.since(p.UpdateDate),
	}
	own.Versions = []*sim.PolicyVersion{{ID: own.Default, Document: document(version.PolicyVersion.Document), Born: own.Born}}
	s.Policies[own.Name] = own
	return nil
}

// document returns a policy document, which IAM encodes as in URLs.
func document(text *string) string {
	plain, err := url.PathUnescape(aws.ToString(text))
	if err != nil {
		return aws.ToString(text)
	}
	return plain
}
