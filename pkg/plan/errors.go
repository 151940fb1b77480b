package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RefusedError says that nothing was written, and why: conflicts, a missing
// permission, a quota, a lock that another run holds.
type RefusedError struct{ Reasons []error }

func (e *RefusedError) Error() string { return errors.Join(e.Reasons...).Error() }

// Unwrap returns the reasons.
func (e *RefusedError) Unwrap() []error { return e.Reasons }

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
func (r ForeignResource) String() string {
	text := fmt.Sprintf("%s %s in %s", r.Kind, r.ID, r.In)
	if r.Owner != "" {
		text += " (" + r.Owner + ")"
	}
	if r.Show != "" {
		text += ": " + r.Show
	}
	if r.Restore != "" {
		text += "\n    if it is the cluster's, restore its tags: " + r.Restore
	}
	return text
}

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
	return "cannot change " + e.Change.String() + ": " + cmp.Or(e.Change.Advice, "set the existing value in the manifest again, or create another cluster")
}

// Diagnosed is an error that has the result of a diagnosis: a TimeoutError, or the error of a resource for which AWS reports a failure.
type Diagnosed interface {
	error
	// Diagnosis returns the possible causes, the most likely one first, and a command that shows more, or "". A cause may have
	// several lines.
	Diagnosis() (findings []string, command string)
}

// TimeoutError says that a wait took too long, and the possible causes.
type TimeoutError struct {
	After    time.Duration
	Awaited  error    // what the run waited for
	Cause    error    // why the context of the run ended; nil if the resource took too long
	Findings []string // possible causes, the most likely first; each may have several lines
	Command  string   // a command line that shows more; "" for none
}

func (e *TimeoutError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%v; it waited %s for %v", e.Cause, e.After, e.Awaited)
	}
	return fmt.Sprintf("gave up after %s waiting for %v", e.After, e.Awaited)
}

// Diagnosis implements Diagnosed.
func (e *TimeoutError) Diagnosis() (findings []string, command string) { return e.Findings, e.Command }

// Unwrap returns what the run waited for.
func (e *TimeoutError) Unwrap() error { return e.Awaited }

// LockedError says that another run works on the cluster.
type LockedError struct {
	Owner   string // who runs it
	Command string // "create" or "delete"
	Since   time.Time
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another run holds the lock of this cluster: %s, %s since %s", e.Owner, e.Command, e.Since.UTC().Format(time.RFC3339))
}

// RefusalFor returns a RefusedError with the reasons; nil if there are none.
func RefusalFor(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	e := &RefusedError{}
	for _, reason := range reasons {
		e.Reasons = append(e.Reasons, errors.New(reason))
	}
	return e
}
