package graph

import (
	"context"
	"errors"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// pause waits before the next read. It fails when the resource has taken too long.
func (a *attempt) pause(ctx context.Context, awaited error) error {
	clock := a.x.Cloud.Clock
	if limit := a.timeout(); a.elapsed() > limit {
		return a.giveUp(ctx, limit.Abs(), awaited)
	}
	if err := a.stuck(ctx); err != nil {
		return err
	}
	if repeats := a.repeats.Load(); awaited.Error() != a.awaited || repeats != a.shown {
		a.awaited, a.shown = awaited.Error(), repeats
		e := plan.Event{Resource: a.id, What: plan.Waiting, Detail: a.awaited, Took: clock.Since(a.began), Expected: a.expected()}
		if s := a.state(); s != nil {
			e.CloudID = s.CloudID()
		}
		a.x.emit(e)
	}
	return clock.Sleep(ctx, a.next(clock.Now()))
}

// elapsed returns how much of its time limit the resource has used. The time in which AWS throttles
// the run does not count: calls of any resource may then be late, also those that several share.
func (a *attempt) elapsed() time.Duration {
	return a.x.Cloud.Clock.Since(latest(a.began, a.stepped)) - (a.x.Cloud.Late() - a.late)
}

// stuckAfter is how long a deletion waits for what uses a resource before the run looks for
// what prevents it, and how long it waits before it looks again.
const stuckAfter = 3 * time.Minute

// stuck returns the error of Executor.Stuck if it is time to call it.
func (a *attempt) stuck(ctx context.Context) error {
	clock := a.x.Cloud.Clock
	if a.x.Stuck == nil || a.announced != plan.Deleting || clock.Since(a.began) < max(stuckAfter, 2*a.expected()) {
		return nil
	}
	if !a.x.looking.TryLock() { // another resource looks
		return nil
	}
	defer a.x.looking.Unlock()
	if clock.Since(a.x.looked) < stuckAfter {
		return nil
	}
	err := a.x.Stuck(ctx)
	if err == nil {
		a.x.looked = clock.Now()
	}
	return err
}

// diagnoses is the number of resources of a run that are diagnosed: a hundred machines
// that miss the same route have the same cause.
const diagnoses = 3

// diagnosing is the time limit of one diagnosis.
const diagnosing = 2 * time.Minute

// giveUp returns the error of a resource that did not become ready in time, with the
// findings of its diagnosis.
func (a *attempt) giveUp(ctx context.Context, after time.Duration, awaited error) *plan.TimeoutError {
	err := &plan.TimeoutError{After: after, Awaited: awaited}
	err.Findings, err.Command = a.diagnose(ctx)
	return err
}

// diagnose looks for the causes of what has happened to the resource.
func (a *attempt) diagnose(ctx context.Context) (findings []string, command string) {
	if a.diagnosis == nil || a.x.diagnosed.Add(1) > diagnoses {
		return nil, ""
	}
	ctx, cancel := a.x.Cloud.Clock.WithTimeout(context.WithoutCancel(ctx), diagnosing, nil)
	defer cancel()
	return a.diagnosis(cloud.Live(cloud.ReadOnly(ctx)), a.x.Cloud)
}

// outOfTime reports a wait that was cut off by the run's timeout as a timeout of that
// wait. A run that the user stopped ends without a diagnosis.
func (a *attempt) outOfTime(ctx context.Context, err error) error {
	if a.diagnosis == nil || err == nil || a.awaited == "" || !cloud.TimedOut(ctx) {
		return err
	}
	end := a.giveUp(ctx, a.x.Cloud.Clock.Since(a.began).Round(100*time.Millisecond), errors.New(a.awaited))
	end.Cause = context.Cause(ctx)
	return end
}

// expected returns how long AWS usually takes for the last write.
func (a *attempt) expected() time.Duration {
	create, remove := a.Takes()
	switch {
	case a.acted.IsZero():
		return 0
	case a.deleted:
		return remove
	case a.replaced: // the update has deleted it, and it was created since
		return create
	case a.updated.OnlyTags():
		return 0
	case len(a.updated) > 0:
		if u, is := a.Desired().(UpdateTimed); is {
			return u.UpdateTakes(a.updated)
		}
	}
	return create
}

// next returns how long to wait before the next read. The first read comes when AWS is
// expected to have finished. The interval then grows from one second to five. All reads
// are at whole multiples of the interval, so that resources of one kind read at the same
// time and share the call.
func (a *attempt) next(now time.Time) time.Duration {
	a.polls++
	if usual := a.expected(); a.polls == 1 && usual > 0 {
		if left := usual - now.Sub(a.acted); left > 0 {
			return now.Add(left).Truncate(time.Second).Add(time.Second).Sub(now)
		}
	}
	step := min(time.Duration(a.polls)*time.Second, 5*time.Second) << a.throttled()
	if a.blind { // repeated writes count against a lower rate limit than reads
		step = min(2*step, 10*time.Second)
	}
	return now.Add(step).Truncate(step).Sub(now)
}

// maxSlowed is how often the interval between two reads is doubled at most.
const maxSlowed = 3

// throttled returns how often the interval between two reads is doubled. The number grows by one if
// AWS has throttled the run since the last read, and shrinks by one if it has not. All runs of an
// account share its limits: a run that waits leaves them to those that write.
func (a *attempt) throttled() int {
	late := a.x.Cloud.Late()
	if late > a.lateThen {
		a.slowed = min(a.slowed+1, maxSlowed)
	} else {
		a.slowed = max(a.slowed-1, 0)
	}
	a.lateThen = late
	return a.slowed
}

// timeout returns how long the resource may take.
func (a *attempt) timeout() time.Duration {
	if a.x.Timeout > 0 {
		return a.x.Timeout
	}
	for _, x := range []any{a.state(), a.Desired()} {
		if l, ok := x.(TimeLimited); ok && l.TimeLimit() != 0 {
			return l.TimeLimit()
		}
	}
	create, remove := a.Takes()
	return max(15*time.Minute, 5*create, 5*remove)
}
