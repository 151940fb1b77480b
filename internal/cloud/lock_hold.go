package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// sendHeartbeats sends heartbeats until the lock is released or lost. A heartbeat that
// fails is tried again.
func (l *Lock) sendHeartbeats(ctx context.Context) {
	defer close(l.stopped)
	wait := heartbeatInterval
	for l.clock.Sleep(ctx, wait) == nil {
		wait = heartbeatInterval // after a heartbeat that failed
		err := l.keep(ctx, l.dueHeartbeat, func() {
			if left := l.last.every - l.elapsed(l.last.sent); left > 0 {
				wait = left
			}
		})
		if errors.Is(err, ErrLockLost) {
			return
		}
	}
}

// check returns ErrLockLost if another run has taken over the lock. It sends a heartbeat if
// the last one is too old, and lists the records if the last listing is too old, and so is the last
// heartbeat or nothing has been written since before it. It lists the records before a heartbeat
// that is late: the process may have been suspended, and the record may belong to another run.
func (l *Lock) check(ctx context.Context) error { return l.keep(ctx, l.due, func() {}) }

// keep makes the calls that are due, one after the other, and then calls done. Nobody else uses the
// lock meanwhile.
func (l *Lock) keep(ctx context.Context, due func() func(context.Context) error, done func()) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer done()
	ctx = unlocked(ctx)
	err := l.repeat(ctx, func() error {
		for !l.lost {
			do := due()
			if do == nil {
				return nil
			}
			if err := do(ctx); err != nil {
				return err
			}
		}
		return ErrLockLost
	})
	if err != nil && !errors.Is(err, ErrLockLost) {
		err = fmt.Errorf("lock: %w", err)
	}
	return err
}

// due returns the next call that shows whether this run still holds the lock; nil if no call is needed before a write.
func (l *Lock) due() func(context.Context) error {
	if do := l.dueHeartbeat(); do != nil {
		return do
	}
	rested := l.proven.version < l.last.version // heartbeats have been sent since the last write
	switch {
	case l.expired(l.checked, checkValidity) && (rested || l.expired(l.last.sent, checkValidity)):
		return l.look
	case rested:
		return l.prove
	}
	return nil
}

// dueHeartbeat returns the next call for a heartbeat; nil if none is needed at this time.
func (l *Lock) dueHeartbeat() func(context.Context) error {
	late := l.checked.IsZero() || l.expired(l.last.sent, l.last.every+checkValidity)
	switch {
	case late && l.expired(l.checked, checkValidity):
		return l.look
	case l.last.version-l.proven.version >= l.records.kept():
		return l.prove
	case l.expired(l.last.sent, l.last.every) || !l.announced():
		return l.renew
	}
	return nil
}

