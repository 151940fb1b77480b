package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Wanted is what a stack is to be.
type Wanted struct {
	Template string
	// Tags are the stack's. None leave those that it has.
	Tags map[string]string
	// ReplaceFailed deletes a stack that AWS does not let be updated, and makes
	// it anew.
	ReplaceFailed bool
}

// Outcome is what became of a stack.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
)

// errAgain says that the stack is not what it was: somebody else was faster.
var errAgain = errors.New("somebody else changes the stack over and over")

// tries is how often somebody else may be faster.
const tries = 5

// Apply creates or updates the stack, and waits until AWS is done. Where
// somebody is at work on it already, be it an earlier run of ours, it waits for
// that first.
//
// Errors are an InTheWayError before anything was sent, a StuckError, a
// FailedError, a LeftAloneError, or AWS's own.
func (s *Stack) Apply(ctx context.Context, w Wanted) (Outcome, error) {
	objects, err := parse(w.Template)
	if err == nil {
		err = s.check(w, objects)
	}
	if err != nil {
		return "", err
	}
	checked := false
	for range tries {
		now, err := s.idle(ctx)
		if err != nil {
			return "", err
		}
		if !checked {
			if err := s.preflight(ctx, objects, now); err != nil {
				return "", err
			}
			checked = true
		}
		outcome, err := s.step(ctx, w, now)
		if !errors.Is(err, errAgain) {
			return outcome, err
		}
	}
	return "", errAgain
}

// idle returns the stack once nobody is at work on it.
func (s *Stack) idle(ctx context.Context) (*types.Stack, error) {
	now, err := s.look(ctx, s.Name)
	if err != nil || now == nil || !busy(now.StackStatus) {
		return now, err
	}
	s.o.Note(fmt.Sprintf("stack %s is in %s: waiting for that first", s.Name, now.StackStatus))
	if _, _, err = s.watch(ctx, aws.ToString(now.StackId), ""); err != nil {
		return nil, &LeftAloneError{s.Name, s.Region, "wait for", err}
	}
	return s.idle(ctx)
}

// step does what the state of the stack asks for.
func (s *Stack) step(ctx context.Context, w Wanted, now *types.Stack) (Outcome, error) {
	switch {
	case now == nil:
		return Created, s.create(ctx, w)
	case stuck(now.StackStatus) && w.ReplaceFailed:
		s.o.Note(fmt.Sprintf("stack %s is in %s: deleting it, to make it anew", s.Name, now.StackStatus))
		if err := s.remove(ctx, now); err != nil {
			return "", err
		}
		return "", errAgain
	case stuck(now.StackStatus), now.StackStatus == types.StackStatusUpdateRollbackFailed:
		return "", s.stuckError(ctx, now)
	}
	return s.update(ctx, w, now)
}

func (s *Stack) stuckError(ctx context.Context, now *types.Stack) *StuckError {
	return &StuckError{s.Name, s.Region, now.StackStatus, aws.ToString(now.StackStatusReason), rootCauses(s.history(ctx, aws.ToString(now.StackId)))}
}

func capabilities() []types.Capability {
	return []types.Capability{types.CapabilityCapabilityIam, types.CapabilityCapabilityNamedIam}
}

func (w Wanted) tags() (list []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(w.Tags)) {
		list = append(list, types.Tag{Key: aws.String(k), Value: aws.String(w.Tags[k])})
	}
	return list
}

func (s *Stack) create(ctx context.Context, w Wanted) error {
	out, err := s.cfn.CreateStack(ctx, &cfn.CreateStackInput{
		StackName: &s.Name, TemplateBody: &w.Template, Capabilities: capabilities(), Tags: w.tags(), ClientRequestToken: s.newToken(),
	})
	id := ""
	if err != nil {
		// The answer to a request that got through may have been lost.
		if id = s.ours(ctx); id == "" {
			if cloud.Is(err, "AlreadyExistsException") {
				return errAgain
			}
			return s.unsent("create", err)
		}
	} else {
		id = aws.ToString(out.StackId)
	}
	return s.await(ctx, "create", id, types.StackStatusCreateComplete)
}

func (s *Stack) update(ctx context.Context, w Wanted, now *types.Stack) (Outcome, error) {
	_, err := s.cfn.UpdateStack(ctx, &cfn.UpdateStackInput{
		StackName: &s.Name, TemplateBody: &w.Template, Capabilities: capabilities(), Tags: w.tags(), ClientRequestToken: s.newToken(),
	})
	switch {
	case unchanged(err):
		return Unchanged, nil
	case err != nil && s.ours(ctx) == "":
		if missing(err) || cloud.Is(err, "ValidationError") && contains(err, "_IN_PROGRESS state and can not be updated") {
			return "", errAgain
		}
		return "", s.unsent("update", err)
	}
	return Updated, s.await(ctx, "update", aws.ToString(now.StackId), types.StackStatusUpdateComplete)
}

// ours returns the ID of the stack if the last operation on it is the one that
// we asked for, and "" otherwise.
func (s *Stack) ours(ctx context.Context) string {
	out, err := s.cfn.DescribeStackEvents(ctx, &cfn.DescribeStackEventsInput{StackName: &s.Name})
	if err != nil {
		return ""
	}
	for _, e := range out.StackEvents {
		if aws.ToString(e.ClientRequestToken) == s.token {
			return aws.ToString(e.StackId)
		}
	}
	return ""
}

// unsent is the error of a request that AWS refused, or that may have got
// lost.
func (s *Stack) unsent(doing string, err error) error {
	if cloud.Rejected(err) || cloud.NotSent(err) {
		return fmt.Errorf("%s stack %s in %s: %w", doing, s.Name, s.Region, err)
	}
	return fmt.Errorf("%s stack %s in %s: whether AWS got the request is not known; run the command again: %w", doing, s.Name, s.Region, err)
}

// await waits until AWS is done with what we asked for.
func (s *Stack) await(ctx context.Context, doing, id string, want types.StackStatus) error {
	now, events, err := s.watch(ctx, id, s.token)
	switch {
	case err != nil:
		return &LeftAloneError{s.Name, s.Region, doing, err}
	case now == nil:
		return &FailedError{Name: s.Name, Region: s.Region, Doing: doing, Status: types.StackStatusDeleteComplete, Reason: "somebody deleted the stack", Causes: rootCauses(events)}
	case now.StackStatus == want:
		return nil
	}
	return &FailedError{Name: s.Name, Region: s.Region, Doing: doing, Status: now.StackStatus, Reason: aws.ToString(now.StackStatusReason), Causes: rootCauses(events)}
}
