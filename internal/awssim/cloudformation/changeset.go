package cloudformation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// ChangeSet is a change set. Its execution is not simulated.
type ChangeSet struct {
	ID, Name, Token string
	Born            time.Time
	Changes         []StackChange
	Empty           bool // there are no changes
}

// StackChange is the change of one resource.
type StackChange struct {
	Logical, Physical, Type string
	Action                  types.ChangeAction
	Replacement             types.Replacement
	Properties              []string // names of properties that differ
}

const noChanges = "The submitted information didn't contain changes. Submit different information to create a change set."

func (svc *Service) createChangeSet(in *cfn.CreateChangeSetInput) (*cfn.CreateChangeSetOutput, error) {
	name := aws.ToString(in.ChangeSetName)
	if !regex.Of(`^[a-zA-Z][-a-zA-Z0-9]{0,127}$`).MatchString(name) {
		return nil, invalid(
			"1 validation error detected: Value '%s' at 'changeSetName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*",
			name,
		)
	}
	if err := checkStackName(aws.ToString(in.StackName)); err != nil && !strings.HasPrefix(aws.ToString(in.StackName), "arn:") {
		return nil, err
	}
	s, t, err := svc.subject(in)
	if err != nil {
		return nil, err
	}
	tags := s.Tags
	if in.Tags != nil {
		if tags, err = stackTags(in.Tags); err != nil {
			return nil, err
		}
	}
	if known := s.ChangeSets[name]; known != nil {
		if in.ClientToken != nil && known.Token == *in.ClientToken {
			return &cfn.CreateChangeSetOutput{Id: aws.String(known.ID), StackId: aws.String(s.ID)}, nil
		}
		return nil, &types.AlreadyExistsException{Message: aws.String("ChangeSet " + name + " cannot be created due to a mismatch with existing attribute")}
	}
	run := s.update(t, !maps.Equal(tags, s.Tags))
	c := &ChangeSet{
		ID:   before(s.ID, ":stack/") + ":changeSet/" + name + "/" + svc.Hash(),
		Name: name, Token: aws.ToString(in.ClientToken), Born: svc.Now(), Changes: s.preview(t, run),
		Empty: len(run.Steps)+len(run.Removed) == 0 && maps.Equal(tags, s.Tags),
	}
	s.ChangeSets[name] = c
	return &cfn.CreateChangeSetOutput{Id: aws.String(c.ID), StackId: aws.String(s.ID)}, nil
}

// subject returns the stack of a change set. For a new stack, it creates one without
// resources.
func (svc *Service) subject(in *cfn.CreateChangeSetInput) (*Stack, *template, error) {
	name, body := aws.ToString(in.StackName), aws.ToString(in.TemplateBody)
	if in.ChangeSetType != types.ChangeSetTypeCreate {
		return svc.checkUpdate(name, body, in.Capabilities)
	}
	t, err := parseTemplate(body)
	if err == nil {
		err = t.acknowledged(in.Capabilities)
	}
	if err != nil {
		return nil, nil, err
	}
	s := svc.stack(name)
	switch {
	case s == nil:
		s = svc.newStack(name, svc.Hash()+svc.Hash(), svc.Now())
		s.enter(types.StackStatusReviewInProgress, "User Initiated", svc.Now())
	case s.Status != types.StackStatusReviewInProgress:
		return nil, nil, invalid("Stack [%s] already exists and cannot be created again with the changeSet [%s].", name, aws.ToString(in.ChangeSetName))
	}
	return s, t, nil
}

func before(text, separator string) string {
	head, _, _ := strings.Cut(text, separator)
	return head
}

