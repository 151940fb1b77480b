package cloud

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// take creates the record with the highest epoch, and makes sure that no other run has
// done so at the same time.
func (l *Lock) take(ctx context.Context) error {
	var seen sighting
	var unlisted time.Time // since when a record exists that is not listed
	for {
		all, err := l.records.list(ctx)
		if err != nil {
			return err
		}
		top, err := l.newest(ctx, highest(all))
		if err != nil {
			return err
		}
		if waited, err := l.waitForExpiry(ctx, top, &seen); err != nil {
			return err
		} else if waited {
			unlisted = time.Time{}
			continue
		}
		taken, err := l.succeed(ctx, top)
		if err != nil {
			return err
		}
		if taken {
			return l.settle(ctx, all)
		}
		// Another run has written since. A listing has to show it before this run goes on.
		if unlisted.IsZero() {
			unlisted = l.clock.Now()
		}
		if l.elapsed(unlisted) > ConsistencyDelay {
			return fmt.Errorf("record %d exists, but is not listed", l.self.Epoch)
		}
		if err := l.clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// newest returns the last record that the run of top has sent. The last version of a parameter is
// the last one that arrived, and requests may overtake each other. Versions up to top.After were
// sent before top, so only the ones between are read. Version and age stay those of top.
func (l *Lock) newest(ctx context.Context, top *Holder) (*Holder, error) {
	if top == nil || top.After == 0 { // nothing, or the first version
		return top, nil
	}
	last := *top
	for v := top.After + 1; v < top.version; v++ {
		h, err := l.read(ctx, top.Epoch, v)
		if err != nil {
			return nil, err
		}
		if h.Run == top.Run && h.Beats > last.Beats {
			last = h
		}
	}
	last.version, last.age = top.version, top.age
	return &last, nil
}

// sighting is a record, and since when the run has seen it unchanged.
type sighting struct {
	Holder
	since time.Time
	told  bool // the user knows that requests of the run have to expire
}

// waitForExpiry waits if the record with the highest epoch is still valid, and reports
// whether it did: slightly longer than the heartbeat interval at most, so that the next
// listing shows a new heartbeat of a live run. The time since the first sighting counts,
// too: the clock may have been set back since a file was written.
func (l *Lock) waitForExpiry(ctx context.Context, top *Holder, seen *sighting) (waited bool, err error) {
	if top == nil {
		return false, nil
	}
	if top.isAlive(seen.Holder) {
		return false, lockedBy(*top)
	}
	if seen.Epoch != top.Epoch || seen.version != top.version {
		*seen = sighting{Holder: *top, since: l.clock.Now()}
	}
	age := max(top.age, l.clock.Since(seen.since))
	left, told := top.validFor(l.delay)-age, *top
	if late := top.Late - age; late > left && l.self.Command != DeleteCommand {
		left = late
	} else {
		told.Late = 0
	}
	if left <= 0 {
		return false, nil
	}
	if l.waiting != nil && (told.Late == 0 || !seen.told) {
		l.waiting(told, left)
		seen.told = told.Late > 0
	}
	return true, l.clock.Sleep(ctx, min(left, heartbeatInterval+time.Second))
}

// isAlive reports whether the run of a record has sent a heartbeat since the last listing.
func (h Holder) isAlive(last Holder) bool {
	return last.Run == h.Run && last.Beats != h.Beats && !h.Released
}

// validFor is how long a record is valid after its last heartbeat. A run that has ended
// has sent no call since then; if AWS has answered all of them, there is nothing to wait
// for, even if the age of the record is negative because clocks differ.
func (h Holder) validFor(consistencyDelay time.Duration) time.Duration {
	switch {
	case h.Released && !h.Unknown:
		return -consistencyDelay
	case h.Released:
		return consistencyDelay
	}
	return consistencyDelay + h.interval()
}

// interval is the time between two heartbeats of the run.
func (h Holder) interval() time.Duration { return max(h.Every, heartbeatInterval) }

// interval is the time after the next heartbeat until the one that follows it.
func (l *Lock) interval() time.Duration {
	return Holder{Every: time.Duration(l.every.Load())}.interval()
}

// succeed creates the record of the epoch after top. It fails if another run has written
// since the listing that shows top.
func (l *Lock) succeed(ctx context.Context, top *Holder) (taken bool, err error) {
	l.self.Epoch, l.before = 1, top
	if top != nil {
		l.self.Epoch, l.self.Manager, l.self.Stopped, l.self.Worked = top.Epoch+1, top.Manager, top.Stopped, top.Worked
		l.inherit(*top)
	}
	if top != nil && top.Run != l.self.Run {
		l.begun = top.Plan
	}
	if top != nil && !top.Released {
		if expired, err := l.revoke(ctx, *top); err != nil || !expired {
			return false, err
		}
		l.before = &Holder{Epoch: top.Epoch, Run: l.self.Run, age: top.age}
	}
	began := l.clock.Now()
	err = l.repeat(ctx, func() (err error) {
		taken, err = l.create(ctx, began)
		return err
	})
	return taken, err
}

// revoke overwrites the record of a run that has sent no heartbeat. The version says
// whether that is true: the listing may be older than a heartbeat.
func (l *Lock) revoke(ctx context.Context, top Holder) (expired bool, err error) {
	err = l.repeat(ctx, func() error {
		w, err := l.write(ctx, top.Epoch)
		if err == nil {
			expired, err = l.wrote(ctx, top.Epoch, top.version+1, w.version)
		}
		return err
	})
	return expired, err
}

// create creates the record of this run. If it exists, an earlier request of this run may
// have created it, at any time since the first of them.
func (l *Lock) create(ctx context.Context, began time.Time) (created bool, err error) {
	h := l.next(l.self.Epoch)
	exists, err := l.records.create(ctx, h)
	if err == nil && exists {
		h, err = l.records.read(ctx, l.self.Epoch, 1)
	}
	if err != nil || h.Run != l.self.Run {
		return false, err
	}
	l.last = written{1, h.Beats, began, h.Late, h.interval()}
	l.proven = l.last
	return true, nil
}

// settle waits until a listing shows the new record and the one before, and deletes older
// ones.
//
// The one before remains, so that every listing shows a record of an epoch that a run with
// an old listing may try to create. If it is not listed any more, another run has deleted
// the cluster since, and yet another one may have created its record after that.
func (l *Lock) settle(ctx context.Context, all []Holder) error {
	l.earlier = all
	if err := l.check(ctx); err != nil {
		return err
	}
	if l.before == nil || l.before.age < ConsistencyDelay {
		return nil
	}
	l.earlier = []Holder{*l.before}
	return l.remove(ctx, slices.DeleteFunc(all, func(h Holder) bool { return h.Epoch == l.before.Epoch }))
}
