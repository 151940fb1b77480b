package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Action names what Apply does with a resource.
type Action string

// The actions.
const (
	Add     Action = "add"
	Change  Action = "change"
	Replace Action = "replace" // create a new one, then delete the old one
	Remove  Action = "remove"
)

// Step is the change of one resource.
type Step struct {
	Action                  Action
	Logical, Type, Physical string   // Physical is the name of a new resource, as far as it is known
	Properties              []string // that change
}

// Preview lists the changes that Apply would make.
type Preview struct {
	Status types.StackStatus // current status of the stack, or "" if it does not exist
	Diff   string            // unified diff of the templates, or "" if they are equivalent or there is none
	Steps  []Step
	// Asked reports whether the steps come from a change set of CloudFormation. Otherwise
	// they were computed locally.
	Asked bool
	// Err is the error with which Apply would fail before any change, or nil.
	Err error
}

// Preview returns what Apply would do, and changes nothing. For an existing stack it
// creates a change set and deletes it again. If that is not permitted, or the stack does
// not exist, it compares the templates locally.
func (s *Stack) Preview(ctx context.Context, w Wanted) (*Preview, error) {
	objects, err := parse(w.Template)
	if err != nil {
		return nil, err
	}
	p := &Preview{Err: s.check(w, objects)}
	if p.Err != nil {
		return p, nil //nolint:nilerr // the error is part of the preview
	}
	now, err := s.look(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	before, err := s.before(ctx, w, now, p)
	if err != nil {
		return nil, err
	}
	if before != "" { // for a new stack, the diff would be the whole template
		p.Diff = s.diff(before, w.Template)
	}
	if p.Steps, err = local(before, objects); err != nil {
		return nil, err
	}
	if err := s.ask(ctx, w, p); err != nil {
		return nil, err
	}
	if p.Err == nil {
		p.Err = s.preflight(ctx, objects, now)
	}
	return p, nil
}

// before returns the template of the stack, or "" if it does not exist, and records what
// prevents an update.
func (s *Stack) before(ctx context.Context, w Wanted, now *types.Stack, p *Preview) (string, error) {
	if now == nil {
		if _, err := s.cfn.ValidateTemplate(ctx, &cfn.ValidateTemplateInput{TemplateBody: &w.Template}); err != nil && !cloud.Denied(err) {
			p.Err = fmt.Errorf("template: %w", err)
		}
		return "", nil
	}
	p.Status = now.StackStatus
	if stuck(p.Status) && !w.ReplaceFailed || p.Status == types.StackStatusUpdateRollbackFailed {
		p.Err = s.stuckError(ctx, now)
	}
	if stuck(p.Status) {
		return "", nil // the stack has to be recreated
	}
	out, err := s.cfn.GetTemplate(ctx, &cfn.GetTemplateInput{StackName: &s.Name, TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return "", fmt.Errorf("template of stack %s in %s: %w", s.Name, s.Region, err)
	}
	return aws.ToString(out.TemplateBody), nil
}

// diff compares the content of two templates, not their notation.
func (s *Stack) diff(before, after string) string {
	short := regex.Of(`[:\[ -]\s*!(Ref|GetAtt|Sub|Join|If|Select|Split|FindInMap|ImportValue|Base64|Equals|Not|And|Or)\b`)
	plain := func(text string) string {
		var v any
		if text == "" || short.MatchString(text) || yaml.Unmarshal([]byte(text), &v) != nil {
			return text
		}
		out, err := yaml.Marshal(v)
		if err != nil {
			return text
		}
		return string(out)
	}
	return udiff.Unified("stack "+s.Name+" in "+s.Region, "new template", plain(before), plain(after))
}

// local computes the steps from two templates.
func local(before string, after []object) (steps []Step, err error) {
	old, err := parse(before)
	if err != nil {
		return nil, fmt.Errorf("the stack's %w", err)
	}
	for _, o := range after {
		i := slices.IndexFunc(old, func(x object) bool { return x.logical == o.logical })
		if i < 0 {
			steps = append(steps, Step{Action: Add, Logical: o.logical, Type: o.kind, Physical: o.name})
			continue
		}
		step := Step{Action: Change, Logical: o.logical, Type: o.kind, Physical: o.name, Properties: differing(old[i].properties, o.properties)}
		if slices.ContainsFunc(step.Properties, func(p string) bool { return fixed(o.kind, p) }) {
			step.Action = Replace
		}
		if len(step.Properties) > 0 {
			steps = append(steps, step)
		}
	}
	for _, o := range old {
		if !slices.ContainsFunc(after, func(x object) bool { return x.logical == o.logical }) {
			steps = append(steps, Step{Action: Remove, Logical: o.logical, Type: o.kind, Physical: o.name})
		}
	}
	return steps, nil
}

// fixed reports whether a change of a property requires a replacement, by the schemas of
// CloudFormation.
func fixed(kind, property string) bool {
	switch property {
	case kinds()[kind].name:
		return true
	case "Path":
		return kind != "AWS::IAM::User" && kind != "AWS::IAM::Group"
	case "Description":
		return kind == "AWS::IAM::ManagedPolicy"
	}
	return false
}

// differing returns the names of the properties that differ.
func differing(x, y map[string]any) (names []string) {
	for _, m := range []map[string]any{x, y} {
		for p := range m {
			left, _ := yaml.Marshal(x[p])
			right, _ := yaml.Marshal(y[p])
			if string(left) != string(right) && !slices.Contains(names, p) {
				names = append(names, p)
			}
		}
	}
	slices.Sort(names)
	return names
}

// updatable reports whether a stack with that status can be updated.
func updatable(status types.StackStatus) bool { return status != "" && !busy(status) && !stuck(status) }

// ask gets the steps from CloudFormation if the stack can be updated.
func (s *Stack) ask(ctx context.Context, w Wanted, p *Preview) (err error) {
	if p.Err != nil || !updatable(p.Status) {
		return nil
	}
	token := s.newToken()
	in := &cfn.CreateChangeSetInput{
		StackName: &s.Name, ChangeSetName: token, ClientToken: token, ChangeSetType: types.ChangeSetTypeUpdate, Description: aws.String("dry run of clusterawsadm"),
		TemplateBody: &w.Template, Capabilities: capabilities(), Tags: w.tags(),
	}
	out, err := s.cfn.CreateChangeSet(ctx, in)
	switch {
	case cloud.Denied(err):
		s.o.Note("no permission for cloudformation:CreateChangeSet: the following is a local comparison of the templates")
		return nil
	case err != nil:
		return fmt.Errorf("change set of stack %s in %s: %w", s.Name, s.Region, err)
	}
	defer func() {
		// Also after an interruption: the change set must not remain.
		if _, gone := s.cfn.DeleteChangeSet(
			context.WithoutCancel(ctx),
			&cfn.DeleteChangeSetInput{ChangeSetName: out.Id},
		); gone != nil &&
			!cloud.Is(gone, "ChangeSetNotFound") {
			err = errors.Join(err, fmt.Errorf("delete the change set %s of the dry run: %w", *token, gone))
		}
	}()
	steps, err := s.changes(ctx, out.Id)
	if err != nil {
		return err
	}
	for i := range steps { // CloudFormation does not return the names of new resources
		for _, l := range p.Steps {
			if steps[i].Action == Add && l.Logical == steps[i].Logical {
				steps[i].Physical = l.Physical
			}
		}
	}
	p.Steps, p.Asked = steps, true
	return nil
}

// changes waits for a change set and reads it.
func (s *Stack) changes(ctx context.Context, id *string) (steps []Step, err error) {
	began := s.clock.Now()
	in := &cfn.DescribeChangeSetInput{ChangeSetName: id}
	ctx = awshttp.Listing(ctx)
	for {
		out, err := s.cfn.DescribeChangeSet(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("change set of stack %s in %s: %w", s.Name, s.Region, err)
		}
		switch {
		case out.Status == types.ChangeSetStatusFailed && empty(aws.ToString(out.StatusReason)):
			return nil, nil
		case out.Status == types.ChangeSetStatusFailed:
			return nil, fmt.Errorf("change set of stack %s in %s: AWS says: %s", s.Name, s.Region, aws.ToString(out.StatusReason))
		case out.Status == types.ChangeSetStatusCreateComplete:
			for i := range out.Changes {
				if r := out.Changes[i].ResourceChange; r != nil {
					steps = append(steps, stepOf(r))
				}
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				return steps, nil
			}
			continue
		case s.clock.Since(began) > outageTimeout:
			return nil, fmt.Errorf("change set of stack %s in %s: not complete after %s", s.Name, s.Region, outageTimeout)
		}
		if err := s.clock.Sleep(ctx, pollLeast); err != nil {
			return nil, err
		}
	}
}

func stepOf(r *types.ResourceChange) Step {
	step := Step{Action: Change, Logical: aws.ToString(r.LogicalResourceId), Type: aws.ToString(r.ResourceType), Physical: aws.ToString(r.PhysicalResourceId)}
	switch {
	case r.Action == types.ChangeActionAdd:
		step.Action = Add
	case r.Action == types.ChangeActionRemove:
		step.Action = Remove
	case r.Replacement == types.ReplacementTrue, r.Replacement == types.ReplacementConditional:
		step.Action = Replace
	}
	for _, d := range r.Details {
		if d.Target != nil && d.Target.Name != nil && !slices.Contains(step.Properties, *d.Target.Name) {
			step.Properties = append(step.Properties, *d.Target.Name)
		}
	}
	slices.Sort(step.Properties)
	return step
}

// empty reports whether a change set failed because there are no changes.
func empty(reason string) bool {
	return strings.Contains(reason, "didn't contain changes") || strings.Contains(reason, "No updates are to be performed")
}

// unchanged reports whether an update was rejected because there are no changes.
func unchanged(err error) bool {
	return cloud.Is(err, "ValidationError") && contains(err, "No updates are to be performed")
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
