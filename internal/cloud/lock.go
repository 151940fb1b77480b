package cloud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// Timing of the lock.
const (
	// ConsistencyDelay is how long AWS may take to show a new resource in listings. A run
	// that takes over from one that died waits at least this long after the last
	// heartbeat, so that it sees everything the other run has created.
	ConsistencyDelay = time.Minute
	// heartbeatInterval is the time between two heartbeats.
	heartbeatInterval = 15 * time.Second
	// checkValidity is how long the result of a check of the lock is valid. A process
	// that was suspended for longer checks again before it writes.
	checkValidity = 5 * time.Second
	// listingInterval is the time between two listings if one does not show a record that
	// must exist.
	listingInterval = 2 * time.Second
)

// Holder describes the run that holds the lock.
type Holder struct {
	Epoch    int       `json:"epoch"`
	Run      string    `json:"run"`     // random, one for each run
	Who      string    `json:"who"`     // "ada@laptop pid 4711"
	Command  string    `json:"command"` // "create"
	Since    time.Time `json:"since"`
	Released bool      `json:"released,omitempty"` // the run has ended
	Unknown  bool      `json:"unknown,omitempty"`  // and did not learn the outcome of a call
	Beats    int       `json:"beats"`

	age time.Duration // since the last heartbeat, by the clock of the store
}

// LockedError says that another run holds the lock of the cluster.
type LockedError struct{ Holder Holder }

func (e *LockedError) Error() string {
	return fmt.Sprintf("another run holds the lock of this cluster: %s, %s since %s", e.Holder.Who, e.Holder.Command, e.Holder.Since.UTC().Format(time.RFC3339))
}

// ErrLockLost says that another run has taken over the lock. This run must not write any
// more.
var ErrLockLost = errors.New("another run has taken over the lock of this cluster")

// records stores lock records: in SSM, or in files where SSM is denied.
type records interface {
	// list returns all records, in any order.
	list(ctx context.Context) ([]Holder, error)
	// create writes the record of a new epoch; taken is true if that epoch exists
	// already.
	create(ctx context.Context, h Holder) (taken bool, err error)
	// write overwrites the record of an epoch.
	write(ctx context.Context, h Holder) error
	// remove deletes the record of an epoch, if it exists.
	remove(ctx context.Context, epoch int) error
}

// Lock is the permission to write to one cluster. Its epoch is higher than that of all
// earlier runs. Before a write, the run checks that its epoch is still the highest.
type Lock struct {
	clock   *clock.Clock
	records records
	stop    context.CancelFunc
	stopped chan struct{}

	turn chan struct{} // held while reading the records

	mu       sync.Mutex
	self     Holder
	first    bool      // there was no record before
	checked  time.Time // zero before the first check; wall time, which goes on while the machine is suspended
	lost     bool
	unlisted time.Time // since when the record of this run is not listed; zero if it is
	waiting  func(Holder, time.Duration)
}

// LockOptions configure how to acquire the lock.
type LockOptions struct {
	Who, Command string
	// ConsistencyDelay replaces the default of one minute, for emulators that show new
	// resources at once.
	ConsistencyDelay time.Duration
	// Waiting is called when the run has to wait for a lock to expire; left is how long.
	Waiting func(holder Holder, left time.Duration)
}

// AcquireLock acquires the lock of the cluster for this run and keeps it until Release.
// If the holder of the lock sends no heartbeat, AcquireLock waits until the lock expires;
// if it does, AcquireLock returns a LockedError immediately.
func (c *Clients) AcquireLock(ctx context.Context, o LockOptions) error {
	return c.acquire(ctx, &ssmRecords{c}, o)
}

// AcquireFileLock is AcquireLock with records in a local folder, for accounts in which
// SSM is denied. It does not see runs on other machines.
func (c *Clients) AcquireFileLock(ctx context.Context, folder string, o LockOptions) error {
	return c.acquire(ctx, &fileRecords{folder, c.Clock}, o)
}

func (c *Clients) acquire(ctx context.Context, r records, o LockOptions) error {
	if o.ConsistencyDelay == 0 {
		o.ConsistencyDelay = ConsistencyDelay
	}
	l := &Lock{
		clock: c.Clock, records: r, turn: make(chan struct{}, 1), stopped: make(chan struct{}), waiting: o.Waiting,
		self: Holder{Run: c.tokens, Who: o.Who, Command: o.Command, Since: c.Clock.Now()},
	}
	if err := l.take(unlocked(ctx), o.ConsistencyDelay); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	var heartbeats context.Context
	heartbeats, l.stop = context.WithCancel(ctx)
	go l.sendHeartbeats(unlocked(heartbeats))
	c.Lock = l
	return nil
}

