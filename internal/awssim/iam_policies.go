package awssim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Policy is a managed policy of the account.
type Policy struct {
	Name, Description string
	Path              string // "/" when empty
	Versions          []*PolicyVersion
	Default           string // ID of the version in force
	Last              int    // counts the versions there ever were
	Tags              map[string]string
	Born, Changed     time.Time
}

// PolicyVersion is one version of a managed policy.
type PolicyVersion struct {
	ID, Document string
	Born         time.Time
}

// mostVersions is how many versions of a managed policy there can be.
const mostVersions = 5

// mostAttached is how many managed policies there can be on a role, a user or
// a group, unless AWS was asked for more.
const mostAttached = 10

func (a *AWS) simulatePolicies() {
	on(a, a.getPolicy, "PolicyArn")
	on(a, a.getPolicyVersion, "PolicyArn", "VersionId")
	on(a, a.listPolicies, "Scope", "PathPrefix", "OnlyAttached", "Marker", "MaxItems")
	on(a, a.listPolicyVersions, "PolicyArn", "Marker", "MaxItems")
	on(a, a.createPolicyCall, "PolicyName", "PolicyDocument", "Description", "Path", "Tags")
	on(a, a.createPolicyVersion, "PolicyArn", "PolicyDocument", "SetAsDefault")
	on(a, a.deletePolicyVersion, "PolicyArn", "VersionId")
	on(a, a.deletePolicyCall, "PolicyArn")
	on(a, a.listEntitiesForPolicy, "PolicyArn", "Marker", "MaxItems")
}

// awsPolicies are policies of AWS's own that are known here, by the part of
// their ARN behind "policy". AWS has more than a thousand.
func awsPolicies() []string {
	return []string{
		"/AdministratorAccess", "/ReadOnlyAccess", "/PowerUserAccess", "/AmazonSSMManagedInstanceCore",
		"/AmazonEKSClusterPolicy", "/AmazonEKSServicePolicy", "/AmazonEKSVPCResourceController", "/AmazonEKSWorkerNodePolicy", "/AmazonEKSWorkerNodeMinimalPolicy",
		"/AmazonEKS_CNI_Policy", "/AmazonEC2ContainerRegistryReadOnly", "/AmazonEC2ContainerRegistryPullOnly", "/AmazonEKSFargatePodExecutionRolePolicy",
		"/service-role/AmazonEBSCSIDriverPolicy", "/service-role/AmazonEFSCSIDriverPolicy", "/CloudWatchAgentServerPolicy",
	}
}

// policyExists reports whether there is a policy of that ARN, AWS's own among
// them.
func (a *AWS) policyExists(arn string) bool {
	own, found := strings.CutPrefix(arn, "arn:"+a.partition()+":iam::aws:policy")
	if found {
		return slices.Contains(awsPolicies(), own)
	}
	_, err := a.policy(&arn)
	return err == nil
}

func (a *AWS) policyARN(p *Policy) string { return a.iamARN("policy", p.Path, p.Name) }

// policy looks up a policy of the account.
func (a *AWS) policy(arn *string) (*Policy, error) {
	name := aws.ToString(arn)
	if p := a.state.IAM.Policies[name[strings.LastIndex(name, "/")+1:]]; p != nil && a.policyARN(p) == name {
		return p, nil
	}
	return nil, &types.NoSuchEntityException{Message: aws.String("Policy " + name + " was not found.")}
}

// holders returns what a policy can be attached to, by kind and name.
func (a *AWS) holders() map[string]*Holder {
	all := map[string]*Holder{}
	for _, r := range a.state.IAM.Roles {
		all["role "+r.Name] = &r.Holder
	}
	for _, u := range a.state.IAM.Users {
		all["user "+u.Name] = &u.Holder
	}
	for _, g := range a.state.IAM.Groups {
		all["group "+g.Name] = &g.Holder
	}
	return all
}

// holding lists what a policy is attached to.
func (a *AWS) holding(arn string) (names []string) {
	all := a.holders()
	for _, name := range sortedKeys(all) {
		if slices.Contains(all[name].Attached, arn) {
			names = append(names, name)
		}
	}
	return names
}

