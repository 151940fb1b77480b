package iam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsarn "github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Role is an IAM role that AWS services assume for an EKS cluster. CAPA creates it with
// the feature gate EKSEnableIAM. Others are those of pods.
type Role struct {
	Name, Path, Boundary string
	Services             []string // service principals that may assume it: "eks.amazonaws.com"
	TagsSessions         bool     // they may tag the sessions, as EKS Pod Identity does
	Exclusive            bool     // a role with the name that somebody else has made is not used
	Policies             []string // ARNs; others are detached
	Given                []string // those of them that the manifest names
	Inline               string   // document of the inline policy, which has the name of the role; "": none is set
	ClusterTag           string   // kubernetes.io/cluster/NAME: CAPA sets it to "owned" on roles that it creates
	Tags                 cloud.Tags
}

// RoleState is an IAM role, as AWS describes it.
type RoleState struct {
	identity.Object // the ID is its ARN
	Name            string
	Policy          []string // ARNs of the attached policies, sorted
	Inline          string   // document of the inline policy with the name of the role, as canonical JSON
	Existing        bool     // it has neither tag: it is used, and never changed or deleted
	Trust           string   // trust policy
	Path            string   // "/" for none
	Boundary        string   // ARN of the permissions boundary; "" for none
}

var _ graph.Managed[RoleState] = (*Role)(nil)

// Needs implements graph.Desired.
func (r *Role) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (r *Role) Find(ctx context.Context, c *cloud.Clients) (*RoleState, error) {
	s, err := r.Identify(ctx, c, nil)
	if s == nil || err != nil || s.Existing {
		return s, err
	}
	have := *s
	if have.Policy, err = AttachedPolicies(ctx, c, r.Name); err == nil && r.Inline != "" {
		have.Inline, err = inlinePolicy(ctx, c, r.Name)
	}
	return &have, err
}

// Identify implements graph.Identified.
func (r *Role) Identify(ctx context.Context, c *cloud.Clients, _ *RoleState) (*RoleState, error) {
	s, err := GetRole(ctx, c, r.Name)
	if s == nil || err != nil {
		return nil, err
	}
	s.Existing = s.Tags[r.ClusterTag] != cloud.Owned && s.Tags[c.OwnerTag()] != cloud.Owned
	return s, nil
}

// Diff implements graph.Desired. As in CAPA, the trust policy is set only at creation. Without a path or a permissions boundary in the
// manifest, the role keeps those that it has: others may have set the boundary. IAM does not change paths.
func (r *Role) Diff(have *RoleState) (d plan.Diff) {
	switch {
	case have.Existing && r.Exclusive:
		d.Fixed("owner", "somebody else", "this cluster")
		d.Advise(kind.RestoreAdvice(have.ID, have.Tags, r.Tags) + "delete the role " + r.Name + ", or name it in the manifest by its roleARN instead of policyARNs")
		return d
	case have.Existing:
		return nil
	}
	if r.TagsSessions && have.Trust != "" && !strings.Contains(have.Trust, "sts:TagSession") { // made for another purpose
		d.Fixed("trustPolicy", "without sts:TagSession", "with sts:TagSession")
		d.Advise("change it with 'aws iam update-assume-role-policy --role-name " + r.Name + "', or name another role")
	}
	if r.Path != "" && have.Path != "" && have.Path != r.Path {
		d.Fixed("path", have.Path, r.Path)
		d.Advise("IAM does not change the path of a role: keep rolePath as it was, or set another roleName where it can change")
	}
	if r.Boundary != "" {
		d.Set("permissionsBoundary", have.Boundary, r.Boundary)
	}
	d.Lines("policy", have.Policy, r.Policies)
	if r.Inline != "" {
		d.Set("inlinePolicy", have.Inline, text.CanonicalJSON(r.Inline))
	}
	d.Tags(have.Tags, r.Tags)
	return d
}

// Create implements graph.Creator.
func (r *Role) Create(ctx context.Context, c *cloud.Clients) (*RoleState, error) {
	trust, err := r.trust()
	if err != nil {
		return nil, err
	}
	in := &iam.CreateRoleInput{RoleName: &r.Name, AssumeRolePolicyDocument: &trust, Tags: Tags(r.Tags)}
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
	return &RoleState{
		Object: identity.Object{ID: aws.ToString(out.Role.Arn), Tags: r.Tags}, Name: r.Name, Path: aws.ToString(out.Role.Path), Boundary: r.Boundary,
	}, nil
}

// trust returns the trust policy.
func (r *Role) trust() (string, error) {
	type statement struct {
		Effect    string
		Principal map[string][]string
		Action    []string
	}
	document := struct {
		Version   string
		Statement []statement
	}{"2012-10-17", []statement{{"Allow", map[string][]string{"Service": r.Services}, []string{"sts:AssumeRole"}}}}
	if r.TagsSessions {
		document.Statement[0].Action = append(document.Statement[0].Action, "sts:TagSession")
	}
	out, err := json.Marshal(document)
	return string(out), err
}