// take creates the record with the highest epoch.
func (l *Lock) take(ctx context.Context, consistencyDelay time.Duration) error {
	var last *Holder
	var unlisted time.Time // since when a record exists that is not listed
	for {
		all, err := l.records.list(ctx)
		if err != nil {
			return err
		}
		top := highest(all)
		l.self.Epoch, l.first = 1, top == nil
		if top != nil {
			l.self.Epoch = top.Epoch + 1
			if top.isAlive(last) {
				return &LockedError{*top}
			}
			if left := top.validFor(consistencyDelay) - top.age; left > 0 {
				last = top
				if err := l.waitForExpiry(ctx, *top, left); err != nil {
					return err
				}
				continue
			}
		}
		taken, err := l.records.create(ctx, l.self)
		if err != nil {
			return err
		}
		if !taken {
			return l.remove(ctx, all)
		}
		// A listing has to show the record before the next epoch may follow it.
		if unlisted.IsZero() {
			unlisted = l.clock.Now()
		}
		if l.clock.Since(unlisted) > ConsistencyDelay {
			return fmt.Errorf("record %d exists, but is not listed", l.self.Epoch)
		}
		if err := l.clock.Sleep(ctx, listingInterval); err != nil {
			return err
		}
	}
}

// isAlive reports whether the run of a record has sent a heartbeat since the last listing.
func (h Holder) isAlive(last *Holder) bool {
	return last != nil && last.Run == h.Run && last.Beats != h.Beats && !h.Released
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
	return consistencyDelay + heartbeatInterval
}

// waitForExpiry waits before the next check of another run's record: slightly longer than
// the heartbeat interval, so that a new heartbeat of a live run is seen.
func (l *Lock) waitForExpiry(ctx context.Context, h Holder, left time.Duration) error {
	if l.waiting != nil {
		l.waiting(h, left)
	}
	return l.clock.Sleep(ctx, min(left, heartbeatInterval+time.Second))
}

// remove deletes the records of earlier epochs.
func (l *Lock) remove(ctx context.Context, earlier []Holder) error {
	for _, h := range earlier {
		if err := l.records.remove(ctx, h.Epoch); err != nil {
			return err
		}
	}
	return nil
}

func highest(all []Holder) (top *Holder) {
	for i := range all {
		if top == nil || all[i].Epoch > top.Epoch {
			top = &all[i]
		}
	}
	return top
}

// sendHeartbeats sends heartbeats until the lock is released or lost.
func (l *Lock) sendHeartbeats(ctx context.Context) {
	defer close(l.stopped)
	for l.clock.Sleep(ctx, heartbeatInterval) == nil {
		if err := l.check(ctx); errors.Is(err, ErrLockLost) {
			return
		} else if err != nil {
			continue // the next heartbeat tries again
		}
		l.mu.Lock()
		l.self.Beats++
		self := l.self
		l.mu.Unlock()
		_ = l.records.write(ctx, self) // the next heartbeat tries again; check detects a lost lock
	}
}

// check returns ErrLockLost if another run has taken over the lock: if there is a record
// of a higher epoch, or none of this run for ConsistencyDelay. A result is reused for
// checkValidity.
func (l *Lock) check(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		l.mu.Lock()
		lost, age := l.lost, l.clock.Since(l.checked)
		l.mu.Unlock()
		if lost {
			return ErrLockLost
		}
		if age >= 0 && age < checkValidity { // the system clock may have been set back
			return nil
		}
		asked := l.clock.Now().Round(0)
		all, err := l.records.list(unlocked(ctx))
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		if !l.observe(highest(all), asked) {
			if err := l.clock.Sleep(ctx, listingInterval); err != nil {
				return err
			}
		}
	}
}

// observe stores what a listing shows of the lock, and reports whether it shows who holds
// it. A listing may be older than the record of this run. A record that remains unlisted
// was deleted: by a run that took the lock over and then deleted the cluster.
func (l *Lock) observe(top *Holder, asked time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case top != nil && top.Run == l.self.Run:
		l.checked, l.unlisted = asked, time.Time{}
	case top != nil && top.Epoch >= l.self.Epoch:
		l.lost = true
	case l.unlisted.IsZero():
		l.unlisted = asked
		return false
	case asked.Sub(l.unlisted) < ConsistencyDelay:
		return false
	default:
		l.lost = true
	}
	return true
}

// IsFirst reports whether there was no record of another run.
func (l *Lock) IsFirst() bool { return l.first }

// Ending says how a run ends that releases the lock.
type Ending struct {
	// Unknown: AWS has not answered a call. The next run waits until AWS must show what
	// the call may have created.
	Unknown bool
	// Nothing: the cluster has no resources, so that no record has to remain.
	Nothing bool
}

// Release gives the lock back. The record stays, so that the next run has a higher epoch:
// the documentation of DeleteParameter says that a deleted parameter should not be created
// again within 30 seconds. ctx must not end with the context of the run.
func (l *Lock) Release(ctx context.Context, e Ending) error {
	l.stop()
	<-l.stopped
	ctx = unlocked(ctx)
	if err := l.check(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.self.Released, l.self.Unknown = true, e.Unknown
	self := l.self
	l.mu.Unlock()
	if e.Nothing && !e.Unknown {
		return l.records.remove(ctx, self.Epoch)
	}
	return l.records.write(ctx, self)
}
