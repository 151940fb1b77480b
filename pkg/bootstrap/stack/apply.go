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

// Wanted is the desired state of a stack.
type Wanted struct {
	Template string
	// Tags are the tags of the stack. If there are none, the existing tags are kept.
	Tags map[string]string
	// ReplaceFailed deletes and recreates a stack that AWS does not permit to update.
	ReplaceFailed bool
}

// Outcome is the result of Apply.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
)

// errChanged means that another process has changed the stack in the meantime.
var errChanged = errors.New("another process keeps changing the stack")

// tries is how often Apply starts again after errChanged.
const tries = 5

// Apply creates or updates the stack and waits for the result. If an operation on the
// stack is in progress, possibly of an earlier run, Apply waits for it first.
//
// Its errors are a ConflictError before any change, a StuckError, a FailedError, a
// WaitError, or an error of AWS.
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
		now, err := s.waitIdle(ctx)
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
		if !errors.Is(err, errChanged) {
			return outcome, err
		}
	}
	return "", errChanged
}

// idle returns the stack when no operation on it is in progress.
func (s *Stack) waitIdle(ctx context.Context) (*types.Stack, error) {
	now, err := s.look(ctx, s.Name)
	if err != nil || now == nil || !busy(now.StackStatus) {
		return now, err
	}
	s.o.Note(fmt.Sprintf("stack %s is in %s: waiting for this operation first", s.Name, now.StackStatus))
	if _, _, err = s.watch(ctx, aws.ToString(now.StackId), ""); err != nil {
		return nil, &WaitError{s.Name, s.Region, "wait for", err}
	}
	return s.waitIdle(ctx)
}

// step does what the state of the stack requires.
func (s *Stack) step(ctx context.Context, w Wanted, now *types.Stack) (Outcome, error) {
	switch {
	case now == nil:
		return Created, s.create(ctx, w)
	case stuck(now.StackStatus) && w.ReplaceFailed:
		s.o.Note(fmt.Sprintf("stack %s is in %s: deleting it, to create it again", s.Name, now.StackStatus))
		if err := s.remove(ctx, now); err != nil {
			return "", err
		}
		return "", errChanged
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
		// An earlier request may have arrived, with its answer lost.
		if id = s.ours(ctx); id == "" {
			if cloud.Is(err, "AlreadyExistsException") {
				return errChanged
			}
			return s.requestError("create", err)
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
		if notFound(err) || cloud.Is(err, "ValidationError") && contains(err, "_IN_PROGRESS state and can not be updated") {
			return "", errChanged
		}
		return "", s.requestError("update", err)
	}
	return Updated, s.await(ctx, "update", aws.ToString(now.StackId), types.StackStatusUpdateComplete)
}

// ours returns the ID of the stack if its last operation is the one that this process has
// requested, and "" otherwise.
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

// unsent returns the error for a request that AWS rejected, or whose outcome is unknown.
func (s *Stack) requestError(doing string, err error) error {
	if cloud.Rejected(err) || cloud.NotSent(err) {
		return fmt.Errorf("%s stack %s in %s: %w", doing, s.Name, s.Region, err)
	}
	return fmt.Errorf("%s stack %s in %s: it is unknown whether AWS received the request; run the command again: %w", doing, s.Name, s.Region, err)
}

// await waits for the operation that this process has requested.
func (s *Stack) await(ctx context.Context, doing, id string, want types.StackStatus) error {
	now, events, err := s.watch(ctx, id, s.token)
	switch {
	case err != nil:
		return &WaitError{s.Name, s.Region, doing, err}
	case now == nil:
		return &FailedError{
			Name:   s.Name,
			Region: s.Region,
			Doing:  doing,
			Status: types.StackStatusDeleteComplete,
			Reason: "another process deleted the stack",
			Causes: rootCauses(events),
		}
	case now.StackStatus == want:
		return nil
	}
	return &FailedError{
		Name:   s.Name,
		Region: s.Region,
		Doing:  doing,
		Status: now.StackStatus,
		Reason: aws.ToString(now.StackStatusReason),
		Causes: rootCauses(events),
	}
}
