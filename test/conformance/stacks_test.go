package conformance

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

const (
	trust  = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	allow  = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:DescribeVpcs","Resource":"*"}]}`
	policy = "arn:aws:iam::123456789012:policy/demo"

	stackTemplate = `AWSTemplateFormatVersion: "2010-09-09"
Resources:
  Profile:
    Type: AWS::IAM::InstanceProfile
    Properties: {InstanceProfileName: stacked, Roles: [{Ref: Role}]}
  Policy:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      ManagedPolicyName: stacked
      Roles: [{Ref: Role}]
      PolicyDocument: ` + allow + `
  Role:
    Type: AWS::IAM::Role
    Properties: {RoleName: stacked, AssumeRolePolicyDocument: ` + trust + `}
`
)

func (s *suite) roles() {
	name := aws.String("demo")
	in := &iam.CreateRoleInput{
		RoleName:                 name,
		AssumeRolePolicyDocument: aws.String(trust),
		Tags:                     []iamtypes.Tag{{Key: aws.String("team"), Value: aws.String("red")}},
	}
	_, err := s.iam.CreateRole(s.ctx, in)
	s.see("role: create", err)
	_, err = s.iam.CreateRole(s.ctx, in)
	s.see("role: create again", err)
	role, err := s.iam.GetRole(s.ctx, &iam.GetRoleInput{RoleName: name})
	s.need(err)
	s.see("role: get", err, *role.Role.Arn, *role.Role.Path, len(role.Role.Tags), *role.Role.MaxSessionDuration)
	_, err = s.iam.CreateRole(s.ctx, &iam.CreateRoleInput{RoleName: aws.String("odd"), AssumeRolePolicyDocument: aws.String("{")})
	s.see("role: create with a document that is none", err)
	if err == nil {
		_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: aws.String("odd")})
		s.need(err)
	}
	_, err = s.iam.PutRolePolicy(s.ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: aws.String("in"), PolicyDocument: aws.String(allow)})
	s.see("role: put an inline policy", err)
	_, err = s.iam.GetRolePolicy(s.ctx, &iam.GetRolePolicyInput{RoleName: name, PolicyName: aws.String("none")})
	s.see("role: get an inline policy that is not there", err)
	s.policies(name)
	_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: name})
	s.see("role: delete with an inline policy", err)
	_, err = s.iam.DeleteRolePolicy(s.ctx, &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: aws.String("in")})
	s.see("role: delete the inline policy", err)
	_, err = s.iam.CreateInstanceProfile(s.ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name})
	s.see("instance profile: create", err)
	_, err = s.iam.AddRoleToInstanceProfile(s.ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: name})
	s.see("instance profile: add a role", err)
	_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: name})
	s.see("role: delete in an instance profile", err)
	_, err = s.iam.RemoveRoleFromInstanceProfile(s.ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: name})
	s.see("instance profile: remove the role", err)
	_, err = s.iam.DeleteInstanceProfile(s.ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	s.see("instance profile: delete", err)
	_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: name})
	s.see("role: delete", err)
	_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: name})
	s.see("role: delete again", err)
	_, err = s.iam.GetUser(s.ctx, &iam.GetUserInput{UserName: aws.String("nobody")})
	s.see("user: get one that is not there", err)
	_, err = s.iam.GetGroup(s.ctx, &iam.GetGroupInput{GroupName: aws.String("nobody")})
	s.see("group: get one that is not there", err)
}

