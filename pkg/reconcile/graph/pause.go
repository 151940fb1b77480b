package graph

import (
	"context"
	"fmt"
	"time"
)

// pause waits before the next look, and fails when patience has run out.
func (a *attempt) pause(ctx context.Context, awaited error) error {
	clock := a.x.Cloud.Clock
	if limit := a.patience(); clock.Since(a.began) > limit {
		return fmt.Errorf("gave up after %s waiting for %w", limit, awaited)
	}
	if awaited.Error() != a.awaited {
		a.awaited = awaited.Error()
		e := Event{Node: a.id, What: Waiting, Detail: a.awaited, Took: clock.Since(a.began), Expected: a.expected()}
		if s := a.state(); s != nil {
			e.CloudID = s.CloudID()
		}
		a.x.emit(e)
	}
	return clock.Sleep(ctx, a.next(clock.Now()))
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

// patience is how long the node may take.
func (a *attempt) patience() time.Duration {
	if a.x.Patience > 0 {
		return a.x.Patience
	}
	if p, ok := a.Resource().(Patient); ok {
		return p.Patience()
	}
	create, remove := a.Takes()
	return max(15*time.Minute, 5*create, 5*remove)
}
