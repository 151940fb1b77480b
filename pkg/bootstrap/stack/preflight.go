package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// parallel is the number of concurrent calls.
const parallel = 8

// existingObject is an IAM object with the name of an object in the template that does not
// belong to the stack.
type existingObject struct {
	object
	physical string // physical ID in CloudFormation
	by       string // the stack that created it, or "" if unknown
	region   string // of that stack
}

// preflight looks for IAM objects with conflicting names, with which the stack would fail
// after minutes and roll back. Objects that the caller may not read are skipped: the
// permission is not required.
func (s *Stack) preflight(ctx context.Context, objects []object, now *types.Stack) error {
	owned, err := s.owned(ctx, now)
	if err != nil {
		s.o.Note("warning: cannot check for conflicts with existing IAM objects: " + err.Error())
		return nil //nolint:nilerr // reported
	}
	var ask []object
	for _, o := range objects {
		if o.name != "" && !owned[o.kind+" "+o.name] {
			ask = append(ask, o)
		}
	}
	found, err := s.existing(ctx, ask)
	switch {
	case stopped(ctx, err):
		return context.Cause(ctx)
	case err != nil:
		s.o.Note("warning: cannot check for conflicts with existing IAM objects: " + err.Error())
		return nil //nolint:nilerr // reported
	case len(found) == 0:
		return nil
	}
	s.findOwners(ctx, found)
	return conflictError(found)
}

// owned returns the objects of the stack, by type and name.
func (s *Stack) owned(ctx context.Context, now *types.Stack) (map[string]bool, error) {
	owned := map[string]bool{}
	if now == nil {
		return owned, nil
	}
	list, err := s.Resources(ctx)
	for _, r := range list {
		if r.Status != types.ResourceStatusDeleteComplete {
			owned[r.Type+" "+r.Physical[strings.LastIndex(r.Physical, "/")+1:]] = true
		}
	}
	return owned, err
}

// existing returns the objects that exist.
func (s *Stack) existing(ctx context.Context, objects []object) ([]*existingObject, error) {
	found := make([]*existingObject, len(objects))
	denied := make([]error, len(objects)+1) // the last one is for the list of policies
	var policies map[string]string
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	if slices.ContainsFunc(objects, func(o object) bool { return o.kind == "AWS::IAM::ManagedPolicy" }) {
		g.Go(func() (err error) {
			policies, err = s.policies(ctx)
			if cloud.Denied(err) {
				denied[len(objects)], err = err, nil
			}
			return err
		})
	}
	for i, o := range objects {
		g.Go(func() error {
			err := s.get(ctx, o)
			switch {
			case cloud.NotFound(err):
			case cloud.Denied(err):
				denied[i] = err
			case err != nil:
				return err
			case o.kind != "AWS::IAM::ManagedPolicy":
				found[i] = &existingObject{object: o, physical: o.name}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(denied, func(err error) bool { return err != nil }); i >= 0 {
		s.o.Note("warning: cannot check for conflicts with existing IAM objects: " + denied[i].Error())
	}
	for i, o := range objects {
		if f := policyNamed(o, policies); f != nil {
			found[i] = f
		}
	}
	return slices.DeleteFunc(found, func(f *existingObject) bool { return f == nil }), nil
}

// policyNamed returns the existing policy with the name of an object in the template, or
// nil.
func policyNamed(o object, policies map[string]string) *existingObject {
	if arn := policies[strings.ToLower(o.name)]; arn != "" && o.kind == "AWS::IAM::ManagedPolicy" {
		return &existingObject{object: o, physical: arn}
	}
	return nil
}

// get reads one object. Policies cannot be read by name.
func (s *Stack) get(ctx context.Context, o object) (err error) {
	switch o.kind {
	case "AWS::IAM::Role":
		_, err = s.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &o.name})
	case "AWS::IAM::InstanceProfile":
		_, err = s.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &o.name})
	case "AWS::IAM::User":
		_, err = s.iam.GetUser(ctx, &iam.GetUserInput{UserName: &o.name})
	case "AWS::IAM::Group":
		_, err = s.iam.GetGroup(ctx, &iam.GetGroupInput{GroupName: &o.name, MaxItems: aws.Int32(1)})
	case "AWS::IAM::ManagedPolicy":
	default:
		return fmt.Errorf("%s has the unsupported type %s", o.logical, o.kind)
	}
	return err
}