func (s *suite) policies(role *string) {
	in := &iam.CreatePolicyInput{PolicyName: aws.String("demo"), PolicyDocument: aws.String(allow)}
	_, err := s.iam.CreatePolicy(s.ctx, in)
	s.see("policy: create", err)
	_, err = s.iam.CreatePolicy(s.ctx, in)
	s.see("policy: create again", err)
	_, err = s.iam.CreatePolicy(
		s.ctx,
		&iam.CreatePolicyInput{
			PolicyName:     aws.String("odd"),
			PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*"}]}`),
		},
	)
	s.see("policy: create without a resource", err)
	_, err = s.iam.CreatePolicy(
		s.ctx,
		&iam.CreatePolicyInput{PolicyName: aws.String("odd"), PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Resource":"*"}]}`)},
	)
	s.see("policy: create without an action", err)
	_, err = s.iam.GetPolicy(s.ctx, &iam.GetPolicyInput{PolicyArn: aws.String(policy + "-none")})
	s.see("policy: get one that is not there", err)
	_, err = s.iam.AttachRolePolicy(s.ctx, &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: aws.String(policy + "-none")})
	s.see("role: attach a policy that is not there", err)
	_, err = s.iam.AttachRolePolicy(s.ctx, &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: aws.String(policy)})
	s.see("role: attach a policy", err)
	_, err = s.iam.AttachRolePolicy(s.ctx, &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: aws.String(policy)})
	s.see("role: attach it again", err)
	list, err := s.iam.ListPolicies(s.ctx, &iam.ListPoliciesInput{Scope: iamtypes.PolicyScopeTypeLocal})
	s.need(err)
	s.see("policy: list those of the account", err, len(list.Policies), *list.Policies[0].AttachmentCount)
	_, err = s.iam.DeletePolicy(s.ctx, &iam.DeletePolicyInput{PolicyArn: aws.String(policy)})
	s.see("policy: delete while attached", err)
	if err == nil {
		_, err = s.iam.CreatePolicy(s.ctx, in)
		s.need(err)
		_, err = s.iam.AttachRolePolicy(s.ctx, &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: aws.String(policy)})
		s.need(err)
	}
	_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: role})
	s.see("role: delete with a policy", err)
	_, err = s.iam.DetachRolePolicy(s.ctx, &iam.DetachRolePolicyInput{RoleName: role, PolicyArn: aws.String(policy)})
	s.see("role: detach the policy", err)
	_, err = s.iam.DetachRolePolicy(s.ctx, &iam.DetachRolePolicyInput{RoleName: role, PolicyArn: aws.String(policy)})
	s.see("role: detach it again", err)
	version, err := s.iam.CreatePolicyVersion(
		s.ctx,
		&iam.CreatePolicyVersionInput{PolicyArn: aws.String(policy), PolicyDocument: aws.String(allow), SetAsDefault: true},
	)
	s.need(err)
	s.see("policy: create a version", err, *version.PolicyVersion.VersionId)
	_, err = s.iam.DeletePolicyVersion(s.ctx, &iam.DeletePolicyVersionInput{PolicyArn: aws.String(policy), VersionId: aws.String("v2")})
	s.see("policy: delete the version in force", err)
	_, err = s.iam.DeletePolicyVersion(s.ctx, &iam.DeletePolicyVersionInput{PolicyArn: aws.String(policy), VersionId: aws.String("v1")})
	s.see("policy: delete the other version", err)
	_, err = s.iam.DeletePolicy(s.ctx, &iam.DeletePolicyInput{PolicyArn: aws.String(policy)})
	s.see("policy: delete", err)
}