func (s *Stack) preview(t *template, run *StackRun) (list []StackChange) {
	for _, step := range run.Steps {
		c := StackChange{Logical: step.Logical, Type: step.Type, Action: types.ChangeActionAdd}
		if r := s.Resources[step.Logical]; r != nil {
			c.Physical, c.Action, c.Replacement = r.Physical, types.ChangeActionModify, types.ReplacementFalse
			c.Properties = s.changes(step.Logical, t.resources[step.Logical])
			if step.Action == "replace" {
				c.Replacement = types.ReplacementTrue
			}
		}
		list = append(list, c)
	}
	for _, id := range run.Removed {
		list = append(list, StackChange{Logical: id, Physical: s.Resources[id].Physical, Type: s.Resources[id].Type, Action: types.ChangeActionRemove})
	}
	return list
}

// changeSet returns a change set by its name and that of its stack, or by its ID.
func (svc *Service) changeSet(stack, name *string) (*Stack, *ChangeSet, error) {
	for _, s := range core.ByKey(svc.state.Stacks) {
		for _, c := range s.ChangeSets {
			if c.ID == aws.ToString(name) || c.Name == aws.ToString(name) && stack != nil && svc.stack(*stack) == s {
				return s, c, nil
			}
		}
	}
	if stack != nil && svc.stack(*stack) == nil {
		return nil, nil, invalid("Stack [%s] does not exist", *stack)
	}
	return nil, nil, &types.ChangeSetNotFoundException{Message: aws.String("ChangeSet [" + aws.ToString(name) + "] does not exist")}
}

func (svc *Service) describeChangeSet(in *cfn.DescribeChangeSetInput) (*cfn.DescribeChangeSetOutput, error) {
	s, c, err := svc.changeSet(in.StackName, in.ChangeSetName)
	if err != nil {
		return nil, err
	}
	out := &cfn.DescribeChangeSetOutput{
		ChangeSetId: aws.String(c.ID), ChangeSetName: aws.String(c.Name), StackId: aws.String(s.ID), StackName: aws.String(s.Name), CreationTime: aws.Time(c.Born),
		Status: types.ChangeSetStatusCreateInProgress, ExecutionStatus: types.ExecutionStatusUnavailable,
	}
	switch {
	case svc.Now().Sub(c.Born) < ChangeSetTakes:
		return out, nil
	case c.Empty:
		out.Status, out.StatusReason = types.ChangeSetStatusFailed, aws.String(noChanges)
		return out, nil
	}
	out.Status, out.ExecutionStatus = types.ChangeSetStatusCreateComplete, types.ExecutionStatusAvailable
	list := core.Each(c.Changes, func(x StackChange) types.Change {
		r := &types.ResourceChange{
			Action:             x.Action,
			LogicalResourceId:  aws.String(x.Logical),
			PhysicalResourceId: some(x.Physical),
			ResourceType:       aws.String(x.Type),
			Replacement:        x.Replacement,
		}
		for _, p := range x.Properties {
			target := &types.ResourceTargetDefinition{
				Attribute:          types.ResourceAttributeProperties,
				Name:               aws.String(p),
				RequiresRecreation: types.RequiresRecreationNever,
			}
			if slices.Contains(resourceKinds()[x.Type].fixed, p) || p == resourceKinds()[x.Type].name {
				target.RequiresRecreation = types.RequiresRecreationAlways
			}
			r.Details = append(
				r.Details,
				types.ResourceChangeDetail{Target: target, Evaluation: types.EvaluationTypeStatic, ChangeSource: types.ChangeSourceDirectModification},
			)
			r.Scope = []types.ResourceAttribute{types.ResourceAttributeProperties}
		}
		return types.Change{Type: types.ChangeTypeResource, ResourceChange: r}
	})
	out.Changes, out.NextToken, err = core.Page(svc.Account, list, in.NextToken, nil, 100)
	return out, err
}

// deleteChangeSet returns an error for a change set that does not exist. AWS may not.
func (svc *Service) deleteChangeSet(in *cfn.DeleteChangeSetInput) (*cfn.DeleteChangeSetOutput, error) {
	s, c, err := svc.changeSet(in.StackName, in.ChangeSetName)
	if err != nil {
		return nil, err
	}
	delete(s.ChangeSets, c.Name)
	return &cfn.DeleteChangeSetOutput{}, nil
}