func (p *Policy) version(id string) *PolicyVersion {
	for _, v := range p.Versions {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// document is the one in force.
func (p *Policy) document() string {
	if v := p.version(p.Default); v != nil {
		return v.Document
	}
	return ""
}

func (a *AWS) showPolicy(p *Policy) types.Policy {
	arn := a.policyARN(p)
	out := types.Policy{
		PolicyName: aws.String(p.Name), Arn: aws.String(arn), Path: aws.String(first(p.Path, "/")), PolicyId: aws.String(iamID("ANPA", p.Name)),
		DefaultVersionId: aws.String(p.Default), AttachmentCount: aws.Int32(int32(len(a.holding(arn)))), //nolint:gosec // few
		IsAttachable: true, CreateDate: aws.Time(p.Born), UpdateDate: aws.Time(p.Changed), Tags: showIAMTags(p.Tags),
	}
	if p.Description != "" {
		out.Description = aws.String(p.Description)
	}
	return out
}

func showVersion(p *Policy, v *PolicyVersion, document bool) types.PolicyVersion {
	out := types.PolicyVersion{VersionId: aws.String(v.ID), IsDefaultVersion: v.ID == p.Default, CreateDate: aws.Time(v.Born)}
	if document {
		out.Document = escaped(v.Document)
	}
	return out
}

func (a *AWS) getPolicy(in *iam.GetPolicyInput) (*iam.GetPolicyOutput, error) {
	if strings.Contains(aws.ToString(in.PolicyArn), "::aws:policy/") && a.policyExists(*in.PolicyArn) {
		return nil, notSimulated("GetPolicy of a policy of AWS's own")
	}
	p, err := a.policy(in.PolicyArn)
	if err == nil && !a.visible(p.Born) {
		_, err = a.policy(aws.String("not yet"))
	}
	if err != nil {
		return nil, err
	}
	shown := a.showPolicy(p)
	return &iam.GetPolicyOutput{Policy: &shown}, nil
}

func (a *AWS) getPolicyVersion(in *iam.GetPolicyVersionInput) (*iam.GetPolicyVersionOutput, error) {
	p, err := a.policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	v := p.version(aws.ToString(in.VersionId))
	if v == nil {
		return nil, noEntity("Policy version", aws.ToString(in.VersionId))
	}
	shown := showVersion(p, v, true)
	return &iam.GetPolicyVersionOutput{PolicyVersion: &shown}, nil
}

func (a *AWS) listPolicies(in *iam.ListPoliciesInput) (*iam.ListPoliciesOutput, error) {
	if in.Scope != types.PolicyScopeTypeLocal {
		return nil, notSimulated("ListPolicies of the policies of AWS's own")
	}
	var list []types.Policy
	for _, p := range byKey(a.state.IAM.Policies) {
		shown := a.showPolicy(p)
		shown.Tags, shown.Description = nil, nil
		if a.visible(p.Born) && strings.HasPrefix(*shown.Path, aws.ToString(in.PathPrefix)) && (!in.OnlyAttached || *shown.AttachmentCount > 0) {
			list = append(list, shown)
		}
	}
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListPoliciesOutput{Policies: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) listPolicyVersions(in *iam.ListPolicyVersionsInput) (*iam.ListPolicyVersionsOutput, error) {
	p, err := a.policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	var list []types.PolicyVersion
	for _, v := range slices.Backward(p.Versions) {
		list = append(list, showVersion(p, v, false))
	}
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListPolicyVersionsOutput{Versions: part, Marker: next, IsTruncated: next != nil}, err
}

// makePolicy makes a managed policy, born at that time.
func (a *AWS) makePolicy(p *Policy, document string, at time.Time) error {
	if err := checkIAMName("policyName", p.Name, p.Path, 128); err != nil {
		return err
	}
	if nameTaken(a.state.IAM.Policies, p.Name) {
		return &types.EntityAlreadyExistsException{Message: aws.String("A policy called " + p.Name + " already exists. Duplicate names are not allowed.")}
	}
	if err := a.addVersion(p, document, at); err != nil {
		return err
	}
	p.Born = at
	a.state.IAM.Policies[p.Name] = p
	return nil
}

// addVersion gives a policy another document, and puts it in force.
func (a *AWS) addVersion(p *Policy, document string, at time.Time) error {
	switch {
	case size(document) > mostPolicy:
		return limitExceeded("PolicySize", "6144")
	case len(p.Versions) >= mostVersions:
		return &types.LimitExceededException{Message: aws.String("A managed policy can have up to 5 versions. Before you create a new version, you must delete an existing version.")}
	}
	if err := checkPolicy(document); err != nil {
		return err
	}
	p.Last++
	p.Default, p.Changed = fmt.Sprintf("v%d", p.Last), at
	p.Versions = append(p.Versions, &PolicyVersion{ID: p.Default, Document: document, Born: at})
	return nil
}

func (a *AWS) createPolicyCall(in *iam.CreatePolicyInput) (*iam.CreatePolicyOutput, error) {
	p := &Policy{Name: aws.ToString(in.PolicyName), Path: aws.ToString(in.Path), Description: aws.ToString(in.Description), Tags: iamTags(in.Tags)}
	if err := a.makePolicy(p, aws.ToString(in.PolicyDocument), a.now()); err != nil {
		return nil, err
	}
	shown := a.showPolicy(p)
	return &iam.CreatePolicyOutput{Policy: &shown}, nil
}

func (a *AWS) createPolicyVersion(in *iam.CreatePolicyVersionInput) (*iam.CreatePolicyVersionOutput, error) {
	p, err := a.policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	before := p.Default
	if err := a.addVersion(p, aws.ToString(in.PolicyDocument), a.now()); err != nil {
		return nil, err
	}
	made := p.version(p.Default)
	if !in.SetAsDefault {
		p.Default = before
	}
	shown := showVersion(p, made, false)
	return &iam.CreatePolicyVersionOutput{PolicyVersion: &shown}, nil
}

func (a *AWS) deletePolicyVersion(in *iam.DeletePolicyVersionInput) (*iam.DeletePolicyVersionOutput, error) {
	p, err := a.policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	v := p.version(aws.ToString(in.VersionId))
	switch {
	case v == nil:
		return nil, noEntity("Policy version", aws.ToString(in.VersionId))
	case v.ID == p.Default:
		return nil, deleteConflict("the default version of a policy.")
	}
	p.Versions = slices.DeleteFunc(p.Versions, func(x *PolicyVersion) bool { return x == v })
	return &iam.DeletePolicyVersionOutput{}, nil
}

// removePolicy deletes a policy that is attached to nothing any more.
func (a *AWS) removePolicy(p *Policy) error {
	switch {
	case len(a.holding(a.policyARN(p))) > 0:
		return deleteConflict("a policy attached to entities.")
	case len(p.Versions) > 1:
		return &types.DeleteConflictException{Message: aws.String("This policy has more than one version. Before you delete a policy, you must delete the policy's versions. The default version is deleted with the policy.")}
	}
	delete(a.state.IAM.Policies, p.Name)
	return nil
}

func (a *AWS) deletePolicyCall(in *iam.DeletePolicyInput) (*iam.DeletePolicyOutput, error) {
	p, err := a.policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	return &iam.DeletePolicyOutput{}, a.removePolicy(p)
}

func (a *AWS) listEntitiesForPolicy(in *iam.ListEntitiesForPolicyInput) (*iam.ListEntitiesForPolicyOutput, error) {
	if !a.policyExists(aws.ToString(in.PolicyArn)) {
		_, err := a.policy(in.PolicyArn)
		return nil, err
	}
	part, next, err := page(a, a.holding(*in.PolicyArn), in.Marker, in.MaxItems, 100)
	out := &iam.ListEntitiesForPolicyOutput{Marker: next, IsTruncated: next != nil}
	for _, holder := range part {
		kind, name, _ := strings.Cut(holder, " ")
		switch kind {
		case "role":
			out.PolicyRoles = append(out.PolicyRoles, types.PolicyRole{RoleName: &name, RoleId: aws.String(iamID("AROA", name))})
		case "user":
			out.PolicyUsers = append(out.PolicyUsers, types.PolicyUser{UserName: &name, UserId: aws.String(iamID("AIDA", name))})
		default:
			out.PolicyGroups = append(out.PolicyGroups, types.PolicyGroup{GroupName: &name, GroupId: aws.String(iamID("AGPA", name))})
		}
	}
	return out, err
}
