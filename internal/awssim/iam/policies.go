package iam

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Policy is a customer managed policy.
type Policy struct {
	Name, Description string
	Path              string // "/" when empty
	Versions          []*PolicyVersion
	Default           string // ID of the default version
	Last              int    // number of versions so far
	Tags              map[string]string
	Born, Changed     time.Time
}

// PolicyVersion is one version of a managed policy.
type PolicyVersion struct {
	ID, Document string
	Born         time.Time
}

// MostVersions is the maximum number of versions of a managed policy.
const MostVersions = 5

func (svc *Service) simulatePolicies() {
	core.On(svc.Account, svc.getPolicy, "PolicyArn")
	core.On(svc.Account, svc.getPolicyVersion, "PolicyArn", "VersionId")
	core.On(svc.Account, svc.listPolicies, "Scope", "PathPrefix", "OnlyAttached", "Marker", "MaxItems")
	core.On(svc.Account, svc.listPolicyVersions, "PolicyArn", "Marker", "MaxItems")
	core.On(svc.Account, svc.createPolicyCall, "PolicyName", "PolicyDocument", "Description", "Path", "Tags")
	core.On(svc.Account, svc.createPolicyVersion, "PolicyArn", "PolicyDocument", "SetAsDefault")
	core.On(svc.Account, svc.deletePolicyVersion, "PolicyArn", "VersionId")
	core.On(svc.Account, svc.deletePolicyCall, "PolicyArn")
	core.On(svc.Account, svc.listEntitiesForPolicy, "PolicyArn", "Marker", "MaxItems")
}

// awsPolicies lists the simulated AWS managed policies, by their ARN after "policy". AWS
// has more than a thousand.
func awsPolicies() []string {
	return []string{
		"/AdministratorAccess", "/ReadOnlyAccess", "/PowerUserAccess", "/AmazonSSMManagedInstanceCore",
		"/AmazonEKSClusterPolicy", "/AmazonEKSServicePolicy", "/AmazonEKSVPCResourceController", "/AmazonEKSWorkerNodePolicy", "/AmazonEKSWorkerNodeMinimalPolicy",
		"/AmazonEKSComputePolicy", "/AmazonEKSBlockStoragePolicy", "/AmazonEKSLoadBalancingPolicy", "/AmazonEKSNetworkingPolicy",
		"/AmazonEKS_CNI_Policy", "/AmazonEC2ContainerRegistryReadOnly", "/AmazonEC2ContainerRegistryPullOnly", "/AmazonEKSFargatePodExecutionRolePolicy",
		"/service-role/AmazonEBSCSIDriverPolicy", "/service-role/AmazonEFSCSIDriverPolicy", "/CloudWatchAgentServerPolicy",
	}
}

// policyExists reports whether a policy exists, including AWS managed ones.
func (svc *Service) policyExists(arn string) bool {
	own, found := strings.CutPrefix(arn, "arn:"+svc.Partition()+":iam::aws:policy")
	if found {
		return slices.Contains(awsPolicies(), own)
	}
	_, err := svc.Policy(&arn)
	return err == nil
}

// PolicyARN returns the ARN of a customer managed policy.
func (svc *Service) PolicyARN(p *Policy) string { return svc.ARN("policy", p.Path, p.Name) }

// Policy returns a customer managed policy.
func (svc *Service) Policy(arn *string) (*Policy, error) {
	name := aws.ToString(arn)
	if p := svc.state.Policies[name[strings.LastIndex(name, "/")+1:]]; p != nil && svc.PolicyARN(p) == name {
		return p, nil
	}
	return nil, &types.NoSuchEntityException{Message: aws.String("Policy " + name + " was not found.")}
}

