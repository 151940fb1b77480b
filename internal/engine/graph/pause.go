package graph

import (
	"context"
	"errors"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// pause waits before the next look, and fails when that takes too long.
func (a *attempt) pause(ctx context.Context, awaited error) error {
	clock := a.x.Cloud.Clock
	if limit := a.timeout(); clock.Since(a.began) > limit {
		return a.giveUp(ctx, limit, awaited)
	}
	if awaited.Error() != a.awaited {
		a.awaited = awaited.Error()
		e := Event{Resource: a.id, What: Waiting, Detail: a.awaited, Took: clock.Since(a.began), Expected: a.expected()}
		if s := a.state(); s != nil {
			e.CloudID = s.CloudID()
		}
		a.x.emit(e)
	}
	return clock.Sleep(ctx, a.next(clock.Now()))
}

// diagnoses is how many nodes of a run say why they may not have come: a
// hundred machines that miss the same route tell no more.
const diagnoses = 3

// diagnosing is how long the search for causes may take.
const diagnosing = 2 * time.Minute

// giveUp says that the node did not come in time, and why that may be.
func (a *attempt) giveUp(ctx context.Context, after time.Duration, awaited error) *GaveUpError {
	err := &GaveUpError{After: after, Awaited: awaited}
	if a.diagnosis != nil && a.x.diagnosed.Add(1) <= diagnoses {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosing)
		defer cancel()
		err.Findings, err.Look = a.diagnosis(cloud.Live(cloud.ReadOnly(ctx)), a.x.Cloud)
	}
	return err
}

// outOfTime has a wait that the end of the run's time cut short end as one
// that gave up by itself. A run that the user stopped just stops. The time of a
// run is the machine's, however fast its account lives.
func (a *attempt) outOfTime(ctx context.Context, err error) error {
	if a.diagnosis == nil || err == nil || a.awaited == "" || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	clock := a.x.Cloud.Clock
	end := a.giveUp(ctx, clock.Real(clock.Since(a.began)).Round(100*time.Millisecond), errors.New(a.awaited))
	end.Cause = context.Cause(ctx)
	return end
}

// expected is how long AWS usually takes for what was last asked of it.
func (a *attempt) expected() time.Duration {
	create, remove := a.Takes()
	switch {
	case a.acted.IsZero():
		return 0
	case a.deleted:
		return remove
	}
	return create
}

// next returns how long to wait for the next look. The first comes when AWS
// can be expected to be done; from then on they come a second apart at first
// and five in the end. All come on whole steps of the clock, so that nodes of
// one kind look together and share the call.
func (a *attempt) next(now time.Time) time.Duration {
	a.polls++
	if usual := a.expected(); a.polls == 1 && usual > 0 {
		if left := usual - now.Sub(a.acted); left > 0 {
			return now.Add(left).Truncate(time.Second).Add(time.Second).Sub(now)
		}
	}
	step := min(time.Duration(a.polls)*time.Second, 5*time.Second)
	if a.blind { // a refused move counts against the pace of writes
		step = min(2*step, 10*time.Second)
	}
	return now.Add(step).Truncate(step).Sub(now)
}

// timeout is how long the resource may take.
func (a *attempt) timeout() time.Duration {
	if a.x.Timeout > 0 {
		return a.x.Timeout
	}
	for _, x := range []any{a.state(), a.Desired()} {
		if l, ok := x.(TimeLimited); ok && l.TimeLimit() > 0 {
			return l.TimeLimit()
		}
	}
	create, remove := a.Takes()
	return max(15*time.Minute, 5*create, 5*remove)
}