// repeat repeats a call that may succeed later. A throttled call does not count as a failed attempt, because all runs of
// the account share the limit.
func (l *Lock) repeat(ctx context.Context, call func() error) (err error) {
	began := l.clock.Now()
	for failed := 0; failed < attempts; {
		if err = call(); err == nil || !l.records.transient(err) {
			return err
		}
		if Throttled(err) {
			l.every.Store(int64(throttledInterval))
		}
		if !Throttled(err) || l.elapsed(began) >= throttling {
			failed++
		}
		if err := l.clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return err
}

// elapsed returns the time since t, by the wall clock or by the monotonic clock, whichever
// is longer: the wall clock may be set back, and the monotonic clock may stop while the
// machine is suspended (documentation of package time).
func (l *Lock) elapsed(t time.Time) time.Duration {
	now := l.clock.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// expired reports whether the duration has passed since t. If the wall clock has been set
// back, it may have. After a virtual machine was paused together with its clocks, it has,
// and nothing tells: such a run may write until checkValidity has passed.
func (l *Lock) expired(t time.Time, after time.Duration) bool {
	return l.elapsed(t) >= after || l.clock.Now().Round(0).Before(t.Round(0))
}

// look lists the records. If the listing does not show who holds the lock, look waits, so
// that the next one may.
func (l *Lock) look(ctx context.Context) error {
	asked := l.clock.Now()
	all, err := l.records.list(ctx)
	if err != nil || l.observe(all, asked) {
		return err
	}
	return l.clock.Sleep(ctx, pause)
}

// observe stores what a listing shows of the lock, and reports whether it shows who holds
// it. A listing may be older than the record of this run. A record that remains unlisted
// was deleted: by a run that took the lock over and then deleted the cluster.
func (l *Lock) observe(all []Holder, asked time.Time) bool {
	top := highest(all)
	switch {
	case top != nil && top.Run == l.self.Run && (!l.checked.IsZero() || l.follows(all)):
		l.checked, l.unlisted = asked, time.Time{}
	case top != nil && top.Run != l.self.Run && top.Epoch >= l.self.Epoch:
		l.lost = true
	case l.unlisted.IsZero():
		l.unlisted = asked
		return false
	case l.elapsed(l.unlisted) < ConsistencyDelay:
		return false
	default:
		l.lost = true
	}
	return true
}

// follows reports whether a listing shows the record before that of this run.
func (l *Lock) follows(all []Holder) bool {
	return l.before == nil || slices.ContainsFunc(all, func(h Holder) bool { return h.Epoch == l.before.Epoch && h.Run == l.before.Run })
}

// renew sends a heartbeat. If another run has written the record since the last one, the
// lock is lost.
func (l *Lock) renew(ctx context.Context) error {
	w, err := l.write(ctx, l.self.Epoch)
	if err != nil {
		return err
	}
	mine := w.version > l.last.version // or the record was deleted, and this heartbeat has created it again
	if mine && w.version > l.last.version+1 {
		mine, err = l.wrote(ctx, l.self.Epoch, l.last.version+1, w.version)
	}
	if err != nil {
		return err
	}
	l.lost, l.last = !mine, w
	return nil
}

// prove makes sure that no other run has deleted the record since the last proof. If a run has deleted the cluster, and
// another one has created a record with the same epoch, the versions of this run's heartbeats may continue those of
// that record. prove reads the version that was the last one at the last proof: it is this run's if the record is.
func (l *Lock) prove(ctx context.Context) error {
	h, err := l.read(ctx, l.self.Epoch, l.proven.version)
	if err != nil {
		return err
	}
	l.lost, l.proven = h.Run != l.self.Run || h.Beats != l.proven.beats, l.last
	return nil
}

// write sends one request to overwrite a record.
func (l *Lock) write(ctx context.Context, epoch int) (w written, err error) {
	h := l.next(epoch)
	w.beats, w.late, w.every, w.sent = h.Beats, h.Late, h.interval(), l.clock.Now()
	w.version, err = l.records.write(ctx, h)
	return w, err
}

// next returns the record of this run for the next request. No two requests send the same.
func (l *Lock) next(epoch int) Holder {
	l.self.Beats++
	h := l.self
	h.Every = time.Duration(l.every.Load())
	h.Epoch, h.After, h.Late = epoch, l.last.version, l.left()
	if l.before != nil && epoch == l.before.Epoch {
		h.After = l.before.version
	}
	return h
}

// wrote reports whether this run wrote all versions of a record from the first one up to
// the second one, which it certainly wrote.
func (l *Lock) wrote(ctx context.Context, epoch int, from, to int64) (bool, error) {
	for v := from; v < to; v++ {
		h, err := l.read(ctx, epoch, v)
		if err != nil || h.Run != l.self.Run {
			return false, err
		}
	}
	return from <= to, nil
}

// read reads a version of a record. Parameter Store may show it late.
func (l *Lock) read(ctx context.Context, epoch int, version int64) (h Holder, err error) {
	began := l.clock.Now()
	for {
		h, err = l.records.read(ctx, epoch, version)
		if err != nil || h.Run != "" || l.elapsed(began) >= ConsistencyDelay {
			return h, err
		}
		if err := l.clock.Sleep(ctx, pause); err != nil {
			return h, err
		}
	}
}
