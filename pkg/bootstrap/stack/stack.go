// Package stack makes, changes and deletes the CloudFormation stack of the IAM
// objects that clusters need. It says beforehand what AWS would refuse, tells
// what goes on while AWS works, and why something failed.
package stack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Stack is a stack of an account, in one region, whether it exists or not. It
// serves one caller at a time.
type Stack struct {
	Name, Region string

	o     Options
	clock *clock.Clock
	cfn   *cfn.Client
	iam   *iam.Client
	token string // of the last request that changed the stack
}

// Options say how a stack is watched.
type Options struct {
	// Clock is the account's; nil: the machine's own.
	Clock Clock
	// Event is told of what happens to the stack while it is waited for, each
	// thing once, in order. May be nil.
	Event func(Event)
	// Still is told every half a minute what is waited for. May be nil.
	Still func(working []Event)
	// Note is told everything else that a user wants to know. May be nil.
	Note func(text string)
	// Elsewhere are other regions of the account, where the stack is looked for
	// that made an IAM object which stands in the way.
	Elsewhere []aws.Config
}

// Clock tells the time and waits, where time runs faster than the machine's: for
// an emulator of AWS, or in tests.
type Clock interface {
	Now() time.Time
	// Sleep waits for d, or until the context ends, whose cause it returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Event is something that happened to the stack or to one of its resources.
type Event struct {
	At                      time.Time
	Logical, Type, Physical string
	Status                  types.ResourceStatus
	Reason                  string
	Stack                   bool // it happened to the stack itself
}

// Why is the reason, as IAM gave it.
func (e Event) Why() string { return said(e.Reason) }

// Begins reports whether an operation on the stack begins with it.
func (e Event) Begins() bool {
	switch e.Status { //nolint:exhaustive // the others go on with one
	case types.ResourceStatusCreateInProgress, types.ResourceStatusUpdateInProgress, types.ResourceStatusDeleteInProgress,
		types.ResourceStatusImportInProgress, types.ResourceStatus(types.StackStatusReviewInProgress):
		return e.Stack
	}
	return false
}

// Failed reports whether it is a failure.
func (e Event) Failed() bool { return strings.HasSuffix(string(e.Status), "_FAILED") }

// Resource is a resource of the stack.
type Resource struct {
	Logical, Type, Physical string
	Status                  types.ResourceStatus
	Reason                  string
}

// New returns the stack of that name in the configuration's region.
func New(cfg aws.Config, name string, o Options) *Stack {
	cfg = cfg.Copy()
	if cfg.Retryer == nil {
		cfg.Retryer = func() aws.Retryer {
			return retry.NewStandard(func(r *retry.StandardOptions) {
				r.MaxAttempts = 6
				r.RateLimiter = ratelimit.None // the SDK's counts retries over the whole of a wait, and then gives up
				r.Retryables = append(r.Retryables, retry.RetryableErrorCode{Codes: map[string]struct{}{"InternalError": {}, "InternalFailure": {}, "ServiceUnavailable": {}}})
			})
		}
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	if o.Still == nil {
		o.Still = func([]Event) {}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	return &Stack{Name: name, Region: cfg.Region, o: o, clock: clock.Of(o.Clock), cfn: cfn.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg)}
}

// newToken makes the token of one request: AWS takes a request that comes
// again with it for the same one.
func (s *Stack) newToken() *string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	s.token = "clusterawsadm-" + hex.EncodeToString(b)
	return &s.token
}

// look returns the stack as it is, or nil when there is none. The name may
// also be an ID: a stack that is gone is found by it.
func (s *Stack) look(ctx context.Context, name string) (*types.Stack, error) {
	out, err := s.cfn.DescribeStacks(ctx, &cfn.DescribeStacksInput{StackName: &name})
	switch {
	case missing(err):
		return nil, nil // there is none
	case err != nil:
		return nil, err
	case len(out.Stacks) == 0:
		return nil, nil // there is none
	}
	return &out.Stacks[0], nil
}

// missing reports whether an error says that there is no such stack:
// CloudFormation has no code of its own for it.
func missing(err error) bool {
	return cloud.Is(err, "ValidationError") && strings.Contains(err.Error(), "does not exist")
}

// busy reports whether somebody is at work on a stack.
func busy(status types.StackStatus) bool {
	return strings.HasSuffix(string(status), "_IN_PROGRESS") && status != types.StackStatusReviewInProgress
}

// stuck reports whether a stack can be neither updated nor used: all that can
// be done with it is to delete it.
func stuck(status types.StackStatus) bool {
	switch status { //nolint:exhaustive // the others can be updated, or are at work
	case types.StackStatusCreateFailed, types.StackStatusRollbackComplete, types.StackStatusRollbackFailed,
		types.StackStatusDeleteFailed, types.StackStatusReviewInProgress:
		return true
	}
	return false
}

// Resources lists what the stack consists of, in AWS's order.
func (s *Stack) Resources(ctx context.Context) (all []Resource, err error) {
	out, err := s.cfn.DescribeStackResources(ctx, &cfn.DescribeStackResourcesInput{StackName: &s.Name})
	if err != nil {
		return nil, err
	}
	for _, r := range out.StackResources {
		all = append(all, Resource{
			Logical: aws.ToString(r.LogicalResourceId), Type: aws.ToString(r.ResourceType), Physical: aws.ToString(r.PhysicalResourceId),
			Status: r.ResourceStatus, Reason: aws.ToString(r.ResourceStatusReason),
		})
	}
	return all, nil
}

// stopped reports whether an error came of the end of the context.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}