func (p *Policy) version(id string) *PolicyVersion {
	for _, v := range p.Versions {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// Document returns the document of the default version.
func (p *Policy) Document() string {
	if v := p.version(p.Default); v != nil {
		return v.Document
	}
	return ""
}

func (svc *Service) showPolicy(p *Policy) types.Policy {
	arn := svc.PolicyARN(p)
	out := types.Policy{
		PolicyName: aws.String(p.Name), Arn: aws.String(arn), Path: aws.String(cmp.Or(p.Path, "/")), PolicyId: aws.String(UniqueID("ANPA", p.Name)),
		DefaultVersionId: aws.String(p.Default), AttachmentCount: aws.Int32(int32(len(svc.holding(arn)))), //nolint:gosec // at most a few
		IsAttachable: true, CreateDate: aws.Time(p.Born), UpdateDate: aws.Time(p.Changed), Tags: showTags(p.Tags),
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

func (svc *Service) getPolicy(in *iam.GetPolicyInput) (*iam.GetPolicyOutput, error) {
	if strings.Contains(aws.ToString(in.PolicyArn), "::aws:policy/") && svc.policyExists(*in.PolicyArn) {
		at := strings.LastIndex(*in.PolicyArn, "/")
		return &iam.GetPolicyOutput{Policy: &types.Policy{Arn: in.PolicyArn, PolicyName: aws.String((*in.PolicyArn)[at+1:]), IsAttachable: true}}, nil
	}
	p, err := svc.Policy(in.PolicyArn)
	if err == nil && !svc.Visible(p.Born) {
		_, err = svc.Policy(aws.String("not yet"))
	}
	if err != nil {
		return nil, err
	}
	shown := svc.showPolicy(p)
	return &iam.GetPolicyOutput{Policy: &shown}, nil
}

func (svc *Service) getPolicyVersion(in *iam.GetPolicyVersionInput) (*iam.GetPolicyVersionOutput, error) {
	p, err := svc.Policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	v := p.version(aws.ToString(in.VersionId))
	if v == nil {
		return nil, NoEntity("Policy version", aws.ToString(in.VersionId))
	}
	shown := showVersion(p, v, true)
	return &iam.GetPolicyVersionOutput{PolicyVersion: &shown}, nil
}

func (svc *Service) listPolicies(in *iam.ListPoliciesInput) (*iam.ListPoliciesOutput, error) {
	if in.Scope != types.PolicyScopeTypeLocal {
		return nil, core.NotSimulated("ListPolicies of the policies of AWS's own")
	}
	var list []types.Policy
	for _, p := range core.ByKey(svc.state.Policies) {
		shown := svc.showPolicy(p)
		shown.Tags, shown.Description = nil, nil
		if svc.Visible(p.Born) && strings.HasPrefix(*shown.Path, aws.ToString(in.PathPrefix)) && (!in.OnlyAttached || *shown.AttachmentCount > 0) {
			list = append(list, shown)
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.MaxItems, 100)
	return &iam.ListPoliciesOutput{Policies: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) listPolicyVersions(in *iam.ListPolicyVersionsInput) (*iam.ListPolicyVersionsOutput, error) {
	p, err := svc.Policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	var list []types.PolicyVersion
	for _, v := range slices.Backward(p.Versions) {
		list = append(list, showVersion(p, v, false))
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.MaxItems, 100)
	return &iam.ListPolicyVersionsOutput{Versions: part, Marker: next, IsTruncated: next != nil}, err
}

// MakePolicy creates a managed policy with a creation time.
func (svc *Service) MakePolicy(p *Policy, document string, at time.Time) error {
	if err := checkName("policyName", p.Name, p.Path, 128); err != nil {
		return err
	}
	if nameTaken(svc.state.Policies, p.Name) {
		return &types.EntityAlreadyExistsException{Message: aws.String("A policy called " + p.Name + " already exists. Duplicate names are not allowed.")}
	}
	if err := svc.AddVersion(p, document, at); err != nil {
		return err
	}
	p.Born = at
	svc.state.Policies[p.Name] = p
	return nil
}

// AddVersion adds a version to a policy and makes it the default.
func (svc *Service) AddVersion(p *Policy, document string, at time.Time) error {
	switch {
	case size(document) > mostPolicy:
		return limitExceeded("PolicySize", "6144")
	case len(p.Versions) >= MostVersions:
		return &types.LimitExceededException{
			Message: aws.String("A managed policy can have up to 5 versions. Before you create a new version, you must delete an existing version."),
		}
	}
	if err := checkPolicy(document); err != nil {
		return err
	}
	if err := svc.checkPartition(document); err != nil {
		return err
	}
	p.Last++
	p.Default, p.Changed = fmt.Sprintf("v%d", p.Last), at
	p.Versions = append(p.Versions, &PolicyVersion{ID: p.Default, Document: document, Born: at})
	return nil
}

func (svc *Service) createPolicyCall(in *iam.CreatePolicyInput) (*iam.CreatePolicyOutput, error) {
	p := &Policy{Name: aws.ToString(in.PolicyName), Path: aws.ToString(in.Path), Description: aws.ToString(in.Description), Tags: readTags(in.Tags)}
	if err := svc.MakePolicy(p, aws.ToString(in.PolicyDocument), svc.Now()); err != nil {
		return nil, err
	}
	shown := svc.showPolicy(p)
	return &iam.CreatePolicyOutput{Policy: &shown}, nil
}

func (svc *Service) createPolicyVersion(in *iam.CreatePolicyVersionInput) (*iam.CreatePolicyVersionOutput, error) {
	p, err := svc.Policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	before := p.Default
	if err := svc.AddVersion(p, aws.ToString(in.PolicyDocument), svc.Now()); err != nil {
		return nil, err
	}
	made := p.version(p.Default)
	if !in.SetAsDefault {
		p.Default = before
	}
	shown := showVersion(p, made, false)
	return &iam.CreatePolicyVersionOutput{PolicyVersion: &shown}, nil
}

func (svc *Service) deletePolicyVersion(in *iam.DeletePolicyVersionInput) (*iam.DeletePolicyVersionOutput, error) {
	p, err := svc.Policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	v := p.version(aws.ToString(in.VersionId))
	switch {
	case v == nil:
		return nil, NoEntity("Policy version", aws.ToString(in.VersionId))
	case v.ID == p.Default:
		return nil, deleteConflict("the default version of a policy.")
	}
	p.Versions = slices.DeleteFunc(p.Versions, func(x *PolicyVersion) bool { return x == v })
	return &iam.DeletePolicyVersionOutput{}, nil
}

// RemovePolicy deletes a policy that is not attached.
func (svc *Service) RemovePolicy(p *Policy) error {
	switch {
	case len(svc.holding(svc.PolicyARN(p))) > 0:
		return deleteConflict("a policy attached to entities.")
	case len(p.Versions) > 1:
		return &types.DeleteConflictException{
			Message: aws.String(
				"This policy has more than one version. Before you delete a policy, you must delete the policy's versions. The default version is deleted with the policy.",
			),
		}
	}
	delete(svc.state.Policies, p.Name)
	return nil
}

func (svc *Service) deletePolicyCall(in *iam.DeletePolicyInput) (*iam.DeletePolicyOutput, error) {
	p, err := svc.Policy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	return &iam.DeletePolicyOutput{}, svc.RemovePolicy(p)
}

func (svc *Service) listEntitiesForPolicy(in *iam.ListEntitiesForPolicyInput) (*iam.ListEntitiesForPolicyOutput, error) {
	if !svc.policyExists(aws.ToString(in.PolicyArn)) {
		_, err := svc.Policy(in.PolicyArn)
		return nil, err
	}
	part, next, err := core.Page(svc.Account, svc.holding(*in.PolicyArn), in.Marker, in.MaxItems, 100)
	out := &iam.ListEntitiesForPolicyOutput{Marker: next, IsTruncated: next != nil}
	for _, holder := range part {
		kind, name, _ := strings.Cut(holder, " ")
		switch kind {
		case "role":
			out.PolicyRoles = append(out.PolicyRoles, types.PolicyRole{RoleName: &name, RoleId: aws.String(UniqueID("AROA", name))})
		case "user":
			out.PolicyUsers = append(out.PolicyUsers, types.PolicyUser{UserName: &name, UserId: aws.String(UniqueID("AIDA", name))})
		default:
			out.PolicyGroups = append(out.PolicyGroups, types.PolicyGroup{GroupName: &name, GroupId: aws.String(UniqueID("AGPA", name))})
		}
	}
	return out, err
}