// policies returns the ARNs of the account's managed policies, by their names in lower
// case: names are unique regardless of path and case.
func (s *Stack) policies(ctx context.Context) (map[string]string, error) {
	arns := map[string]string{}
	pages := iam.NewListPoliciesPaginator(s.iam, &iam.ListPoliciesInput{Scope: iamtypes.PolicyScopeTypeLocal})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range out.Policies {
			arns[strings.ToLower(aws.ToString(p.PolicyName))] = aws.ToString(p.Arn)
		}
	}
	return arns, nil
}

// maxOwnerLookups is the number of objects for which to search the stack that created them. A
// few are enough, because one answer lists all resources of a stack.
const maxOwnerLookups = 3

// blame finds the stacks that created the conflicting objects, in this region or in
// others: CloudFormation does not tag IAM objects with their stack.
func (s *Stack) findOwners(ctx context.Context, found []*existingObject) {
	regions := []aws.Config{}
	clients := map[string]*cfn.Client{s.Region: s.cfn}
	for _, cfg := range s.o.OtherRegions {
		if clients[cfg.Region] == nil {
			regions = append(regions, cfg)
			clients[cfg.Region] = cfn.NewFromConfig(awshttp.Checked(cfg))
		}
	}
	names := []string{s.Region}
	for _, cfg := range regions {
		names = append(names, cfg.Region)
	}
	asked := 0
	for _, f := range found {
		if f.by != "" || asked == maxOwnerLookups {
			continue
		}
		asked++
		answers := make([][]types.StackResource, len(names))
		var g errgroup.Group
		g.SetLimit(parallel)
		for i, name := range names {
			g.Go(func() error {
				out, err := clients[name].DescribeStackResources(ctx, &cfn.DescribeStackResourcesInput{PhysicalResourceId: &f.physical})
				if err == nil {
					answers[i] = out.StackResources
				}
				return nil
			})
		}
		_ = g.Wait() // never fails
		for i, resources := range answers {
			claim(found, resources, names[i])
		}
	}
}

// claim records which objects a stack created.
func claim(found []*existingObject, resources []types.StackResource, region string) {
	for _, r := range resources {
		for _, f := range found {
			if f.kind == aws.ToString(r.ResourceType) && f.physical == aws.ToString(r.PhysicalResourceId) {
				f.by, f.region = aws.ToString(r.StackName), region
			}
		}
	}
}

func conflictError(found []*existingObject) error {
	e := &ConflictError{}
	var stacks []string
	other := false
	for _, f := range found {
		line := fmt.Sprintf("%s %s exists already", kinds()[f.kind].word, f.name)
		if f.by != "" {
			by := fmt.Sprintf("stack %s in %s", f.by, f.region)
			line += ", created by " + by
			if !slices.Contains(stacks, by) {
				stacks = append(stacks, by)
			}
		}
		other = other || f.by == ""
		e.Problems = append(e.Problems, line)
	}
	var remedies []string
	if len(stacks) > 0 {
		remedies = append(
			remedies,
			"IAM is global: the objects of "+strings.Join(stacks, " and ")+" can be used in all regions; update that stack instead, or delete it first.",
		)
	}
	if other {
		remedies = append(
			remedies,
			"Objects that no stack created belong to another tool: delete them, or change the names in this stack with spec.namePrefix or spec.nameSuffix.",
		)
	}
	e.Remedy = strings.Join(remedies, "\n")
	return e
}
