package stack

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

// Delete deletes the stack and waits for the result. It reports whether the stack
// existed. Its errors are a ConflictError, a FailedError, a WaitError, or an error of AWS.
func (s *Stack) Delete(ctx context.Context) (existed bool, err error) {
	now, err := s.look(ctx, s.Name)
	if err == nil && now != nil && busy(now.StackStatus) && now.StackStatus != types.StackStatusDeleteInProgress {
		now, err = s.waitIdle(ctx)
	}
	if err != nil || now == nil {
		return false, err
	}
	return true, s.remove(ctx, now)
}

// remove deletes an existing stack.
func (s *Stack) remove(ctx context.Context, now *types.Stack) error {
	s.token = ""
	if now.StackStatus != types.StackStatusDeleteInProgress {
		if aws.ToBool(now.EnableTerminationProtection) {
			return &ConflictError{
				Problems: []string{fmt.Sprintf("stack %s in %s has termination protection", s.Name, s.Region)},
				Remedy: fmt.Sprintf(
					"aws cloudformation update-termination-protection --region %s --stack-name %s --no-enable-termination-protection turns it off",
					s.Region,
					s.Name,
				),
			}
		}
		if _, err := s.cfn.DeleteStack(ctx, &cfn.DeleteStackInput{StackName: now.StackId, ClientRequestToken: s.newToken()}); err != nil {
			return s.requestError("delete", err)
		}
	}
	after, events, err := s.watch(ctx, aws.ToString(now.StackId), s.token)
	switch {
	case err != nil:
		return &WaitError{s.Name, s.Region, "delete", err}
	case after == nil, after.StackStatus == types.StackStatusDeleteComplete:
		return nil
	}
	failed := &FailedError{
		Name:   s.Name,
		Region: s.Region,
		Doing:  "delete",
		Status: after.StackStatus,
		Reason: aws.ToString(after.StackStatusReason),
		Causes: rootCauses(events),
	}
	for _, e := range failed.Causes {
		failed.Held = append(failed.Held, s.holding(ctx, e)...)
	}
	return failed
}

// holding returns the reasons why a resource cannot be deleted, as far as they can be
// found.
func (s *Stack) holding(ctx context.Context, e Event) (lines []string) {
	switch e.Type {
	case "AWS::IAM::Role":
		lines = s.holdingRole(ctx, e.Physical)
	case "AWS::IAM::ManagedPolicy":
		lines = s.holdingPolicy(ctx, e.Physical)
	}
	return lines
}

func (s *Stack) holdingRole(ctx context.Context, name string) (lines []string) {
	attached := iam.NewListAttachedRolePoliciesPaginator(s.iam, &iam.ListAttachedRolePoliciesInput{RoleName: &name})
	ctx = awshttp.Listing(ctx)
	for attached.HasMorePages() {
		out, err := attached.NextPage(ctx)
		if err != nil {
			break
		}
		for _, p := range out.AttachedPolicies {
			lines = append(
				lines,
				fmt.Sprintf(
					"role %s: policy %s is attached: aws iam detach-role-policy --role-name %s --policy-arn %s",
					name,
					aws.ToString(p.PolicyArn),
					name,
					aws.ToString(p.PolicyArn),
				),
			)
		}
	}
	inline := iam.NewListRolePoliciesPaginator(s.iam, &iam.ListRolePoliciesInput{RoleName: &name})
	ctx = awshttp.Listing(ctx)
	for inline.HasMorePages() {
		out, err := inline.NextPage(ctx)
		if err != nil {
			break
		}
		for _, p := range out.PolicyNames {
			lines = append(lines, fmt.Sprintf("role %s: has the inline policy %s: aws iam delete-role-policy --role-name %s --policy-name %s", name, p, name, p))
		}
	}
	profiles := iam.NewListInstanceProfilesForRolePaginator(s.iam, &iam.ListInstanceProfilesForRoleInput{RoleName: &name})
	ctx = awshttp.Listing(ctx)
	for profiles.HasMorePages() {
		out, err := profiles.NextPage(ctx)
		if err != nil {
			break
		}
		for _, p := range out.InstanceProfiles {
			profile := aws.ToString(p.InstanceProfileName)
			lines = append(
				lines,
				fmt.Sprintf(
					"role %s: is in the instance profile %s: aws iam remove-role-from-instance-profile --instance-profile-name %s --role-name %s",
					name,
					profile,
					profile,
					name,
				),
			)
		}
	}
	return lines
}

func (s *Stack) holdingPolicy(ctx context.Context, arn string) (lines []string) {
	name := arn[strings.LastIndex(arn, "/")+1:]
	pages := iam.NewListEntitiesForPolicyPaginator(s.iam, &iam.ListEntitiesForPolicyInput{PolicyArn: &arn})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			break
		}
		line := func(kind string, who *string) {
			lines = append(
				lines,
				fmt.Sprintf(
					"policy %s: is attached to %s %s: aws iam detach-%s-policy --%s-name %s --policy-arn %s",
					name,
					kind,
					aws.ToString(who),
					kind,
					kind,
					aws.ToString(who),
					arn,
				),
			)
		}
		for _, r := range out.PolicyRoles {
			line("role", r.RoleName)
		}
		for _, u := range out.PolicyUsers {
			line("user", u.UserName)
		}
		for _, g := range out.PolicyGroups {
			line("group", g.GroupName)
		}
	}
	return lines
}