// Update implements graph.Updater.
func (r *Role) Update(ctx context.Context, c *cloud.Clients, have *RoleState, d plan.Diff) (*RoleState, error) {
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
	if d.Has("permissionsBoundary") {
		in := &iam.PutRolePermissionsBoundaryInput{RoleName: &r.Name, PermissionsBoundary: &r.Boundary}
		if _, err := c.IAM.PutRolePermissionsBoundary(ctx, in); err != nil {
			return nil, err
		}
		after.Boundary = r.Boundary
	}
	if d.Has("inlinePolicy") {
		in := &iam.PutRolePolicyInput{RoleName: &r.Name, PolicyName: &r.Name, PolicyDocument: &r.Inline}
		if _, err := c.IAM.PutRolePolicy(ctx, in); err != nil {
			return nil, err
		}
		after.Inline = text.CanonicalJSON(r.Inline)
	}
	var err error
	after.Tags, err = identity.ChangeTags(have.Tags, r.Tags, d, func() error {
		_, err := c.IAM.TagRole(ctx, &iam.TagRoleInput{RoleName: &r.Name, Tags: Tags(r.Tags)})
		return err
	}, func(keys []string) error {
		_, err := c.IAM.UntagRole(ctx, &iam.UntagRoleInput{RoleName: &r.Name, TagKeys: keys})
		return err
	})
	return &after, err
}

// Delete implements graph.Deleter. DeleteRole fails while policies are attached, and while the role has inline policies or is in an
// instance profile, which few roles are.
func (r *Role) Delete(ctx context.Context, c *cloud.Clients, have *RoleState) error {
	if have.Existing {
		return nil
	}
	policies, err := AttachedPolicies(ctx, c, have.Name)
	if err != nil {
		return err
	}
	for _, arn := range policies {
		if err := detach(ctx, c, have.Name, arn); err != nil {
			return err
		}
	}
	_, err = c.IAM.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &have.Name})
	if !cloud.Is(err, "DeleteConflict") {
		return err
	}
	if err := deleteInline(ctx, c, have.Name); err != nil {
		return err
	}
	if err := leaveProfiles(ctx, c, *have); err != nil {
		return err
	}
	_, err = c.IAM.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &have.Name})
	return err
}

func detach(ctx context.Context, c *cloud.Clients, role, policy string) error {
	_, err := c.IAM.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &role, PolicyArn: &policy})
	return cloud.IgnoreNotFound(err)
}

// GetRole returns a role, or nil.
func GetRole(ctx context.Context, c *cloud.Clients, name string) (*RoleState, error) {
	return cloud.Remember(ctx, c, "role "+name, func(ctx context.Context) (*RoleState, error) {
		out, err := c.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		trust, err := url.QueryUnescape(aws.ToString(out.Role.AssumeRolePolicyDocument))
		s := &RoleState{
			Object: identity.Object{ID: aws.ToString(out.Role.Arn), Tags: FromIAM(out.Role.Tags)}, Name: name, Trust: trust, Path: aws.ToString(out.Role.Path),
		}
		if b := out.Role.PermissionsBoundary; b != nil {
			s.Boundary = aws.ToString(b.PermissionsBoundaryArn)
		}
		return s, err
	})
}

// AttachedPolicies lists the ARNs of the managed policies of a role, sorted.
func AttachedPolicies(ctx context.Context, c *cloud.Clients, role string) ([]string, error) {
	return cloud.Remember(ctx, c, "policies of role "+role, func(ctx context.Context) ([]string, error) {
		p := iam.NewListAttachedRolePoliciesPaginator(c.IAM, &iam.ListAttachedRolePoliciesInput{RoleName: &role})
		out, err := cloud.Pages(ctx, p, func(o *iam.ListAttachedRolePoliciesOutput) (out []string) {
			for _, x := range o.AttachedPolicies {
				out = append(out, aws.ToString(x.PolicyArn))
			}
			return out
		})
		slices.Sort(out)
		return out, err
	})
}

