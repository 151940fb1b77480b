// Package stack creates, updates and deletes the CloudFormation stack with the IAM
// objects for clusters. It checks for conflicts before it sends a request, reports events
// while it waits, and explains failures.
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

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Stack is a stack in one account and region, whether it exists or not. It is not safe
// for concurrent use.
type Stack struct {
	Name, Region string

	o     Options
	clock *clock.Clock
	cfn   *cfn.Client
	iam   *iam.Client
	token string // of the last request that changed the stack
}

// Options configure how a stack is watched.
type Options struct {
	// Clock is the clock of the account; nil means the system clock.
	Clock Clock
	// Event receives the events of the stack during a wait, each once, in order. May be
	// nil.
	Event func(Event)
	// Progress receives, every 30 seconds, the resources that are in progress. May be
	// nil.
	Progress func(working []Event)
	// Note receives other messages for the user. May be nil.
	Note func(text string)
	// OtherRegions are further regions of the account, to search for the stack that
	// created a conflicting IAM object.
	OtherRegions []aws.Config
}

// Clock replaces the system clock where time runs faster: with an emulator of AWS, or in
// tests.
type Clock interface {
	Now() time.Time
	// Sleep waits for d. If the context ends before, it returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// Event is an event of the stack or of one of its resources.
type Event struct {
	At                      time.Time
	Logical, Type, Physical string
	Status                  types.ResourceStatus
	Reason                  string
	Stack                   bool // an event of the stack itself
}

// Why returns the reason, as given by IAM.
func (e Event) Why() string { return iamMessage(e.Reason) }

// Begins reports whether the event begins an operation on the stack.
func (e Event) Begins() bool {
	switch e.Status { //nolint:exhaustive // the others continue an operation
	case types.ResourceStatusCreateInProgress, types.ResourceStatusUpdateInProgress, types.ResourceStatusDeleteInProgress,
		types.ResourceStatusImportInProgress, types.ResourceStatus(types.StackStatusReviewInProgress):
		return e.Stack
	}
	return false
}

// Failed reports whether the event is a failure.
func (e Event) Failed() bool { return strings.HasSuffix(string(e.Status), "_FAILED") }

// Resource is a resource of the stack.
type Resource struct {
	Logical, Type, Physical string
	Status                  types.ResourceStatus
	Reason                  string
}

// New returns the stack with that name in the region of the configuration.
func New(cfg aws.Config, name string, o Options) *Stack {
	cfg = cfg.Copy()
	if cfg.Retryer == nil {
		cfg.Retryer = func() aws.Retryer {
			return retry.NewStandard(func(r *retry.StandardOptions) {
				r.MaxAttempts = 6
				r.RateLimiter = ratelimit.None // the SDK's limiter counts all retries of a wait and then fails
				r.Retryables = append(
					r.Retryables,
					retry.RetryableErrorCode{Codes: map[string]struct{}{"InternalError": {}, "InternalFailure": {}, "ServiceUnavailable": {}}},
				)
			})
		}
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	if o.Progress == nil {
		o.Progress = func([]Event) {}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	return &Stack{
		Name:   name,
		Region: cfg.Region,
		o:      o,
		clock:  clock.Of(o.Clock),
		cfn:    cfn.NewFromConfig(awshttp.Checked(cfg)),
		iam:    iam.NewFromConfig(awshttp.Checked(cfg)),
	}
}

// newToken returns a client request token, with which AWS recognises a repeated request.
func (s *Stack) newToken() *string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	s.token = "clusterawsadm-" + hex.EncodeToString(b)
	return &s.token
}

// look returns the stack, or nil if it does not exist. A deleted stack can be found by
// its ID.
func (s *Stack) look(ctx context.Context, name string) (*types.Stack, error) {
	out, err := s.cfn.DescribeStacks(ctx, &cfn.DescribeStacksInput{StackName: &name})
	switch {
	case notFound(err):
		return nil, nil // does not exist
	case err != nil:
		return nil, err
	case len(out.Stacks) == 0:
		return nil, nil // does not exist
	}
	return &out.Stacks[0], nil
}

// missing reports whether an error says that a stack does not exist. CloudFormation has
// no error code for that.
func notFound(err error) bool {
	return cloud.Is(err, "ValidationError") && strings.Contains(err.Error(), "does not exist")
}

// busy reports whether an operation on the stack is in progress.
func busy(status types.StackStatus) bool {
	return strings.HasSuffix(string(status), "_IN_PROGRESS") && status != types.StackStatusReviewInProgress
}

// stuck reports whether a stack can neither be updated nor used, only deleted.
func stuck(status types.StackStatus) bool {
	switch status { //nolint:exhaustive // the others can be updated or are in progress
	case types.StackStatusCreateFailed, types.StackStatusRollbackComplete, types.StackStatusRollbackFailed,
		types.StackStatusDeleteFailed, types.StackStatusReviewInProgress:
		return true
	}
	return false
}

// Resources returns the resources of the stack, in the order of AWS.
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

// stopped reports whether the end of the context caused an error.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}
