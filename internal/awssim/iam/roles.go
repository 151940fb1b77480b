package iam

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateRoles() {
	core.On(svc.Account, svc.getRole, "RoleName")
	core.On(svc.Account, svc.listRoles, "Marker", "MaxItems", "PathPrefix")
	core.On(svc.Account, svc.createRoleCall, "RoleName", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags")
	core.On(svc.Account, svc.deleteRoleCall, "RoleName")
	core.On(svc.Account, svc.putRolePermissionsBoundary, "RoleName", "PermissionsBoundary")
	core.On(svc.Account, svc.updateAssumeRolePolicy, "RoleName", "PolicyDocument")
	core.On(svc.Account, svc.tagRole, "RoleName", "Tags")
	core.On(svc.Account, svc.untagRole, "RoleName", "TagKeys")
	core.On(svc.Account, svc.listRoleTags, "RoleName", "Marker", "MaxItems")
	core.On(svc.Account, svc.attachRolePolicy, "RoleName", "PolicyArn")
	core.On(svc.Account, svc.detachRolePolicy, "RoleName", "PolicyArn")
	core.On(svc.Account, svc.listAttachedRolePolicies, "RoleName", "PathPrefix", "Marker", "MaxItems")
	core.On(svc.Account, svc.putRolePolicy, "RoleName", "PolicyName", "PolicyDocument")
	core.On(svc.Account, svc.getRolePolicy, "RoleName", "PolicyName")
	core.On(svc.Account, svc.deleteRolePolicy, "RoleName", "PolicyName")
	core.On(svc.Account, svc.listRolePolicies, "RoleName", "Marker", "MaxItems")
}

// RoleOfARN returns the role with an ARN, or nil.
func (svc *Service) RoleOfARN(arn string) *Role {
	for _, r := range svc.state.Roles {
		if svc.roleARN(r) == arn {
			return r
		}
	}
	return nil
}

// IsPrincipal reports whether an ARN is that of a role or a user that exists, or of another account.
func (svc *Service) IsPrincipal(arn string) bool {
	if strings.Split(arn+":::::", ":")[4] != svc.Number() || arn == svc.ARN("user", "", Caller) {
		return true
	}
	if r := svc.RoleOfARN(arn); r != nil {
		return svc.Visible(r.Born)
	}
	for _, u := range svc.state.Users {
		if svc.ARN("user", u.Path, u.Name) == arn {
			return svc.Visible(u.Born)
		}
	}
	return false
}

// Assumable reports whether EKS can assume a role: it exists, and is visible to other
// services.
func (svc *Service) Assumable(arn string) bool {
	r := svc.RoleOfARN(arn)
	return r != nil && svc.Visible(r.Born)
}

// Trusts reports whether a role that can be seen lets a service assume it. Conditions are ignored.
func (svc *Service) Trusts(arn, service string) bool {
	r := svc.RoleOfARN(arn)
	if r == nil || !svc.Visible(r.Born) {
		return false
	}
	var policy struct{ Statement any }
	if err := json.Unmarshal([]byte(r.trust()), &policy); err != nil {
		return false
	}
	has := func(v any, word string) bool {
		list, _ := v.([]any)
		return v == word || slices.Contains(list, any(word))
	}
	statements, several := policy.Statement.([]any)
	if !several {
		statements = []any{policy.Statement}
	}
	return slices.ContainsFunc(statements, func(x any) bool {
		s, _ := x.(map[string]any)
		principal, _ := s["Principal"].(map[string]any)
		return s["Effect"] == "Allow" && has(principal["Service"], service) && has(s["Action"], "sts:AssumeRole")
	})
}

func (svc *Service) roleARN(r *Role) string { return svc.ARN("role", r.Path, r.Name) }

// Session returns the maximum session duration in seconds.
func (r *Role) Session() int32 {
	if r.MaxSession == 0 {
		return 3600
	}
	return r.MaxSession
}

func (r *Role) trust() string {
	service, action := cmp.Or(r.Service, "ec2.amazonaws.com"), `"sts:AssumeRole"`
	if service == PodService {
		action = `["sts:AssumeRole","sts:TagSession"]`
	}
	return cmp.Or(r.Trust, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"`+service+`"},"Action":`+action+`}]}`)
}

// PodService is the principal that assumes the roles of pods, with session tags.
const PodService = "pods.eks.amazonaws.com"

// ShowRole converts a role for answers.
func (svc *Service) ShowRole(r *Role) types.Role {
	out := types.Role{
		RoleName: aws.String(r.Name), Arn: aws.String(svc.roleARN(r)), Path: aws.String(cmp.Or(r.Path, "/")), RoleId: aws.String(UniqueID("AROA", r.Name)),
		CreateDate: aws.Time(r.Born), AssumeRolePolicyDocument: escaped(r.trust()), MaxSessionDuration: aws.Int32(r.Session()), Tags: showTags(r.Tags),
	}
	if r.Description != "" {
		out.Description = aws.String(r.Description)
	}
	if r.Boundary != "" {
		out.PermissionsBoundary = &types.AttachedPermissionsBoundary{PermissionsBoundaryArn: aws.String(r.Boundary), PermissionsBoundaryType: "Policy"}
	}
	return out
}

// Role returns a role by name.
func (svc *Service) Role(name *string) (*Role, error) {
	return named(svc.state.Roles, "The role with name", name)
}

func (svc *Service) getRole(in *iam.GetRoleInput) (*iam.GetRoleOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil || !svc.Visible(r.Born) {
		return nil, NoEntity("The role with name", aws.ToString(in.RoleName))
	}
	shown := svc.ShowRole(r)
	return &iam.GetRoleOutput{Role: &shown}, nil
}

// listedRole converts a role for lists, which have neither tags nor boundaries (ListRoles).
func (svc *Service) listedRole(r *Role) types.Role {
	shown := svc.ShowRole(r)
	shown.Tags, shown.PermissionsBoundary = nil, nil
	return shown
}

func (svc *Service) listRoles(in *iam.ListRolesInput) (*iam.ListRolesOutput, error) {
	var list []types.Role
	for _, r := range core.ByKey(svc.state.Roles) {
		if svc.Visible(r.Born) && strings.HasPrefix(cmp.Or(r.Path, "/"), aws.ToString(in.PathPrefix)) {
			list = append(list, svc.listedRole(r))
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.MaxItems, 100)
	return &iam.ListRolesOutput{Roles: part, Marker: next, IsTruncated: next != nil}, err
}

// MakeRole creates a role with a creation time.
func (svc *Service) MakeRole(r *Role, at time.Time) error {
	if err := checkName("roleName", r.Name, r.Path, 64); err != nil {
		return err
	}
	switch {
	case r.MaxSession != 0 && (r.MaxSession < 3600 || r.MaxSession > 43200):
		return core.Fail("ValidationError", "maxSessionDuration must be between 3600 and 43200")
	case nameTaken(svc.state.Roles, r.Name):
		return entityExists("Role with name", r.Name)
	case len(svc.state.Roles) >= 1000:
		return limitExceeded("RolesPerAccount", "1000")
	case r.Boundary != "" && !svc.policyExists(r.Boundary):
		return NoEntity("Scope ARN:", r.Boundary)
	}
	if err := CheckTrust(r.Trust); err != nil {
		return err
	}
	r.Born = at
	svc.state.Roles[r.Name] = r
	return nil
}

func (svc *Service) createRoleCall(in *iam.CreateRoleInput) (*iam.CreateRoleOutput, error) {
	r := &Role{
		Name: aws.ToString(in.RoleName), Path: aws.ToString(in.Path), Trust: aws.ToString(in.AssumeRolePolicyDocument), Description: aws.ToString(in.Description),
		Boundary: aws.ToString(in.PermissionsBoundary), MaxSession: aws.ToInt32(in.MaxSessionDuration), Tags: readTags(in.Tags),
	}
	if err := checkTagKeys(in.Tags); err != nil {
		return nil, err
	}
	if err := svc.MakeRole(r, svc.Now()); err != nil {
		return nil, err
	}
	shown := svc.ShowRole(r)
	return &iam.CreateRoleOutput{Role: &shown}, nil
}

// RemoveRole deletes a role that is not in use.
func (svc *Service) RemoveRole(r *Role) error {
	for _, p := range svc.state.Profiles {
		if p.Role == r.Name {
			return deleteConflict("entity, must remove roles from instance profile first.")
		}
	}
	if err := r.checkEmpty(); err != nil {
		return err
	}
	delete(svc.state.Roles, r.Name)
	return nil
}

func (svc *Service) deleteRoleCall(in *iam.DeleteRoleInput) (*iam.DeleteRoleOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.DeleteRoleOutput{}, svc.RemoveRole(r)
}

func (svc *Service) updateAssumeRolePolicy(in *iam.UpdateAssumeRolePolicyInput) (*iam.UpdateAssumeRolePolicyOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	if err := CheckTrust(aws.ToString(in.PolicyDocument)); err != nil {
		return nil, err
	}
	r.Trust = aws.ToString(in.PolicyDocument)
	return &iam.UpdateAssumeRolePolicyOutput{}, nil
}

func (svc *Service) putRolePermissionsBoundary(in *iam.PutRolePermissionsBoundaryInput) (*iam.PutRolePermissionsBoundaryOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	boundary := aws.ToString(in.PermissionsBoundary)
	if !svc.policyExists(boundary) {
		return nil, NoEntity("Scope ARN:", boundary)
	}
	r.Boundary = boundary
	return &iam.PutRolePermissionsBoundaryOutput{}, nil
}

func (svc *Service) tagRole(in *iam.TagRoleInput) (*iam.TagRoleOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	putTags(&r.Tags, in.Tags)
	return &iam.TagRoleOutput{}, nil
}

func (svc *Service) untagRole(in *iam.UntagRoleInput) (*iam.UntagRoleOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(r.Tags, k)
	}
	return &iam.UntagRoleOutput{}, nil
}

func (svc *Service) listRoleTags(in *iam.ListRoleTagsInput) (*iam.ListRoleTagsOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	part, next, err := core.Page(svc.Account, showTags(r.Tags), in.Marker, in.MaxItems, 100)
	return &iam.ListRoleTagsOutput{Tags: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) attachRolePolicy(in *iam.AttachRolePolicyInput) (*iam.AttachRolePolicyOutput, error) {
	return &iam.AttachRolePolicyOutput{}, svc.attach("role", in.RoleName, in.PolicyArn)
}

func (svc *Service) detachRolePolicy(in *iam.DetachRolePolicyInput) (*iam.DetachRolePolicyOutput, error) {
	return &iam.DetachRolePolicyOutput{}, svc.detach("role", in.RoleName, in.PolicyArn)
}

func (svc *Service) listAttachedRolePolicies(in *iam.ListAttachedRolePoliciesInput) (*iam.ListAttachedRolePoliciesOutput, error) {
	part, next, err := svc.attached("role", in.RoleName, in.PathPrefix, in.Marker, in.MaxItems)
	return &iam.ListAttachedRolePoliciesOutput{AttachedPolicies: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) putRolePolicy(in *iam.PutRolePolicyInput) (*iam.PutRolePolicyOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.PutRolePolicyOutput{}, r.Put(aws.ToString(in.PolicyName), aws.ToString(in.PolicyDocument), "role "+r.Name, MostRoleInline)
}

func (svc *Service) getRolePolicy(in *iam.GetRolePolicyInput) (*iam.GetRolePolicyOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	document, ok := r.Inline[aws.ToString(in.PolicyName)]
	if !ok {
		return nil, NoEntity("The role policy with name", aws.ToString(in.PolicyName))
	}
	return &iam.GetRolePolicyOutput{RoleName: in.RoleName, PolicyName: in.PolicyName, PolicyDocument: escaped(document)}, nil
}

func (svc *Service) deleteRolePolicy(in *iam.DeleteRolePolicyInput) (*iam.DeleteRolePolicyOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	if _, ok := r.Inline[aws.ToString(in.PolicyName)]; !ok {
		return nil, NoEntity("The role policy with name", aws.ToString(in.PolicyName))
	}
	delete(r.Inline, aws.ToString(in.PolicyName))
	return &iam.DeleteRolePolicyOutput{}, nil
}

func (svc *Service) listRolePolicies(in *iam.ListRolePoliciesInput) (*iam.ListRolePoliciesOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	part, next, err := core.Page(svc.Account, core.SortedKeys(r.Inline), in.Marker, in.MaxItems, 100)
	return &iam.ListRolePoliciesOutput{PolicyNames: part, Marker: next, IsTruncated: next != nil}, err
}

// AssumedWith returns the AssumeRole call that returned an access key, or nil.
func (svc *Service) AssumedWith(key any) *AssumedRole {
	for i := range svc.state.Assumed {
		if r := &svc.state.Assumed[i]; r.AccessKey == key {
			return r
		}
	}
	return nil
}

// Assume records an AssumeRole call.
func (svc *Service) Assume(r AssumedRole) { svc.state.Assumed = append(svc.state.Assumed, r) }
