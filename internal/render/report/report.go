// Package report makes a page of a run, from the events of the run alone.
package report

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Report has the content of the page of a run. All times are durations since the run began to carry
// out its plan.
type Report struct {
	Verb    string // "create" or "delete"
	Cluster string
	Region  string
	Account string
	Caller  string // ARN
	Profile string
	Program string // version

	Began    time.Time     // when the run began to look at the account
	Planned  bool          // it has begun to carry out a plan
	Expected time.Duration // how long AWS usually takes for the plan
	Took     time.Duration
	Ended    bool // false: the events end before the run
	ExitCode int

	Counts   Counts
	Rows     []Row
	Path     []PathStep // the critical path, in the order of time
	Calls    []render.Calls
	Cost     *plan.Cost // nil: not known
	Warnings []string
	Errors   []string
	Picture  render.Picture

	part string // the name of the run in a page of several; "" in a page of one
}

// Counts counts resources by what the run has done with them.
type Counts struct{ Created, Changed, Deleted, Awaited, Unchanged, Failed, NotStarted, Busy int }

// Row is one line of the timeline: a resource that the run has worked on, or several that differ
// only in name.
type Row struct {
	Name    string // ID, or "machine/md-0/…"
	Count   int
	Area    plan.Area
	Action  plan.Action
	State   render.BoxState
	CloudID string
	Origin  string
	Error   string
	Phases  []Phase // of several resources: those of the one that ended last
	Waited  []Need
	Path    bool // on the critical path
	// First and Last are when the first and the last of several resources ended.
	First, Last time.Duration
}

// Phase is a time in which one thing happened.
type Phase struct {
	Kind     PhaseKind
	From, To time.Duration
	Text     string // what was called, or what AWS was waited for
}

// PhaseKind says what a resource waited for.
type PhaseKind string

// The kinds of phases.
const (
	ForOthers PhaseKind = "others"  // other resources have to be ready first
	Calling   PhaseKind = "calling" // a call is in progress
	ForAWS    PhaseKind = "aws"     // AWS is working
)

// Need is a resource that another one has waited for.
type Need struct {
	Row   int    // index in Rows; -1: not in the timeline, because it was ready
	Name  string // its ID
	Ready time.Duration
	Last  bool // it was ready after all others
}

// PathStep is one resource of the critical path.
type PathStep struct {
	Name     string
	Row      int           // index in Rows
	From, To time.Duration // To: when the next one could begin, or the end
}

// Begins returns the time of the first call for the row, or the begin of its wait for AWS.
func (r Row) Begins() time.Duration {
	for _, p := range r.Phases {
		if p.Kind != ForOthers {
			return p.From
		}
	}
	return r.Ends()
}

// Ends returns the time at which the work on the row ended.
func (r Row) Ends() time.Duration {
	if len(r.Phases) == 0 {
		return 0
	}
	return r.Phases[len(r.Phases)-1].To
}

// Result describes the end of the run in one word.
func (r *Report) Result() string {
	switch {
	case !r.Ended:
		return "not finished"
	case r.ExitCode == 0:
		return "succeeded"
	case r.ExitCode == 130:
		return "interrupted"
	case !r.Planned:
		return "refused"
	}
	return "failed"
}
