package replica

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// last returns the part after the last slash.
func last(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

func roleTags(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
}

// document returns a policy document, which IAM encodes as in URLs.
func document(text *string) string {
	plain, err := url.PathUnescape(aws.ToString(text))
	if err != nil {
		return aws.ToString(text)
	}
	return plain
}

// roles reads the instance profiles and the roles that the plan asks for, and those of
// CAPA's bootstrap, with the policies of the account that they have. Others are not copied.
func (r *reader) roles(ctx context.Context) error {
	c := iam.NewFromConfig(r.Config)
	s := sim.State{Roles: map[string]*sim.Role{}, Profiles: map[string]*sim.InstanceProfile{}, Policies: map[string]*sim.Policy{}}
	for _, name := range r.askedProfiles() {
		if err := r.profile(ctx, c, &s, name); err != nil {
			return err
		}
	}
	for _, name := range r.askedRoles() {
		if err := r.role(ctx, c, &s, name); err != nil {
			return err
		}
	}
	r.to.IAM.Roles, r.to.IAM.Profiles, r.to.IAM.Policies, r.roled = s.Roles, s.Profiles, s.Policies, true
	return r.providers(ctx, c)
}

func (r *reader) askedProfiles() []string {
	names := sim.BootstrapProfiles()
	for _, in := range of[iam.GetInstanceProfileInput](r.Asked) {
		names = append(names, aws.ToString(in.InstanceProfileName))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *reader) askedRoles() []string {
	names := append(sim.BootstrapProfiles(), "eks-controlplane.cluster-api-provider-aws.sigs.k8s.io", "eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io", "eks-fargate.cluster-api-provider-aws.sigs.k8s.io")
	for _, in := range of[iam.GetRoleInput](r.Asked) {
		names = append(names, aws.ToString(in.RoleName))
	}
	for _, in := range of[sts.AssumeRoleInput](r.Asked) {
		if arn := aws.ToString(in.RoleArn); strings.Contains(arn, ":"+r.Account+":") {
			names = append(names, last(arn))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *reader) profile(ctx context.Context, c *iam.Client, s *sim.State, name string) error {
	out, err := c.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p := out.InstanceProfile
	own := &sim.InstanceProfile{Name: aws.ToString(p.InstanceProfileName), Path: aws.ToString(p.Path), Tags: roleTags(p.Tags), Born: r.since(p.CreateDate)}
	s.Profiles[own.Name] = own
	for _, in := range p.Roles {
		own.Role = aws.ToString(in.RoleName)
		if err := r.role(ctx, c, s, own.Role); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) role(ctx context.Context, c *iam.Client, s *sim.State, name string) error {
	if s.Roles[name] != nil {
		return nil
	}
	out, err := c.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	own := &sim.Role{
		Name: aws.ToString(out.Role.RoleName), Path: aws.ToString(out.Role.Path), Description: aws.ToString(out.Role.Description), Trust: document(out.Role.AssumeRolePolicyDocument),
		MaxSession: aws.ToInt32(out.Role.MaxSessionDuration), Tags: roleTags(out.Role.Tags), Born: r.since(out.Role.CreateDate), Holder: sim.Holder{Inline: map[string]string{}},
	}
	if b := out.Role.PermissionsBoundary; b != nil {
		own.Boundary = aws.ToString(b.PermissionsBoundaryArn)
	}
	s.Roles[own.Name] = own
	return r.part(ctx, "the policies of role "+own.Name, func(ctx context.Context) error { return r.policiesOf(ctx, c, s, own) })
}

// policiesOf reads the policies of a role: inline ones, and attached ones of the account.
func (r *reader) policiesOf(ctx context.Context, c *iam.Client, s *sim.State, role *sim.Role) error {
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
	err = pages(ctx, iam.NewListAttachedRolePoliciesPaginator(c, &iam.ListAttachedRolePoliciesInput{RoleName: &role.Name}), func(p *iam.ListAttachedRolePoliciesOutput) {
		for _, a := range p.AttachedPolicies {
			role.Attached = append(role.Attached, aws.ToString(a.PolicyArn))
		}
	})
	if err != nil {
		return err
	}
	for _, arn := range role.Attached {
		if strings.Contains(arn, ":iam::aws:") {
			continue // AWS's own: the simulated account knows those that matter
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

// providers reads the OpenID Connect providers of the account.
func (r *reader) providers(ctx context.Context, c *iam.Client) error {
	list, err := c.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return err
	}
	r.to.IAM.Providers = map[string]*sim.OIDCProvider{}
	for _, p := range list.OpenIDConnectProviderList {
		out, err := c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: p.Arn})
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		own := &sim.OIDCProvider{
			ARN: aws.ToString(p.Arn), URL: aws.ToString(out.Url), Clients: out.ClientIDList, Thumbprints: out.ThumbprintList, Tags: roleTags(out.Tags), Born: r.since(out.CreateDate),
		}
		r.to.IAM.Providers[own.ARN] = own
	}
	return nil
}
