package awssim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// User is a user of the account.
type User struct {
	Name     string
	Path     string // "/" when empty
	Boundary string // ARN of the policy that bounds its permissions
	Groups   []string
	Tags     map[string]string
	Born     time.Time
	Holder
}

// Group is a group of users.
type Group struct {
	Name string
	Path string // "/" when empty
	Born time.Time
	Holder
}

func (a *AWS) simulateUsers() {
	on(a, a.getUser, "UserName")
	on(a, a.getGroup, "GroupName", "Marker", "MaxItems")
	on(a, a.listGroupsForUser, "UserName", "Marker", "MaxItems")
	on(a, a.attachUserPolicy, "UserName", "PolicyArn")
	on(a, a.detachUserPolicy, "UserName", "PolicyArn")
	on(a, a.attachGroupPolicy, "GroupName", "PolicyArn")
	on(a, a.detachGroupPolicy, "GroupName", "PolicyArn")
	on(a, a.listAttachedGroupPolicies, "GroupName", "PathPrefix", "Marker", "MaxItems")
	on(a, a.listAttachedUserPolicies, "UserName", "PathPrefix", "Marker", "MaxItems")
}

// attach attaches a managed policy. That it is attached already is fine.
func (a *AWS) attach(quota string, h *Holder, arn string) error {
	switch {
	case !a.policyExists(arn):
		return &types.NoSuchEntityException{Message: aws.String("Policy " + arn + " does not exist or is not attachable.")}
	case slices.Contains(h.Attached, arn):
		return nil
	case len(h.Attached) >= mostAttached:
		return limitExceeded(quota, strconv.Itoa(mostAttached))
	}
	h.Attached = append(h.Attached, arn)
	return nil
}

func detach(h *Holder, arn string) error {
	if !slices.Contains(h.Attached, arn) {
		return &types.NoSuchEntityException{Message: aws.String("Policy " + arn + " was not found.")}
	}
	h.Attached = slices.DeleteFunc(h.Attached, func(x string) bool { return x == arn })
	return nil
}

// put sets an inline policy.
func (h *Holder) put(name, document, whose string, most int) error {
	if err := checkIAMName("policyName", name, "", 128); err != nil {
		return err
	}
	if err := checkPolicy(document); err != nil {
		return err
	}
	total := size(document)
	for other, d := range h.Inline {
		if other != name {
			total += size(d)
		}
	}
	if total > most {
		return &types.LimitExceededException{Message: aws.String("Maximum policy size of " + strconv.Itoa(most) + " bytes exceeded for " + whose)}
	}
	fill(&h.Inline)
	h.Inline[name] = document
	return nil
}

func attachments(arns []string, path string) (list []types.AttachedPolicy) {
	for _, arn := range arns {
		_, where, _ := strings.Cut(arn, ":policy")
		if strings.HasPrefix(where, path) {
			list = append(list, types.AttachedPolicy{PolicyArn: aws.String(arn), PolicyName: aws.String(arn[strings.LastIndex(arn, "/")+1:])})
		}
	}
	return list
}

func (a *AWS) user(name *string) (*User, error) {
	u, ok := a.state.IAM.Users[aws.ToString(name)]
	if !ok {
		return nil, noEntity("The user with name", aws.ToString(name))
	}
	return u, nil
}

func (a *AWS) group(name *string) (*Group, error) {
	g, ok := a.state.IAM.Groups[aws.ToString(name)]
	if !ok {
		return nil, noEntity("The group with name", aws.ToString(name))
	}
	return g, nil
}

// makeUser makes a user, born at that time.
func (a *AWS) makeUser(u *User, at time.Time) error {
	if err := checkIAMName("userName", u.Name, u.Path, 64); err != nil {
		return err
	}
	if nameTaken(a.state.IAM.Users, u.Name) {
		return entityExists("User with name", u.Name)
	}
	u.Born = at
	a.state.IAM.Users[u.Name] = u
	return nil
}

// makeGroup makes a group, born at that time.
func (a *AWS) makeGroup(g *Group, at time.Time) error {
	if err := checkIAMName("groupName", g.Name, g.Path, 128); err != nil {
		return err
	}
	if nameTaken(a.state.IAM.Groups, g.Name) {
		return entityExists("Group with name", g.Name)
	}
	g.Born = at
	a.state.IAM.Groups[g.Name] = g
	return nil
}

// removeUser deletes a user that nothing hangs on any more.
func (a *AWS) removeUser(u *User) error {
	switch {
	case len(u.Groups) > 0:
		return deleteConflict("entity, must remove users from group first.")
	case len(u.Attached) > 0:
		return deleteConflict("entity, must detach all policies first.")
	case len(u.Inline) > 0:
		return deleteConflict("entity, must delete policies first.")
	}
	delete(a.state.IAM.Users, u.Name)
	return nil
}

// removeGroup deletes a group that nothing hangs on any more.
func (a *AWS) removeGroup(g *Group) error {
	for _, u := range a.state.IAM.Users {
		if slices.Contains(u.Groups, g.Name) {
			return deleteConflict("entity, must remove users from group first.")
		}
	}
	switch {
	case len(g.Attached) > 0:
		return deleteConflict("entity, must detach all policies first.")
	case len(g.Inline) > 0:
		return deleteConflict("entity, must delete policies first.")
	}
	delete(a.state.IAM.Groups, g.Name)
	return nil
}

