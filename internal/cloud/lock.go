package cloud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// Times of the lock.
const (
	// Settle is how long AWS may take to show what it was asked for. Whoever
	// takes over from a dead run waits at least that long after its last sign
	// of life, and so sees all that it has made.
	Settle = time.Minute
	// beat is the pause between two signs of life.
	beat = 15 * time.Second
	// verified is how long a look at the lock is good for. A process that was
	// stopped for longer looks again before it writes.
	verified = 5 * time.Second
)

// Holder says who holds the lock.
type Holder struct {
	Epoch    int       `json:"epoch"`
	Run      string    `json:"run"`                // random, one a run
	Who      string    `json:"who"`                // "ada@laptop pid 4711"
	Command  string    `json:"command"`            // "create"
	Since    time.Time `json:"since"`              //
	Released bool      `json:"released,omitempty"` // given back, with something left in the dark
	Beats    int       `json:"beats"`

	age time.Duration // since the last sign of life, by the store's clock
}

// LockedError says that another run is at work on the cluster.
type LockedError struct{ Holder Holder }

func (e *LockedError) Error() string {
	return fmt.Sprintf("another run is at work on this cluster: %s, %s since %s", e.Holder.Who, e.Holder.Command, e.Holder.Since.UTC().Format(time.RFC3339))
}

// ErrLockLost says that another run has taken the lock over, so that this one
// may not write any more.
var ErrLockLost = errors.New("another run has taken over this cluster")

// records is where lock records are kept: in SSM, or in files where SSM is
// denied.
type records interface {
	// list returns all records, in any order.
	list(ctx context.Context) ([]Holder, error)
	// create writes the record of a new epoch; taken is true when there is one.
	create(ctx context.Context, h Holder) (taken bool, err error)
	// write overwrites the record of an epoch.
	write(ctx context.Context, h Holder) error
	// remove drops the record of an epoch; one that is gone is no error.
	remove(ctx context.Context, epoch int) error
}

// Lock is the right to write to one cluster. Its epoch is higher than that of
// any run before; a write first makes sure that it still is the highest.
type Lock struct {
	clock   *clock.Clock
	records records
	stop    context.CancelFunc
	stopped chan struct{}

	turn chan struct{} // held while looking at the records

	mu      sync.Mutex
	me      Holder
	looked  time.Time
	lost    bool
	waiting func(Holder, time.Duration)
}

// LockOptions say how to take the lock.
type LockOptions struct {
	Who, Command string
	// Settle replaces the minute that a dead run's lock is honoured for; for
	// emulators that show at once what they were asked for.
	Settle time.Duration
	// Waiting is told when a lock has to grow old first, and for how long.
	Waiting func(holder Holder, left time.Duration)
}

// AcquireLock takes the lock of the cluster for this run, and keeps it until
// Release. Where the holder gives no sign of life it waits until the lock may
// be taken over; where it does, it returns a LockedError at once.
func (c *Clients) AcquireLock(ctx context.Context, o LockOptions) error {
	return c.acquire(ctx, &ssmRecords{c}, o)
}

// AcquireFileLock is AcquireLock with records in a folder of this machine: for
// accounts in which SSM is denied. It sees no run on another machine.
func (c *Clients) AcquireFileLock(ctx context.Context, folder string, o LockOptions) error {
	return c.acquire(ctx, &fileRecords{folder, c.Clock}, o)
}

func (c *Clients) acquire(ctx context.Context, r records, o LockOptions) error {
	if o.Settle == 0 {
		o.Settle = Settle
	}
	l := &Lock{
		clock: c.Clock, records: r, turn: make(chan struct{}, 1), stopped: make(chan struct{}), waiting: o.Waiting,
		me: Holder{Run: c.tokens, Who: o.Who, Command: o.Command, Since: c.Clock.Now()},
	}
	if err := l.take(unlocked(ctx), o.Settle); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	var beating context.Context
	beating, l.stop = context.WithCancel(ctx)
	go l.keep(unlocked(beating))
	c.Lock = l
	return nil
}

// take makes this run the holder of the highest epoch.
func (l *Lock) take(ctx context.Context, settle time.Duration) error {
	var last *Holder
	for {
		top, err := l.highest(ctx)
		if err != nil {
			return err
		}
		if top != nil {
			if last != nil && last.Run == top.Run && last.Beats != top.Beats && !top.Released {
				return &LockedError{*top}
			}
			if left := top.honoured(settle) - top.age; left > 0 {
				last = top
				if err := l.outwait(ctx, *top, left); err != nil {
					return err
				}
				continue
			}
			l.me.Epoch = top.Epoch
		}
		l.me.Epoch++
		taken, err := l.records.create(ctx, l.me)
		if err != nil {
			return err
		}
		if !taken {
			l.looked = l.clock.Now()
			return l.clear(ctx)
		}
	}
}

// honoured is how long a record counts after its last sign of life. A holder
// that gave it back has asked for nothing since.
func (h Holder) honoured(settle time.Duration) time.Duration {
	if h.Released {
		return settle
	}
	return settle + beat
}

// outwait pauses before the next look at somebody else's record: a little more
// than a beat, so that a living holder shows itself.
func (l *Lock) outwait(ctx context.Context, h Holder, left time.Duration) error {
	if l.waiting != nil {
		l.waiting(h, left)
	}
	return l.clock.Sleep(ctx, min(left, beat+time.Second))
}

// clear drops the records of earlier epochs.
func (l *Lock) clear(ctx context.Context) error {
	all, err := l.records.list(ctx)
	if err != nil {
		return err
	}
	for _, h := range all {
		if h.Epoch < l.me.Epoch {
			if err := l.records.remove(ctx, h.Epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lock) highest(ctx context.Context) (top *Holder, err error) {
	all, err := l.records.list(ctx)
	for i := range all {
		if top == nil || all[i].Epoch > top.Epoch {
			top = &all[i]
		}
	}
	return top, err
}

// keep gives signs of life until the lock is released or lost.
func (l *Lock) keep(ctx context.Context) {
	defer close(l.stopped)
	for l.clock.Sleep(ctx, beat) == nil {
		if l.check(ctx) != nil {
			return
		}
		l.mu.Lock()
		l.me.Beats++
		me := l.me
		l.mu.Unlock()
		_ = l.records.write(ctx, me) // the next beat tries again; check sees a lock that was lost
	}
}

// check returns ErrLockLost unless this run held the lock a moment ago.
func (l *Lock) check(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	lost, looked := l.lost, l.looked
	l.mu.Unlock()
	if lost {
		return ErrLockLost
	}
	if l.clock.Since(looked) < verified {
		return nil
	}
	asked := l.clock.Now()
	top, err := l.highest(unlocked(ctx))
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked, l.lost = asked, top == nil || top.Run != l.me.Run
	if l.lost {
		return ErrLockLost
	}
	return nil
}

// Release gives the lock back. A run that does not know what became of
// something it asked for says so: the next one then waits until AWS must show
// it. It is called with a context that outlives the run's.
func (l *Lock) Release(ctx context.Context, inTheDark bool) error {
	l.stop()
	<-l.stopped
	ctx = unlocked(ctx)
	if err := l.check(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.me.Released = true
	me := l.me
	l.mu.Unlock()
	if inTheDark {
		return l.records.write(ctx, me)
	}
	return l.records.remove(ctx, me.Epoch)
}