func (s *suite) stacks() {
	name, named := aws.String("demo"), []types.Capability{types.CapabilityCapabilityNamedIam}
	state := func() string {
		out, err := s.cfn.DescribeStacks(s.ctx, &cloudformation.DescribeStacksInput{StackName: name})
		if err != nil {
			return "error " + code(err)
		}
		return string(out.Stacks[0].StackStatus)
	}
	s.see("stack: look for one that is not there", nil, state())
	_, err := s.cfn.DeleteStack(s.ctx, &cloudformation.DeleteStackInput{StackName: name})
	s.see("stack: delete one that is not there", err)
	_, err = s.cfn.ValidateTemplate(s.ctx, &cloudformation.ValidateTemplateInput{TemplateBody: aws.String(stackTemplate)})
	s.see("template: validate", err)
	in := &cloudformation.CreateStackInput{StackName: name, TemplateBody: aws.String(stackTemplate)}
	_, err = s.cfn.CreateStack(s.ctx, in)
	s.see("stack: create without capabilities", err)
	if err == nil {
		_, err = s.cfn.DeleteStack(s.ctx, &cloudformation.DeleteStackInput{StackName: name})
		s.need(err)
		s.settle()
	}
	in.Capabilities, in.ClientRequestToken = named, aws.String("one")
	made, err := s.cfn.CreateStack(s.ctx, in)
	s.see("stack: create", err)
	s.need(err)
	s.see("stack: then", nil, state())
	_, err = s.cfn.CreateStack(s.ctx, in)
	s.see("stack: create again with the same token", err)
	in.ClientRequestToken = nil
	_, err = s.cfn.CreateStack(s.ctx, in)
	s.see("stack: create again", err)
	s.settle()
	s.see("stack: and later", nil, state())
	resources, err := s.cfn.DescribeStackResources(s.ctx, &cloudformation.DescribeStackResourcesInput{StackName: name})
	s.need(err)
	slices.SortFunc(resources.StackResources, func(x, y types.StackResource) int { return strings.Compare(*x.LogicalResourceId, *y.LogicalResourceId) })
	for _, r := range resources.StackResources {
		s.see("stack: "+*r.LogicalResourceId, nil, *r.PhysicalResourceId, r.ResourceStatus)
	}
	events, err := s.cfn.DescribeStackEvents(s.ctx, &cloudformation.DescribeStackEventsInput{StackName: name})
	s.need(err)
	last := events.StackEvents[0]
	s.see("stack: its last event", nil, *last.LogicalResourceId, last.ResourceStatus, aws.ToString(last.PhysicalResourceId) == *made.StackId)
	attached, err := s.iam.ListAttachedRolePolicies(s.ctx, &iam.ListAttachedRolePoliciesInput{RoleName: aws.String("stacked")})
	s.need(err)
	s.see("stack: policies of its role", nil, len(attached.AttachedPolicies))
	s.stackUpdates(name, named, state)

	_, err = s.cfn.DeleteStack(s.ctx, &cloudformation.DeleteStackInput{StackName: name})
	s.see("stack: delete", err)
	s.settle()
	s.see("stack: after its deletion", nil, state())
	gone, err := s.cfn.DescribeStacks(s.ctx, &cloudformation.DescribeStacksInput{StackName: made.StackId})
	s.need(err)
	s.see("stack: after its deletion, by ID", nil, gone.Stacks[0].StackStatus)
	_, err = s.iam.GetRole(s.ctx, &iam.GetRoleInput{RoleName: aws.String("stacked")})
	s.see("stack: its role after that", err)
}

func (s *suite) stackUpdates(name *string, named []types.Capability, state func() string) {
	body := stackTemplate
	update := func() error {
		_, err := s.cfn.UpdateStack(s.ctx, &cloudformation.UpdateStackInput{StackName: name, TemplateBody: &body, Capabilities: named})
		return err
	}
	s.see("stack: update with the same", update())
	s.settle()
	set := &cloudformation.CreateChangeSetInput{
		StackName:     name,
		ChangeSetName: aws.String("first"),
		TemplateBody:  aws.String(stackTemplate + "  Group: {Type: AWS::IAM::Group, Properties: {GroupName: stacked}}\n"),
		Capabilities:  named,
	}
	_, err := s.cfn.CreateChangeSet(s.ctx, set)
	s.see("change set: create", err)
	s.need(err)
	s.settle()
	changes, err := s.cfn.DescribeChangeSet(s.ctx, &cloudformation.DescribeChangeSetInput{StackName: name, ChangeSetName: set.ChangeSetName})
	s.need(err)
	said := []any{changes.Status}
	for _, c := range changes.Changes {
		said = append(said, *c.ResourceChange.LogicalResourceId, c.ResourceChange.Action)
	}
	s.see("change set: describe", nil, said...)
	_, err = s.cfn.DeleteChangeSet(s.ctx, &cloudformation.DeleteChangeSetInput{StackName: name, ChangeSetName: set.ChangeSetName})
	s.see("change set: delete", err)
	_, err = s.cfn.DescribeChangeSet(s.ctx, &cloudformation.DescribeChangeSetInput{StackName: name, ChangeSetName: set.ChangeSetName})
	s.see("change set: describe one that is not there", err)
	body = *set.TemplateBody
	s.see("stack: update", update())
	s.settle()
	s.see("stack: after its update", nil, state())
	_, err = s.cfn.UpdateStack(s.ctx, &cloudformation.UpdateStackInput{StackName: aws.String("none"), TemplateBody: &body, Capabilities: named})
	s.see("stack: update one that is not there", err)
}
