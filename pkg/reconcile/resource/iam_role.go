package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// IAMRole is a role that AWS assumes on behalf of a cluster (CAPA: made with
// the feature EKSEnableIAM; facts E.2).
type IAMRole struct {
	Name, Path, Boundary string
	Services             []string // that may assume it: "eks.amazonaws.com"
	Policies             []string // ARNs; the list is complete
	Mark                 string   // the tag that says whose it is: kubernetes.io/cluster/NAME
	Tags                 cloud.Tags
}

// IAMRoleState is a role that exists.
type IAMRoleState struct {
	Object          // the ID is its ARN
	Name   string   //
	Policy []string // ARNs of the attached policies, sorted
	Theirs bool     // it carries neither the mark nor the cluster's tag: it is used as it is, and stays
}

var _ graph.Resource[IAMRoleState] = (*IAMRole)(nil)

// Needs implements graph.Resource.
func (r *IAMRole) Needs() []graph.Edge { return nil }

// Find implements graph.Resource.
func (r *IAMRole) Find(ctx context.Context, c *cloud.Clients) (*IAMRoleState, error) {
	s, err := roleNamed(ctx, c, r.Name)
	if s == nil || err != nil {
		return nil, err
	}
	s.Theirs = s.Tags[r.Mark] != cloud.Owned && s.Tags[c.OwnerTag()] != cloud.Owned
	if s.Theirs || cloud.IsBrief(ctx) {
		return s, nil
	}
	s.Policy, err = attachedPolicies(ctx, c, r.Name)
	return s, err
}

// Diff implements graph.Resource. The trust policy, the path and the boundary
// are set once, as Cluster API does.
func (r *IAMRole) Diff(have *IAMRoleState) (d graph.Diff) {
	if have.Theirs {
		return nil
	}
	d.Lines("policy", have.Policy, r.Policies)
	d.Tags(have.Tags, r.Tags)
	return d
}

// Create implements graph.Resource.
func (r *IAMRole) Create(ctx context.Context, c *cloud.Clients) (*IAMRoleState, error) {
	trust, err := r.trust()
	if err != nil {
		return nil, err
	}
	in := &iam.CreateRoleInput{RoleName: &r.Name, AssumeRolePolicyDocument: &trust, Tags: iamTags(r.Tags)}
	if r.Path != "" {
		in.Path = &r.Path
	}
	if r.Boundary != "" {
		in.PermissionsBoundary = &r.Boundary
	}
	out, err := c.IAM.CreateRole(ctx, in)
	if err != nil {
		return nil, err
	}
	return &IAMRoleState{Object: Object{aws.ToString(out.Role.Arn), r.Tags}, Name: r.Name}, nil
}

// trust is the policy that says who may assume the role.
func (r *IAMRole) trust() (string, error) {
	type statement struct {
		Effect    string
		Principal map[string][]string
		Action    []string
	}
	document := struct {
		Version   string
		Statement []statement
	}{"2012-10-17", []statement{{"Allow", map[string][]string{"Service": r.Services}, []string{"sts:AssumeRole"}}}}
	out, err := json.Marshal(document)
	return string(out), err
}

// Update implements graph.Resource.
func (r *IAMRole) Update(ctx context.Context, c *cloud.Clients, have *IAMRoleState, d graph.Diff) (*IAMRoleState, error) {
	after := *have
	after.Policy = slices.Clone(have.Policy)
	for _, arn := range d.Added("policy") {
		if _, err := c.IAM.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &r.Name, PolicyArn: &arn}); err != nil {
			return nil, err
		}
		after.Policy = append(after.Policy, arn)
	}
	for _, arn := range d.Removed("policy") {
		if err := detach(ctx, c, r.Name, arn); err != nil {
			return nil, err
		}
		after.Policy = slices.DeleteFunc(after.Policy, func(p string) bool { return p == arn })
	}
	if d.HasTags() {
		if _, err := c.IAM.TagRole(ctx, &iam.TagRoleInput{RoleName: &r.Name, Tags: iamTags(r.Tags)}); err != nil {
			return nil, err
		}
		after.Tags = after.Tags.With(r.Tags)
	}
	return &after, nil
}

// Delete implements graph.Resource. A role goes only without its policies.
func (r *IAMRole) Delete(ctx context.Context, c *cloud.Clients, have *IAMRoleState) error {
	if have.Theirs {
		return nil
	}
	return removeRole(ctx, c, have)
}

func removeRole(ctx context.Context, c *cloud.Clients, have *IAMRoleState) error {
	policies, err := attachedPolicies(ctx, c, have.Name)
	if err != nil {
		return err
	}
	for _, arn := range policies {
		if err := detach(ctx, c, have.Name, arn); err != nil {
			return err
		}
	}
	_, err = c.IAM.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &have.Name})
	return err
}

func detach(ctx context.Context, c *cloud.Clients, role, policy string) error {
	_, err := c.IAM.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &role, PolicyArn: &policy})
	return cloud.IgnoreNotFound(err)
}

// roleNamed returns a role, or nil.
func roleNamed(ctx context.Context, c *cloud.Clients, name string) (*IAMRoleState, error) {
	return cloud.Remember(ctx, c, "role "+name, func(ctx context.Context) (*IAMRoleState, error) {
		out, err := c.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		return &IAMRoleState{Object: Object{aws.ToString(out.Role.Arn), fromIAM(out.Role.Tags)}, Name: name}, nil
	})
}

func attachedPolicies(ctx context.Context, c *cloud.Clients, role string) ([]string, error) {
	return cloud.Remember(ctx, c, "policies of role "+role, func(ctx context.Context) ([]string, error) {
		p := iam.NewListAttachedRolePoliciesPaginator(c.IAM, &iam.ListAttachedRolePoliciesInput{RoleName: &role})
		out, err := pages(ctx, p.HasMorePages, func(ctx context.Context) (*iam.ListAttachedRolePoliciesOutput, error) { return p.NextPage(ctx) },
			func(o *iam.ListAttachedRolePoliciesOutput) (out []string) {
				for _, x := range o.AttachedPolicies {
					out = append(out, aws.ToString(x.PolicyArn))
				}
				return out
			})
		slices.Sort(out)
		return out, err
	})
}

func iamTags(tags cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

// RoleByName returns a lookup of a role that somebody else made. The hint says
// what to do where there is none. Who looks briefly, to delete, does without.
func RoleByName(name, hint string) graph.Lookup[IAMRoleState] {
	return func(ctx context.Context, c *cloud.Clients) (*IAMRoleState, error) {
		if cloud.IsBrief(ctx) {
			return &IAMRoleState{Name: name, Theirs: true}, nil
		}
		s, err := roleNamed(ctx, c, name)
		if s == nil && err == nil {
			return nil, fmt.Errorf("the account has no role %s: %s", name, hint)
		}
		return s, err
	}
}

func fromIAM(tags []types.Tag) cloud.Tags {
	out := cloud.Tags{}
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}