func (a *AWS) showUser(u *User) types.User {
	out := types.User{
		UserName: aws.String(u.Name), Arn: aws.String(a.iamARN("user", u.Path, u.Name)), Path: aws.String(first(u.Path, "/")),
		UserId: aws.String(iamID("AIDA", u.Name)), CreateDate: aws.Time(u.Born), Tags: showIAMTags(u.Tags),
	}
	if u.Boundary != "" {
		out.PermissionsBoundary = &types.AttachedPermissionsBoundary{PermissionsBoundaryArn: aws.String(u.Boundary), PermissionsBoundaryType: "Policy"}
	}
	return out
}

func (a *AWS) showGroup(g *Group) types.Group {
	return types.Group{
		GroupName: aws.String(g.Name), Arn: aws.String(a.iamARN("group", g.Path, g.Name)), Path: aws.String(first(g.Path, "/")),
		GroupId: aws.String(iamID("AGPA", g.Name)), CreateDate: aws.Time(g.Born),
	}
}

func (a *AWS) getUser(in *iam.GetUserInput) (*iam.GetUserOutput, error) {
	if in.UserName == nil {
		return nil, notSimulated("GetUser without a name")
	}
	u, err := a.user(in.UserName)
	if err != nil || !a.visible(u.Born) {
		return nil, noEntity("The user with name", *in.UserName)
	}
	shown := a.showUser(u)
	return &iam.GetUserOutput{User: &shown}, nil
}

func (a *AWS) getGroup(in *iam.GetGroupInput) (*iam.GetGroupOutput, error) {
	g, err := a.group(in.GroupName)
	if err != nil || !a.visible(g.Born) {
		return nil, noEntity("The group with name", aws.ToString(in.GroupName))
	}
	var users []types.User
	for _, u := range byKey(a.state.IAM.Users) {
		if slices.Contains(u.Groups, g.Name) {
			shown := a.showUser(u)
			shown.Tags, shown.PermissionsBoundary = nil, nil
			users = append(users, shown)
		}
	}
	part, next, err := page(a, users, in.Marker, in.MaxItems, 100)
	shown := a.showGroup(g)
	return &iam.GetGroupOutput{Group: &shown, Users: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) listGroupsForUser(in *iam.ListGroupsForUserInput) (*iam.ListGroupsForUserOutput, error) {
	u, err := a.user(in.UserName)
	if err != nil {
		return nil, err
	}
	list := each(slices.Sorted(slices.Values(u.Groups)), func(name string) types.Group { return a.showGroup(a.state.IAM.Groups[name]) })
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListGroupsForUserOutput{Groups: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) attachUserPolicy(in *iam.AttachUserPolicyInput) (*iam.AttachUserPolicyOutput, error) {
	u, err := a.user(in.UserName)
	if err != nil {
		return nil, err
	}
	return &iam.AttachUserPolicyOutput{}, a.attach("PoliciesPerUser", &u.Holder, aws.ToString(in.PolicyArn))
}

func (a *AWS) detachUserPolicy(in *iam.DetachUserPolicyInput) (*iam.DetachUserPolicyOutput, error) {
	u, err := a.user(in.UserName)
	if err != nil {
		return nil, err
	}
	return &iam.DetachUserPolicyOutput{}, detach(&u.Holder, aws.ToString(in.PolicyArn))
}

func (a *AWS) attachGroupPolicy(in *iam.AttachGroupPolicyInput) (*iam.AttachGroupPolicyOutput, error) {
	g, err := a.group(in.GroupName)
	if err != nil {
		return nil, err
	}
	return &iam.AttachGroupPolicyOutput{}, a.attach("PoliciesPerGroup", &g.Holder, aws.ToString(in.PolicyArn))
}

func (a *AWS) detachGroupPolicy(in *iam.DetachGroupPolicyInput) (*iam.DetachGroupPolicyOutput, error) {
	g, err := a.group(in.GroupName)
	if err != nil {
		return nil, err
	}
	return &iam.DetachGroupPolicyOutput{}, detach(&g.Holder, aws.ToString(in.PolicyArn))
}

func (a *AWS) listAttachedUserPolicies(in *iam.ListAttachedUserPoliciesInput) (*iam.ListAttachedUserPoliciesOutput, error) {
	u, err := a.user(in.UserName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(a, attachments(u.Attached, aws.ToString(in.PathPrefix)), in.Marker, in.MaxItems, 100)
	return &iam.ListAttachedUserPoliciesOutput{AttachedPolicies: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) listAttachedGroupPolicies(in *iam.ListAttachedGroupPoliciesInput) (*iam.ListAttachedGroupPoliciesOutput, error) {
	g, err := a.group(in.GroupName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(a, attachments(g.Attached, aws.ToString(in.PathPrefix)), in.Marker, in.MaxItems, 100)
	return &iam.ListAttachedGroupPoliciesOutput{AttachedPolicies: part, Marker: next, IsTruncated: next != nil}, err
}
