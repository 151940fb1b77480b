package replica

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/cloudformation"
	simiam "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// stacks reads the stack of the bootstrap, and those that have made the roles of the copy, with
// their other roles, instance profiles and policies. Others are not copied.
func (r *reader) stacks(ctx context.Context) error {
	if !r.roled {
		return nil // the stack of the simulated account belongs to its roles
	}
	c := cloudformation.NewFromConfig(r.Config)
	names := []string{sim.BootstrapStack}
	for _, role := range slices.Sorted(maps.Keys(r.to.IAM.Roles)) {
		out, err := c.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{PhysicalResourceId: &role})
		if noStack(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, x := range out.StackResources {
			names = append(names, aws.ToString(x.StackName))
		}
	}
	slices.Sort(names)
	found := map[string]*sim.Stack{}
	for _, name := range slices.Compact(names) {
		if err := r.stack(ctx, c, name, found); err != nil {
			return err
		}
	}
	r.to.CloudFormation.Stacks = found
	return nil
}

// noStack reports whether the answer is that a stack does not exist.
func noStack(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "does not exist")
}

func (r *reader) stack(ctx context.Context, c *cloudformation.Client, name string, to map[string]*sim.Stack) error {
	out, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if noStack(err) || err == nil && len(out.Stacks) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	template, err := c.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &name, TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return err
	}
	list, err := c.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &name})
	if err != nil {
		return err
	}
	s := out.Stacks[0]
	own := &sim.Stack{
		ID: aws.ToString(
			s.StackId,
		),
		Name:         name,
		Description:  aws.ToString(s.Description),
		Template:     aws.ToString(template.TemplateBody),
		Capabilities: s.Capabilities,
		Tags:         map[string]string{},
		Created:      r.since(s.CreationTime),
		Status:       s.StackStatus,
		Reason:       aws.ToString(s.StackStatusReason),
		Resources:    map[string]*sim.StackResource{},
		ChangeSets:   map[string]*sim.ChangeSet{},
		Copied:       true,
	}
	if s.LastUpdatedTime != nil {
		own.Updated = r.since(s.LastUpdatedTime)
	}
	for _, t := range s.Tags {
		own.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	for _, x := range list.StackResources {
		made := &sim.StackResource{
			Logical: aws.ToString(x.LogicalResourceId), Physical: aws.ToString(x.PhysicalResourceId), Type: aws.ToString(x.ResourceType),
			Status: x.ResourceStatus, Reason: aws.ToString(x.ResourceStatusReason), Changed: r.since(x.Timestamp),
		}
		own.Resources[made.Logical] = made
		if err := r.part(ctx, made.Physical, func(ctx context.Context) error { return r.madeBy(ctx, made) }); err != nil {
			return err
		}
	}
	to[own.ID] = own
	return nil
}

// madeBy reads what a stack has made.
func (r *reader) madeBy(ctx context.Context, x *sim.StackResource) error {
	c := iam.NewFromConfig(r.Config)
	to := &simiam.State{Roles: r.to.IAM.Roles, Profiles: r.to.IAM.Profiles, Policies: r.to.IAM.Policies}
	switch {
	case x.Physical == "":
	case x.Type == "AWS::IAM::Role":
		return r.role(ctx, c, to, x.Physical)
	case x.Type == "AWS::IAM::InstanceProfile":
		return r.profile(ctx, c, to, x.Physical)
	case x.Type == "AWS::IAM::ManagedPolicy" && to.Policies[last(x.Physical)] == nil:
		return r.policy(ctx, c, to, x.Physical)
	case x.Type == "AWS::IAM::User" || x.Type == "AWS::IAM::Group":
		r.remark("the %s %s of a stack is not copied", strings.ToLower(strings.TrimPrefix(x.Type, "AWS::IAM::")), x.Physical)
	}
	return nil
}
