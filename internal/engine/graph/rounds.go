package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// mostStrays is how many accepted Updates of a resource may not bring it closer to its desired
// state. The pauses before them add up to more than cloud.ConsistencyDelay, so that reads
// which are older than an Update are not mistaken for its result.
const mostStrays = 5

// mostCreations is how many accepted calls create a resource that AWS never shows.
const mostCreations = 5

// rounds is what an attempt remembers of accepted Updates, to find out whether they bring
// the resource closer to its desired state.
type rounds struct {
	last   plan.Diff   // the differences that the last Update was made for
	seen   []plan.Diff // those of all Updates
	swings []plan.Diff // those of Updates that did not help, without repetitions
	strays int         // number of Updates that did not help
	paused bool        // the pause before the next Update is over
	lasts  time.Duration
}

// progress forgets the last Update if what is left takes less time than before it: the resource
// reaches its desired state in parts.
func (r *rounds) progress(have State) {
	s, is := have.(Lasting)
	if !is {
		return
	}
	if s.Lasts() < r.lasts {
		r.last = nil
	}
	r.lasts = s.Lasts()
}

// stray reports whether the resource is not closer to its desired state than before: it has
// as many differences as before the last Update, or the same as before an earlier one.
func (r *rounds) stray(d plan.Diff) bool {
	return len(r.last) > 0 && (len(d) >= len(r.last) || containsDiff(r.seen, d))
}

func containsDiff(all []plan.Diff, d plan.Diff) bool {
	return slices.ContainsFunc(all, func(x plan.Diff) bool { return slices.Equal(x, d) })
}

// note records an accepted Update.
func (r *rounds) note(d plan.Diff) {
	if r.stray(d) {
		r.strays++
		for _, x := range []plan.Diff{r.last, d} {
			if !containsDiff(r.swings, x) {
				r.swings = append(r.swings, x)
			}
		}
	}
	r.paused, r.last, r.seen = false, d, append(r.seen, d)
}

// pause returns how long to wait before an Update for the differences d: not at all, unless
// the last one did not help, and then twice as long each time.
func (r *rounds) pause(d plan.Diff) time.Duration {
	if r.paused || !r.stray(d) {
		return 0
	}
	r.paused = true
	return 2 * time.Second << r.strays
}

// over returns the error of a resource whose accepted Updates do not converge.
func (r *rounds) over(d plan.Diff) error {
	if r.strays < mostStrays || !r.stray(d) {
		return nil
	}
	return &NotConvergingError{Updates: len(r.seen), Seen: r.swings}
}

// NotConvergingError says that AWS accepts updates of a resource, which is not as desired
// afterwards.
type NotConvergingError struct {
	Updates int           // number of accepted updates
	After   time.Duration // the time since the last one, if it had no effect; otherwise 0
	Seen    []plan.Diff   // the differences before the updates, without repetitions
}

func (e *NotConvergingError) Error() string {
	var states []string
	for _, d := range e.Seen[:min(3, len(e.Seen))] {
		states = append(states, statesOf(d))
	}
	if more := len(e.Seen) - len(states); more > 0 {
		states = append(states, others(more, "state"))
	}
	if e.After > 0 {
		return fmt.Sprintf("does not converge: AWS accepted an update, and %s later the resource still has %s; "+
			"either AWS does not change this, or something else changes it back", e.After, strings.Join(states, " and "))
	}
	return fmt.Sprintf("does not converge: AWS accepted %d updates, and the resource differs again after each: it has %s; "+
		"either two lines of the manifest set the same value, or something else changes it", e.Updates, strings.Join(states, ", then "))
}

// statesOf describes the state in which the differences were seen.
func statesOf(d plan.Diff) string {
	var out []string
	for _, c := range d[:min(3, len(d))] {
		out = append(out, fmt.Sprintf("%s %q instead of %q", c.Field, c.Have, c.Want))
	}
	if more := len(d) - len(out); more > 0 {
		out = append(out, others(more, "difference"))
	}
	return strings.Join(out, ", ")
}

// round pauses before an Update that follows accepted ones, and fails when these do not
// converge.
func (a *attempt) round(ctx context.Context, d plan.Diff) (again bool, err error) {
	if err := a.rounds.over(d); err != nil {
		return false, err
	}
	wait := a.rounds.pause(d)
	if wait == 0 {
		return false, nil
	}
	a.x.emit(
		plan.Event{Resource: a.id, What: plan.Waiting, Detail: "the next update, because it differs again after the last one", Took: a.x.Cloud.Clock.Since(a.began)},
	)
	a.awaited, a.stale = "the effect of the last update", true
	return true, a.x.Cloud.Clock.Sleep(ctx, wait)
}

// unchanged returns the error of a resource that is as it was before an accepted Update: one
// that passes, until AWS has had as long as it ever takes to show the effect. Once the Update has
// ended, reads that are older than its end are the only reason to wait.
func (a *attempt) unchanged(have State, d plan.Diff) error {
	limit := max(noEffect, 5*a.expected())
	if own := a.timeout(); a.x.Timeout > 0 {
		limit = min(limit, own)
	}
	since := a.x.Cloud.Clock.Since(a.acted)
	u, tells := have.(Finishing)
	ended := a.replaced || tells && u.Updated()
	if ended && !within(&a.finished, a.x.Cloud.Clock.Now(), cloud.ConsistencyDelay) || since > limit {
		return &NotConvergingError{Updates: len(a.rounds.seen), After: since.Round(time.Second), Seen: []plan.Diff{d}}
	}
	return NotYet(fmt.Errorf("%s to become %q, is %q", d[0].Field, d[0].Want, d[0].Have))
}

// noEffect is how long an accepted Update may remain without a visible effect. It is more
// than cloud.ConsistencyDelay, and more than EKS takes for a change of its settings.
const noEffect = 5 * time.Minute

// FailedError says that AWS has given up on a resource, or on a change of it.
type FailedError struct {
	Reason   string
	Findings []string // as in plan.TimeoutError
	Command  string
}

func (e *FailedError) Error() string { return "AWS reports " + e.Reason }

// Diagnosis implements plan.Diagnosed.
func (e *FailedError) Diagnosis() (findings []string, command string) { return e.Findings, e.Command }

// failure returns the error of a resource that AWS has given up on while this run waited for
// it. A resource that had failed before is repaired by Update, if its Diff says so.
func (a *attempt) failure(have State) error {
	f, is := have.(Failing)
	if !is || f.Failure() == "" {
		a.alive = a.alive || have != nil
		return nil
	}
	switch reason := f.Failure(); {
	case !a.alive && a.acted.IsZero():
		a.failed = reason
		return nil
	case reason == a.failed && a.x.Cloud.Clock.Since(a.acted) < cloud.ConsistencyDelay: // the read may be older than the repair
		return NotYet(fmt.Errorf("its repair: AWS reports %s", reason))
	default:
		return &FailedError{Reason: reason}
	}
}

// others counts what is not listed: "1 other state", "3 other states".
func others(n int, what string) string {
	if n == 1 {
		return "1 other " + what
	}
	return fmt.Sprintf("%d other %ss", n, what)
}
