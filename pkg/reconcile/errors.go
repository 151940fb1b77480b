package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
)

// RefusedError says that nothing was written, and why: conflicts, a missing
// permission, a quota, a lock that another run holds.
type RefusedError struct{ Reasons []error }

func (e *RefusedError) Error() string { return errors.Join(e.Reasons...).Error() }

// Unwrap returns the reasons.
func (e *RefusedError) Unwrap() []error { return e.Reasons }

// refusalFor returns a RefusedError with the reasons; nil if there are none.
func refusalFor(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	e := &RefusedError{}
	for _, reason := range reasons {
		e.Reasons = append(e.Reasons, errors.New(reason))
	}
	return e
}

// HalfwayError says that a run stopped after its first write. The next run continues.
type HalfwayError struct{ Err error }

func (e *HalfwayError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *HalfwayError) Unwrap() error { return e.Err }

// LeftoverError lists the resources that a deletion has left behind.
type LeftoverError struct {
	Left []string
	Err  error // why they cannot be deleted; nil if that is not known
}

// Unwrap returns why the resources cannot be deleted.
func (e *LeftoverError) Unwrap() error { return e.Err }

func (e *LeftoverError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("%d resources are left: %s", len(e.Left), strings.Join(e.Left, ", "))
}

// ForeignError lists the resources of other owners because of which AWS would not delete
// the VPC or the security groups of a cluster.
type ForeignError struct{ Resources []ForeignResource }

// ForeignResource is a resource of another owner.
type ForeignResource struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	In    string `json:"in"`              // the VPC or security group of the cluster that it is in
	Owner string `json:"owner,omitempty"` // what AWS says about the owner: "cluster b", "CloudFormation stack web"
	Show  string `json:"show,omitempty"`  // a command that shows it
	// Restore is a command that restores the tags that it may have lost; "" if it has
	// those of another owner.
	Restore string `json:"restore,omitempty"`
}

func (e *ForeignError) Error() string {
	text := "these resources are not the cluster's, and AWS does not delete what they are in; delete or move them, and run it again:"
	for _, r := range e.Resources {
		text += "\n  " + r.String()
	}
	return text
}

// String formats the resource for messages.
func (r ForeignResource) String() string { return teardown.Foreign(r).String() }

// ErrDeclined says that Options.Confirm answered no.
var ErrDeclined = errors.New("not confirmed; nothing was changed")

// ResourceError says which resource failed, its origin, and why.
type ResourceError struct {
	Resource ID
	Origin   string // the part of the manifest it comes from; "" for none
	Err      error
}

func (e *ResourceError) Error() string {
	if e.Origin == "" {
		return fmt.Sprintf("%s: %v", e.Resource, e.Err)
	}
	return fmt.Sprintf("%s (%s): %v", e.Resource, e.Origin, e.Err)
}

// Unwrap returns the cause.
func (e *ResourceError) Unwrap() error { return e.Err }

// ConflictError says that a resource differs from the manifest in a field that
// cannot be changed.
type ConflictError struct{ Change Change }

func (e *ConflictError) Error() string {
	text := "cannot change " + e.Change.String()
	if e.Change.Advice != "" {
		text += ": " + e.Change.Advice
	}
	return text
}

// TimeoutError says that a wait took too long, and the possible causes.
type TimeoutError struct {
	After    time.Duration
	Awaited  error    // what the run waited for
	Cause    error    // why the context of the run ended; nil if the resource took too long
	Findings []string // possible causes, the most likely first; each may have several lines
	Command  string   // a command line that shows more; "" for none

	text string
}

func (e *TimeoutError) Error() string {
	return cmp.Or(e.text, fmt.Sprintf("gave up after %s waiting for %v", e.After, e.Awaited))
}

// Unwrap returns what the run waited for.
func (e *TimeoutError) Unwrap() error { return e.Awaited }

// LockedError says that another run works on the cluster.
type LockedError struct {
	Owner   string // Target.Owner of that run
	Command string // "create" or "delete"
	Since   time.Time

	text string
}

func (e *LockedError) Error() string { return e.text }

// public returns an error whose engine errors are replaced by their public types. Its
// text is the same.
//
//nolint:errorlint // it visits every error of the tree itself
func public(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *graph.ResourceError:
		return &ResourceError{ID(e.Resource), e.Origin, public(e.Err)}
	case *graph.ConflictError:
		return &ConflictError{changeOf(e.Change)}
	case *graph.GaveUpError:
		return &TimeoutError{e.After, public(e.Awaited), e.Cause, e.Findings, e.Look, e.Error()}
	case *cloud.LockedError:
		return &LockedError{e.Holder.Who, e.Holder.Command, e.Holder.Since, e.Error()}
	case *RefusedError:
		return &RefusedError{publicAll(e.Reasons)}
	case *LeftoverError:
		return &LeftoverError{e.Left, public(e.Err)}
	case *HalfwayError:
		return &HalfwayError{public(e.Err)}
	}
	if !errors.As(err, new(*graph.ResourceError)) && !errors.As(err, new(*graph.ConflictError)) &&
		!errors.As(err, new(*graph.GaveUpError)) && !errors.As(err, new(*cloud.LockedError)) {
		return err
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return &wrappedError{err.Error(), publicAll(e.Unwrap())}
	case interface{ Unwrap() error }:
		return &wrappedError{err.Error(), []error{public(e.Unwrap())}}
	}
	return err
}

func publicAll(errs []error) []error {
	out := make([]error, len(errs))
	for i, err := range errs {
		out[i] = public(err)
	}
	return out
}

// wrappedError is an error of the engine that wraps others.
type wrappedError struct {
	text string
	errs []error
}

func (e *wrappedError) Error() string   { return e.text }
func (e *wrappedError) Unwrap() []error { return e.errs }