// Tags converts tags for the IAM API.
func Tags(tags cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

// RoleByName looks up an existing role. The hint is the advice if it does not exist.
func RoleByName(name, hint string) graph.Lookup[RoleState] {
	return func(ctx context.Context, c *cloud.Clients) (*RoleState, error) {
		s, err := GetRole(ctx, c, name)
		if s == nil && err == nil {
			return nil, fmt.Errorf("role %s does not exist in the account: %s", name, hint)
		}
		return s, err
	}
}

// RoleByARN looks up an existing role that is passed to a service: it has exactly this ARN.
func RoleByARN(arn, hint string) graph.Lookup[RoleState] {
	name := RoleName(arn)
	find := RoleByName(name, hint)
	return func(ctx context.Context, c *cloud.Clients) (*RoleState, error) {
		caller, err := Caller(ctx, c)
		if err != nil {
			return nil, err
		}
		if parsed, err := awsarn.Parse(arn); err == nil && parsed.AccountID != caller.Account {
			return nil, errors.New(foreignRole(arn, caller.Account))
		}
		s, err := find(ctx, c)
		if s != nil && s.ID != arn {
			return nil, fmt.Errorf("the ARN of the role %s is %s, not %s: correct it", name, s.ID, arn)
		}
		return s, err
	}
}

// FromIAM converts tags of the IAM API.
func FromIAM(tags []types.Tag) cloud.Tags {
	return cloud.TagsFrom(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// RoleKind is the name of the kind of roles.
const RoleKind = "role"

// roleKind declares roles.
func roleKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: RoleKind, Rehearsed: true, Area: plan.AreaPrerequisites, ByNameOnly: true,
		ReadActions: []string{
			"iam:GetPolicy", "iam:GetRole", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies", "iam:ListInstanceProfilesForRole", "iam:ListRolePolicies",
			"iam:ListRoles",
		},
		Statement: kind.Roles, Behind: "machine",
		Actions: []string{
			"iam:AttachRolePolicy", "iam:CreateRole", "iam:DeleteInstanceProfile", "iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy",
			"iam:PutRolePermissionsBoundary", "iam:PutRolePolicy", "iam:RemoveRoleFromInstanceProfile", "iam:TagRole", "iam:UntagRole",
		},
	}, kind.Functions[RoleState]{
		List: ownedRoles, Delete: &Role{},
		ID: func(s RoleState) plan.ID { return plan.ID("role/" + s.Name) },
		Find: func(ctx context.Context, c *cloud.Clients, s RoleState) (*RoleState, error) {
			return GetRole(ctx, c, s.Name)
		},
	})
}

// RolesWithPath lists the names of the roles with a path, sorted.
func RolesWithPath(ctx context.Context, c *cloud.Clients, path string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of roles with the path "+path, func(ctx context.Context) ([]string, error) {
		p := iam.NewListRolesPaginator(c.IAM, &iam.ListRolesInput{PathPrefix: &path})
		names, err := cloud.Pages(ctx, p, func(o *iam.ListRolesOutput) (out []string) {
			for _, r := range o.Roles {
				out = append(out, aws.ToString(r.RoleName))
			}
			return out
		})
		slices.Sort(names)
		return names, err
	})
}

// RetireRole adds the deletion of a role that is not desired any more, if the cluster owns it, after what has used it.
func RetireRole(g *graph.Graph, id plan.ID, name string, after []graph.Edge) {
	kind.Retire(g, id, identity.OwnedByName(GetRole, name), &Role{}, after)
}

// HasGeneratedName reports whether a role has a name of the form that this program and CAPA generate for the roles of a cluster.
func HasGeneratedName(name, cluster string) bool {
	generated := strings.HasSuffix(name, "iam-service-role") || strings.HasSuffix(name, "_fargate")
	return generated && strings.Contains(name, cluster) || strings.HasPrefix(name, "capa_")
}

// RoleName returns the name in the ARN of a role, which may have a path.
func RoleName(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// ownedRoles lists the roles that the cluster owns. ListRoles does not return tags, so it
// reads only roles with the name of the cluster, or the prefix of names that CAPA
// generates.
func ownedRoles(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]RoleState, error) {
	return OwnedRoles(ctx, c)
}

// OwnedRoles lists the roles that the cluster owns.
func OwnedRoles(ctx context.Context, c *cloud.Clients) (out []RoleState, err error) {
	names, err := cloud.Remember(ctx, c, "role names", func(ctx context.Context) ([]string, error) {
		p := iam.NewListRolesPaginator(c.IAM, &iam.ListRolesInput{})
		return cloud.Pages(ctx, p, func(o *iam.ListRolesOutput) (out []string) {
			for _, r := range o.Roles {
				name := aws.ToString(r.RoleName)
				if ofRegion, of := strings.CutPrefix(aws.ToString(r.Path), podrole.Root); of && !strings.HasPrefix(ofRegion, c.Region+"/") {
					continue // of a cluster with the same name
				}
				if strings.Contains(name, c.Cluster) || strings.HasPrefix(name, "capa_") {
					out = append(out, name)
				}
			}
			return out
		})
	})
	for _, name := range names {
		s, err := GetRole(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if s != nil && s.IsOwned(c) {
			out = append(out, *s)
		}
	}
	return out, err
}
