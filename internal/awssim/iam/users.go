package iam

import (
	"cmp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// User is an IAM user.
type User struct {
	Name     string
	Path     string // "/" if empty
	Boundary string // ARN of the permissions boundary
	Groups   []string
	Tags     map[string]string
	Born     time.Time
	Holder
}

// Group is a group of users.
type Group struct {
	Name string
	Path string // "/" if empty
	Born time.Time
	Holder
}

func (svc *Service) simulateUsers() {
	core.On(svc.Account, svc.getUser, "UserName")
	core.On(svc.Account, svc.getGroup, "GroupName", "Marker", "MaxItems")
	core.On(svc.Account, svc.listGroupsForUser, "UserName", "Marker", "MaxItems")
	core.On(svc.Account, svc.attachUserPolicy, "UserName", "PolicyArn")
	core.On(svc.Account, svc.detachUserPolicy, "UserName", "PolicyArn")
	core.On(svc.Account, svc.attachGroupPolicy, "GroupName", "PolicyArn")
	core.On(svc.Account, svc.detachGroupPolicy, "GroupName", "PolicyArn")
	core.On(svc.Account, svc.listAttachedGroupPolicies, "GroupName", "PathPrefix", "Marker", "MaxItems")
	core.On(svc.Account, svc.listAttachedUserPolicies, "UserName", "PathPrefix", "Marker", "MaxItems")
}

// User returns the user with that name.
func (svc *Service) User(name *string) (*User, error) {
	return named(svc.state.Users, "The user with name", name)
}

// Group returns the group with that name.
func (svc *Service) Group(name *string) (*Group, error) {
	return named(svc.state.Groups, "The group with name", name)
}

// MakeUser creates a user with a creation time.
func (svc *Service) MakeUser(u *User, at time.Time) error {
	if err := checkNew(svc.state.Users, "userName", "User with name", u.Name, u.Path, 64); err != nil {
		return err
	}
	u.Born = at
	svc.state.Users[u.Name] = u
	return nil
}

// MakeGroup creates a group with a creation time.
func (svc *Service) MakeGroup(g *Group, at time.Time) error {
	if err := checkNew(svc.state.Groups, "groupName", "Group with name", g.Name, g.Path, 128); err != nil {
		return err
	}
	g.Born = at
	svc.state.Groups[g.Name] = g
	return nil
}

// RemoveUser deletes a user that is not in use.
func (svc *Service) RemoveUser(u *User) error {
	if len(u.Groups) > 0 {
		return deleteConflict("entity, must remove users from group first.")
	}
	if err := u.checkEmpty(); err != nil {
		return err
	}
	delete(svc.state.Users, u.Name)
	return nil
}

// RemoveGroup deletes a group that is not in use.
func (svc *Service) RemoveGroup(g *Group) error {
	for _, u := range svc.state.Users {
		if slices.Contains(u.Groups, g.Name) {
			return deleteConflict("entity, must remove users from group first.")
		}
	}
	if err := g.checkEmpty(); err != nil {
		return err
	}
	delete(svc.state.Groups, g.Name)
	return nil
}

func (svc *Service) showUser(u *User) types.User {
	out := types.User{
		UserName: aws.String(u.Name), Arn: aws.String(svc.ARN("user", u.Path, u.Name)), Path: aws.String(cmp.Or(u.Path, "/")),
		UserId: aws.String(UniqueID("AIDA", u.Name)), CreateDate: aws.Time(u.Born), Tags: showTags(u.Tags),
	}
	if u.Boundary != "" {
		out.PermissionsBoundary = &types.AttachedPermissionsBoundary{PermissionsBoundaryArn: aws.String(u.Boundary), PermissionsBoundaryType: "Policy"}
	}
	return out
}

func (svc *Service) showGroup(g *Group) types.Group {
	return types.Group{
		GroupName: aws.String(g.Name), Arn: aws.String(svc.ARN("group", g.Path, g.Name)), Path: aws.String(cmp.Or(g.Path, "/")),
		GroupId: aws.String(UniqueID("AGPA", g.Name)), CreateDate: aws.Time(g.Born),
	}
}

func (svc *Service) getUser(in *iam.GetUserInput) (*iam.GetUserOutput, error) {
	if in.UserName == nil {
		return nil, core.NotSimulated("GetUser without a name")
	}
	u, err := svc.User(in.UserName)
	if *in.UserName == Caller && u == nil {
		u, err = &User{Name: Caller, Path: "/"}, nil
	}
	if err != nil || !svc.Visible(u.Born) {
		return nil, NoEntity("The user with name", *in.UserName)
	}
	shown := svc.showUser(u)
	return &iam.GetUserOutput{User: &shown}, nil
}

func (svc *Service) getGroup(in *iam.GetGroupInput) (*iam.GetGroupOutput, error) {
	g, err := svc.Group(in.GroupName)
	if err != nil || !svc.Visible(g.Born) {
		return nil, NoEntity("The group with name", aws.ToString(in.GroupName))
	}
	var users []types.User
	for _, u := range core.ByKey(svc.state.Users) {
		if slices.Contains(u.Groups, g.Name) {
			shown := svc.showUser(u)
			shown.Tags, shown.PermissionsBoundary = nil, nil
			users = append(users, shown)
		}
	}
	part, next, err := core.Page(svc.Account, users, in.Marker, in.MaxItems, 100)
	shown := svc.showGroup(g)
	return &iam.GetGroupOutput{Group: &shown, Users: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) listGroupsForUser(in *iam.ListGroupsForUserInput) (*iam.ListGroupsForUserOutput, error) {
	u, err := svc.User(in.UserName)
	if err != nil {
		return nil, err
	}
	list := core.Each(slices.Sorted(slices.Values(u.Groups)), func(name string) types.Group { return svc.showGroup(svc.state.Groups[name]) })
	part, next, err := core.Page(svc.Account, list, in.Marker, in.MaxItems, 100)
	return &iam.ListGroupsForUserOutput{Groups: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) attachUserPolicy(in *iam.AttachUserPolicyInput) (*iam.AttachUserPolicyOutput, error) {
	return &iam.AttachUserPolicyOutput{}, svc.attach("user", in.UserName, in.PolicyArn)
}

func (svc *Service) detachUserPolicy(in *iam.DetachUserPolicyInput) (*iam.DetachUserPolicyOutput, error) {
	return &iam.DetachUserPolicyOutput{}, svc.detach("user", in.UserName, in.PolicyArn)
}

func (svc *Service) attachGroupPolicy(in *iam.AttachGroupPolicyInput) (*iam.AttachGroupPolicyOutput, error) {
	return &iam.AttachGroupPolicyOutput{}, svc.attach("group", in.GroupName, in.PolicyArn)
}

func (svc *Service) detachGroupPolicy(in *iam.DetachGroupPolicyInput) (*iam.DetachGroupPolicyOutput, error) {
	return &iam.DetachGroupPolicyOutput{}, svc.detach("group", in.GroupName, in.PolicyArn)
}

func (svc *Service) listAttachedUserPolicies(in *iam.ListAttachedUserPoliciesInput) (*iam.ListAttachedUserPoliciesOutput, error) {
	part, next, err := svc.attached("user", in.UserName, in.PathPrefix, in.Marker, in.MaxItems)
	return &iam.ListAttachedUserPoliciesOutput{AttachedPolicies: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) listAttachedGroupPolicies(in *iam.ListAttachedGroupPoliciesInput) (*iam.ListAttachedGroupPoliciesOutput, error) {
	part, next, err := svc.attached("group", in.GroupName, in.PathPrefix, in.Marker, in.MaxItems)
	return &iam.ListAttachedGroupPoliciesOutput{AttachedPolicies: part, Marker: next, IsTruncated: next != nil}, err
}
