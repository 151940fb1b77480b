package awssim

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

func (a *AWS) simulateRoles() {
	on(a, a.getRole, "RoleName")
	on(a, a.listRoles, "Marker", "MaxItems", "PathPrefix")
	on(a, a.createRoleCall, "RoleName", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags")
	on(a, a.deleteRoleCall, "RoleName")
	on(a, a.updateAssumeRolePolicy, "RoleName", "PolicyDocument")
	on(a, a.tagRole, "RoleName", "Tags")
	on(a, a.untagRole, "RoleName", "TagKeys")
	on(a, a.listRoleTags, "RoleName", "Marker", "MaxItems")
	on(a, a.attachRolePolicy, "RoleName", "PolicyArn")
	on(a, a.detachRolePolicy, "RoleName", "PolicyArn")
	on(a, a.listAttachedRolePolicies, "RoleName", "PathPrefix", "Marker", "MaxItems")
	on(a, a.putRolePolicy, "RoleName", "PolicyName", "PolicyDocument")
	on(a, a.getRolePolicy, "RoleName", "PolicyName")
	on(a, a.deleteRolePolicy, "RoleName", "PolicyName")
	on(a, a.listRolePolicies, "RoleName", "Marker", "MaxItems")
}

// RoleOfARN returns the role of an ARN, or nil.
func (a *AWS) RoleOfARN(arn string) *Role {
	for _, r := range a.state.IAM.Roles {
		if a.roleARN(r) == arn {
			return r
		}
	}
	return nil
}

// assumable reports whether EKS can assume a role: it exists, and word of it
// has got around.
func (a *AWS) assumable(arn string) bool {
	r := a.RoleOfARN(arn)
	return r != nil && a.visible(r.Born)
}

func (a *AWS) roleARN(r *Role) string { return a.iamARN("role", r.Path, r.Name) }

func (r *Role) maxSession() int32 {
	if r.MaxSession == 0 {
		return 3600
	}
	return r.MaxSession
}

func (r *Role) trust() string {
	return first(r.Trust, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"`+first(r.Service, "ec2.amazonaws.com")+`"},"Action":"sts:AssumeRole"}]}`)
}

func (a *AWS) showRole(r *Role) types.Role {
	out := types.Role{
		RoleName: aws.String(r.Name), Arn: aws.String(a.roleARN(r)), Path: aws.String(first(r.Path, "/")), RoleId: aws.String(iamID("AROA", r.Name)),
		CreateDate: aws.Time(r.Born), AssumeRolePolicyDocument: escaped(r.trust()), MaxSessionDuration: aws.Int32(r.maxSession()), Tags: showIAMTags(r.Tags),
	}
	if r.Description != "" {
		out.Description = aws.String(r.Description)
	}
	if r.Boundary != "" {
		out.PermissionsBoundary = &types.AttachedPermissionsBoundary{PermissionsBoundaryArn: aws.String(r.Boundary), PermissionsBoundaryType: "Policy"}
	}
	return out
}

// role looks up a role for a call that changes it or looks into it.
func (a *AWS) role(name *string) (*Role, error) {
	r, ok := a.state.IAM.Roles[aws.ToString(name)]
	if !ok {
		return nil, noEntity("The role with name", aws.ToString(name))
	}
	return r, nil
}

func (a *AWS) getRole(in *iam.GetRoleInput) (*iam.GetRoleOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil || !a.visible(r.Born) {
		return nil, noEntity("The role with name", aws.ToString(in.RoleName))
	}
	shown := a.showRole(r)
	return &iam.GetRoleOutput{Role: &shown}, nil
}

// listRoles shows neither tags nor boundaries, as the manual says of
// ListRoles.
func (a *AWS) listRoles(in *iam.ListRolesInput) (*iam.ListRolesOutput, error) {
	var list []types.Role
	for _, r := range byKey(a.state.IAM.Roles) {
		if a.visible(r.Born) && strings.HasPrefix(first(r.Path, "/"), aws.ToString(in.PathPrefix)) {
			shown := a.showRole(r)
			shown.Tags, shown.PermissionsBoundary = nil, nil
			list = append(list, shown)
		}
	}
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListRolesOutput{Roles: part, Marker: next, IsTruncated: next != nil}, err
}

// makeRole makes a role, born at that time.
func (a *AWS) makeRole(r *Role, at time.Time) error {
	if err := checkIAMName("roleName", r.Name, r.Path, 64); err != nil {
		return err
	}
	switch {
	case r.MaxSession != 0 && (r.MaxSession < 3600 || r.MaxSession > 43200):
		return fail("ValidationError", "maxSessionDuration must be between 3600 and 43200")
	case nameTaken(a.state.IAM.Roles, r.Name):
		return entityExists("Role with name", r.Name)
	case len(a.state.IAM.Roles) >= 1000:
		return limitExceeded("RolesPerAccount", "1000")
	case r.Boundary != "" && !a.policyExists(r.Boundary):
		return noEntity("Scope ARN:", r.Boundary)
	}
	if err := checkTrust(r.Trust); err != nil {
		return err
	}
	r.Born = at
	a.state.IAM.Roles[r.Name] = r
	return nil
}

func (a *AWS) createRoleCall(in *iam.CreateRoleInput) (*iam.CreateRoleOutput, error) {
	r := &Role{
		Name: aws.ToString(in.RoleName), Path: aws.ToString(in.Path), Trust: aws.ToString(in.AssumeRolePolicyDocument), Description: aws.ToString(in.Description),
		Boundary: aws.ToString(in.PermissionsBoundary), MaxSession: aws.ToInt32(in.MaxSessionDuration), Tags: iamTags(in.Tags),
	}
	if err := a.makeRole(r, a.now()); err != nil {
		return nil, err
	}
	shown := a.showRole(r)
	return &iam.CreateRoleOutput{Role: &shown}, nil
}

// removeRole deletes a role that nothing hangs on any more.
func (a *AWS) removeRole(r *Role) error {
	for _, p := range a.state.IAM.Profiles {
		if p.Role == r.Name {
			return deleteConflict("entity, must remove roles from instance profile first.")
		}
	}
	switch {
	case len(r.Attached) > 0:
		return deleteConflict("entity, must detach all policies first.")
	case len(r.Inline) > 0:
		return deleteConflict("entity, must delete policies first.")
	}
	delete(a.state.IAM.Roles, r.Name)
	return nil
}

func (a *AWS) deleteRoleCall(in *iam.DeleteRoleInput) (*iam.DeleteRoleOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.DeleteRoleOutput{}, a.removeRole(r)
}

func (a *AWS) updateAssumeRolePolicy(in *iam.UpdateAssumeRolePolicyInput) (*iam.UpdateAssumeRolePolicyOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	if err := checkTrust(aws.ToString(in.PolicyDocument)); err != nil {
		return nil, err
	}
	r.Trust = aws.ToString(in.PolicyDocument)
	return &iam.UpdateAssumeRolePolicyOutput{}, nil
}

func (a *AWS) tagRole(in *iam.TagRoleInput) (*iam.TagRoleOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	putTags(&r.Tags, in.Tags)
	return &iam.TagRoleOutput{}, nil
}

func (a *AWS) untagRole(in *iam.UntagRoleInput) (*iam.UntagRoleOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(r.Tags, k)
	}
	return &iam.UntagRoleOutput{}, nil
}

func (a *AWS) listRoleTags(in *iam.ListRoleTagsInput) (*iam.ListRoleTagsOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(a, showIAMTags(r.Tags), in.Marker, in.MaxItems, 100)
	return &iam.ListRoleTagsOutput{Tags: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) attachRolePolicy(in *iam.AttachRolePolicyInput) (*iam.AttachRolePolicyOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.AttachRolePolicyOutput{}, a.attach("PoliciesPerRole", &r.Holder, aws.ToString(in.PolicyArn))
}

func (a *AWS) detachRolePolicy(in *iam.DetachRolePolicyInput) (*iam.DetachRolePolicyOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.DetachRolePolicyOutput{}, detach(&r.Holder, aws.ToString(in.PolicyArn))
}

func (a *AWS) listAttachedRolePolicies(in *iam.ListAttachedRolePoliciesInput) (*iam.ListAttachedRolePoliciesOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(a, attachments(r.Attached, aws.ToString(in.PathPrefix)), in.Marker, in.MaxItems, 100)
	return &iam.ListAttachedRolePoliciesOutput{AttachedPolicies: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) putRolePolicy(in *iam.PutRolePolicyInput) (*iam.PutRolePolicyOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.PutRolePolicyOutput{}, r.put(aws.ToString(in.PolicyName), aws.ToString(in.PolicyDocument), "role "+r.Name, mostRoleInline)
}

func (a *AWS) getRolePolicy(in *iam.GetRolePolicyInput) (*iam.GetRolePolicyOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	document, ok := r.Inline[aws.ToString(in.PolicyName)]
	if !ok {
		return nil, noEntity("The role policy with name", aws.ToString(in.PolicyName))
	}
	return &iam.GetRolePolicyOutput{RoleName: in.RoleName, PolicyName: in.PolicyName, PolicyDocument: escaped(document)}, nil
}

func (a *AWS) deleteRolePolicy(in *iam.DeleteRolePolicyInput) (*iam.DeleteRolePolicyOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	if _, ok := r.Inline[aws.ToString(in.PolicyName)]; !ok {
		return nil, noEntity("The role policy with name", aws.ToString(in.PolicyName))
	}
	delete(r.Inline, aws.ToString(in.PolicyName))
	return &iam.DeleteRolePolicyOutput{}, nil
}

func (a *AWS) listRolePolicies(in *iam.ListRolePoliciesInput) (*iam.ListRolePoliciesOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(a, sortedKeys(r.Inline), in.Marker, in.MaxItems, 100)
	return &iam.ListRolePoliciesOutput{PolicyNames: part, Marker: next, IsTruncated: next != nil}, err
}

// AssumedWith returns the call of AssumeRole that was answered with an access
// key, or nil.
func (a *AWS) AssumedWith(key any) *AssumedRole {
	for i := range a.state.IAM.Assumed {
		if r := &a.state.IAM.Assumed[i]; r.AccessKey == key {
			return r
		}
	}
	return nil
}

// Assume keeps a call of AssumeRole.
func (a *AWS) Assume(r AssumedRole) { a.state.IAM.Assumed = append(a.state.IAM.Assumed, r) }
