package replica

import (
	"context"
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

// roles reads the instance profiles and the roles that the plan asks for, and those of
// CAPA's bootstrap, with the policies of the account that they have. Others are not copied.
// They replace those of the simulated account all together, as they refer to one another.
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
	return nil
}

func (r *reader) askedRoles() []string {
	names := slices.Concat(sim.BootstrapProfiles(), sim.BootstrapRolesOfEKS())
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
		Name: aws.ToString(
			out.Role.RoleName,
		),
		Path:        aws.ToString(out.Role.Path),
		Description: aws.ToString(out.Role.Description),
		Trust:       document(out.Role.AssumeRolePolicyDocument),
		MaxSession: aws.ToInt32(
			out.Role.MaxSessionDuration,
		),
		Tags:   roleTags(out.Role.Tags),
		Born:   r.since(out.Role.CreateDate),
		Holder: sim.Holder{Inline: map[string]string{}},
	}
	if b := out.Role.PermissionsBoundary; b != nil {
		own.Boundary = aws.ToString(b.PermissionsBoundaryArn)
	}
	s.Roles[own.Name] = own
	return r.part(ctx, "the policies of role "+own.Name, func(ctx context.Context) error { return r.policiesOf(ctx, c, s, own) })
}
