package graph

import (
	"fmt"
	"time"
)

// Event is one thing that happened to one node.
type Event struct {
	Resource ID
	What     What
	CloudID  string        // what AWS calls the thing, once that is known
	Detail   string        // what is being waited for, or which node blocks; "" when the run was stopped
	Err      error         // of a Failed event
	Took     time.Duration // since work on the node began
	Expected time.Duration // how long AWS usually takes for what goes on; 0 if next to nothing
	At       time.Time
}

// What names the kind of an Event.
type What string

// The kinds of events.
const (
	Creating What = "creating"
	Updating What = "updating"
	Deleting What = "deleting"
	Waiting  What = "waiting"
	Done     What = "done"    // settled after some work, or gone
	Kept     What = "kept"    // there was nothing to do
	Failed   What = "failed"  //
	Blocked  What = "blocked" // a node before this one failed, or the run was stopped
)

// ResourceError says which node failed, where it comes from, and why.
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

// GaveUpError says that something did not come in time, and why that may be.
type GaveUpError struct {
	After    time.Duration
	Awaited  error
	Cause    error    // the end of the whole run's time; nil: the resource took too long
	Findings []string // possible causes with what was seen, the most likely first; each may have several lines
	Look     string   // a command line that shows more; "" for none
}

func (e *GaveUpError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%v, the last %s of it waiting for %v", e.Cause, e.After, e.Awaited)
	}
	return fmt.Sprintf("gave up after %s waiting for %v", e.After, e.Awaited)
}

// Unwrap returns what was being waited for.
func (e *GaveUpError) Unwrap() error { return e.Awaited }

// ConflictError says that a thing differs from what is wanted in a way that
// AWS, or whatever keeps it, does not let us change.
type ConflictError struct{ Change Change }

func (e *ConflictError) Error() string {
	if e.Change.Advice == "" {
		return "cannot change " + e.Change.String()
	}
	return "cannot change " + e.Change.String() + ": " + e.Change.Advice
}

// NotYet wraps an error that time is expected to cure, such as a dependency
// that AWS has not finished removing. The executor tries again.
func NotYet(err error) error { return &notYetError{err} }

// NotShown wraps an error that says that AWS does not know something which may
// have been made a moment ago. The executor tries again for a minute.
func NotShown(err error) error { return &notShownError{err} }

type notShownError struct{ error }

func (e *notShownError) Unwrap() error { return e.error }

type notYetError struct{ error }

func (e *notYetError) Unwrap() error { return e.error }
