package plan

import "time"

// Event is something that happened to one resource during a run.
type Event struct {
	Resource ID
	What     What
	CloudID  string        // once it is known
	Detail   string        // what the run waits for, or which resource blocks this one
	Err      error         // of a Failed event
	Took     time.Duration // since the work on the resource began
	Expected time.Duration // how long AWS usually takes; 0 for no noticeable time
	At       time.Time
}

// What is the type of an event.
type What string

// The types of events. The events of every resource end with one of the last
// four.
const (
	Creating What = "creating"
	Updating What = "updating"
	Deleting What = "deleting"
	Waiting  What = "waiting"
	Done     What = "done"    // created or changed, or deleted
	Kept     What = "kept"    // there was nothing to do
	Failed   What = "failed"  //
	Blocked  What = "blocked" // not begun: a resource that it needs failed, or the run was stopped
)
