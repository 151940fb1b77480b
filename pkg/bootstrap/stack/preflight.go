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

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// asking is how many questions are asked at once.
const asking = 8

// foreign is a thing of IAM that has the name of one of ours, and is not the
// stack's.
type foreign struct {
	object
	physical string // as CloudFormation would call it
	by       string // the stack that made it, "" where that is not known
	region   string // of that stack
}

// preflight looks for things of IAM that are in the way: the stack would fail
// on them after minutes, and roll back. What it may not look at it passes
// over: to look is no condition.
func (s *Stack) preflight(ctx context.Context, objects []object, now *types.Stack) error {
	owned, err := s.owned(ctx, now)
	if err != nil {
		s.o.Note("warning: not checked whether all IAM objects are free: " + err.Error())
		return nil //nolint:nilerr // told
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
		s.o.Note("warning: not checked whether all IAM objects are free: " + err.Error())
		return nil //nolint:nilerr // told
	case len(found) == 0:
		return nil
	}
	s.blame(ctx, found)
	return inTheWay(found)
}

// owned are the things that the stack has, by type and name.
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

// existing returns those of the objects that exist.
func (s *Stack) existing(ctx context.Context, objects []object) ([]*foreign, error) {
	found := make([]*foreign, len(objects))
	denied := make([]error, len(objects)+1) // the last is for the list of policies
	var policies map[string]string
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(asking)
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
				found[i] = &foreign{object: o, physical: o.name}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(denied, func(err error) bool { return err != nil }); i >= 0 {
		s.o.Note("warning: not checked whether all IAM objects are free: " + denied[i].Error())
	}
	for i, o := range objects {
		if f := policyNamed(o, policies); f != nil {
			found[i] = f
		}
	}
	return slices.DeleteFunc(found, func(f *foreign) bool { return f == nil }), nil
}

// policyNamed returns the policy that has the name of one of ours, or nil.
func policyNamed(o object, policies map[string]string) *foreign {
	if arn := policies[strings.ToLower(o.name)]; arn != "" && o.kind == "AWS::IAM::ManagedPolicy" {
		return &foreign{object: o, physical: arn}
	}
	return nil
}

// get asks for one thing. Policies cannot be asked for by name.
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
		return fmt.Errorf("%s of type %s is not known here", o.logical, o.kind)
	}
	return err
}

// policies are the ARNs of the account's managed policies, by their names in
// lower case: the name is taken whatever the path and the case.
func (s *Stack) policies(ctx context.Context) (map[string]string, error) {
	arns := map[string]string{}
	pages := iam.NewListPoliciesPaginator(s.iam, &iam.ListPoliciesInput{Scope: iamtypes.PolicyScopeTypeLocal})
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

// mostBlamed is for how many things the stack that made them is looked for: a
// few are enough to find it, since one answer names all that it made.
const mostBlamed = 3

// blame finds the stacks that made what is in the way, in this region or in
// another one: CloudFormation does not tag things of IAM with their stack.
func (s *Stack) blame(ctx context.Context, found []*foreign) {
	regions := []aws.Config{}
	clients := map[string]*cfn.Client{s.Region: s.cfn}
	for _, cfg := range s.o.Elsewhere {
		if clients[cfg.Region] == nil {
			regions = append(regions, cfg)
			clients[cfg.Region] = cfn.NewFromConfig(cfg)
		}
	}
	names := []string{s.Region}
	for _, cfg := range regions {
		names = append(names, cfg.Region)
	}
	asked := 0
	for _, f := range found {
		if f.by != "" || asked == mostBlamed {
			continue
		}
		asked++
		answers := make([][]types.StackResource, len(names))
		var g errgroup.Group
		g.SetLimit(asking)
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

// claim notes what a stack made.
func claim(found []*foreign, resources []types.StackResource, region string) {
	for _, r := range resources {
		for _, f := range found {
			if f.kind == aws.ToString(r.ResourceType) && f.physical == aws.ToString(r.PhysicalResourceId) {
				f.by, f.region = aws.ToString(r.StackName), region
			}
		}
	}
}

func inTheWay(found []*foreign) error {
	e := &InTheWayError{}
	var stacks []string
	other := false
	for _, f := range found {
		line := fmt.Sprintf("%s %s exists already", kinds()[f.kind].word, f.name)
		if f.by != "" {
			by := fmt.Sprintf("stack %s in %s", f.by, f.region)
			line += ", made by " + by
			if !slices.Contains(stacks, by) {
				stacks = append(stacks, by)
			}
		}
		other = other || f.by == ""
		e.Problems = append(e.Problems, line)
	}
	var remedies []string
	if len(stacks) > 0 {
		remedies = append(remedies, "IAM is the same in all regions: what "+strings.Join(stacks, " and ")+" made serves this one too; update that one instead, or delete it first.")
	}
	if other {
		remedies = append(remedies, "What no stack made here is another tool's: delete it, or give the objects of this stack other names with spec.namePrefix or spec.nameSuffix.")
	}
	e.Remedy = strings.Join(remedies, "\n")
	return e
}
