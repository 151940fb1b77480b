package graph

import (
	"fmt"
	"time"
)

// Event is something that happened to one resource.
type Event struct {
	Resource ID
	What     What
	CloudID  string        // once it is known
	Detail   string        // what the run waits for, or which resource blocks this one; "" when the run was stopped
	Err      error         // of a Failed event
	Took     time.Duration // since the work on the resource began
	Expected time.Duration // how long AWS usually takes; 0 for no noticeable time
	At       time.Time
}

// What is the type of an Event.
type What string

// The types of events.
const (
	Creating What = "creating"
	Updating What = "updating"
	Deleting What = "deleting"
	Waiting  What = "waiting"
	Done     What = "done"    // settled after a change, or deleted
	Kept     What = "kept"    // nothing had to be changed
	Failed   What = "failed"  //
	Blocked  What = "blocked" // a resource before this one failed, or the run was stopped
)

// ResourceError says which resource failed, its origin, and why.
type ResourceError struct {
	Resource ID
	Origin   string
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

// GaveUpError says that a resource did not become ready in time, and the possible causes.
type GaveUpError struct {
	After    time.Duration
	Awaited  error
	Cause    error    // the timeout of the run; nil: the timeout of the resource
	Findings []string // possible causes, the most likely first; each may have several lines
	Look     string   // a command line that shows more; "" for none
}

func (e *GaveUpError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%v; it waited %s for %v", e.Cause, e.After, e.Awaited)
	}
	return fmt.Sprintf("gave up after %s waiting for %v", e.After, e.Awaited)
}

// Unwrap returns the error that the run waited for.
func (e *GaveUpError) Unwrap() error { return e.Awaited }

// ConflictError says that a resource has a difference that AWS does not permit to change.
type ConflictError struct{ Change Change }

func (e *ConflictError) Error() string {
	if e.Change.Advice == "" {
		return "cannot change " + e.Change.String()
	}
	return "cannot change " + e.Change.String() + ": " + e.Change.Advice
}

// NotYet wraps an error that is expected to disappear with time, such as a dependency
// that AWS is still deleting. The executor tries again.
func NotYet(err error) error { return &notYetError{err} }

type notYetError struct{ error }

func (e *notYetError) Unwrap() error { return e.error }
