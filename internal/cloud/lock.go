package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Timing of the lock.
const (
	// ConsistencyDelay is how long AWS may take to show a new resource in listings. A run
	// that takes over from one that died waits at least this long after the last
	// heartbeat, so that it sees everything the other run has created.
	ConsistencyDelay = time.Minute
	// heartbeatInterval is the time between two heartbeats. A run writes only within this
	// time after its last heartbeat.
	heartbeatInterval = 15 * time.Second
	// throttledInterval is that time after AWS has throttled a heartbeat. All runs of an account
	// share three writes to Parameter Store a second: 45 runs need all of them for heartbeats every
	// 15 seconds. The record says so, and another run waits longer before it takes over.
	throttledInterval = time.Minute
	// checkValidity is how long a listing of the records is valid. A process that was
	// suspended for longer lists them again before it writes.
	checkValidity = 5 * time.Second
	// pause is the time before a request is repeated that has failed, or a listing that does
	// not show a record that must exist.
	pause = 2 * time.Second
	// attempts is how often a write of a record is repeated. Those that AWS throttles do not count.
	attempts = 8
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
	Beats    int       `json:"beats"`              // one more in every write request of the run
	// After is the last version of the record that the run knew when it sent this one.
	After int64 `json:"after,omitempty"`
	// Late is how long after this version of the record was written a request to delete
	// something may still reach AWS.
	Late time.Duration `json:"late,omitempty"`
	// Every is the time between two heartbeats; 0 means heartbeatInterval.
	Every time.Duration `json:"every,omitempty"`
	// Tokens is what the client tokens of the run are derived from; Run if it is empty.
	Tokens string `json:"tokens,omitempty"`
	// Manager is the management cluster that the cluster was handed over to. Every run copies
	// it into its own record, so that the last record has it.
	Manager *plan.Manager `json:"manager,omitempty"`
	// Stopped says that the machines are stopped. Every run copies it, too.
	Stopped *Stopped `json:"stopped,omitempty"`
	// Worked is when a run last found all machines of the control plane ready. Each run copies it to its own record.
	Worked time.Time `json:"worked,omitzero"`

	// Plan is the digest of the saved plan that the run has begun to carry out; "" after its end, and of other runs.
	Plan string `json:"plan,omitempty"`

	version int64         // of the record: 1 when it is created, and one more after every write
	age     time.Duration // since the last heartbeat, by the clock of the store
}

// lockedBy says that a run holds the lock.
func lockedBy(h Holder) error {
	return &plan.LockedError{Owner: h.Who, Command: h.Command, Since: h.Since}
}

// Alive reports whether the run may still be working: it has not ended, and its last heartbeat is not so
// old that another run would take over.
func (h Holder) Alive() bool { return !h.Released && h.age < h.validFor(ConsistencyDelay) }

// LastRun returns the record of the last run on the cluster, from SSM Parameter Store; nil if there is none.
func (c *Clients) LastRun(ctx context.Context) (*Holder, error) {
	all, err := (&ssmRecords{c}).list(ctx)
	return highest(all), err
}

// ErrLockLost says that another run has taken over the lock. This run must not write any
// more.
var ErrLockLost = errors.New("another run has taken over the lock of this cluster")

// records stores lock records: in SSM, or in files where SSM is denied.
type records interface {
	// list returns all records, in any order. It may return what the store contained up to
	// ConsistencyDelay ago.
	list(ctx context.Context) ([]Holder, error)
	// create writes the record of a new epoch; taken is true if that epoch exists
	// already.
	create(ctx context.Context, h Holder) (taken bool, err error)
	// write overwrites the record of an epoch, or creates it, and returns its new version.
	write(ctx context.Context, h Holder) (version int64, err error)
	// read returns a version of a record; its Run is "" if the store does not show it.
	read(ctx context.Context, epoch int, version int64) (Holder, error)
	// kept is how many versions before the last one read returns.
	kept() int64
	// remove deletes the record of an epoch, if it exists.
	remove(ctx context.Context, epoch int) error
	// transient reports whether a call that failed with err may succeed later. create and
	// write send one request only.
	transient(err error) bool
}

// Lock is the permission to write to one cluster. Its epoch is higher than that of all
// earlier runs. TestLockModel explores how two and three runs use it.
//
// A run may write as long as its last heartbeat is new, and no listing shows a higher
// epoch. Another run takes over only if the heartbeat is older, and overwrites the record
// of this run before it creates its own. PutParameter returns the version of the record,
// which tells each of the two whether the other one has written it in the meantime; a
// listing may be too old for that. A request may arrive long after it was sent, and even
// at the record of another run: if the cluster was deleted, epochs start again.
type Lock struct {
	clock   *clock.Clock
	records records
	delay   time.Duration // ConsistencyDelay, or LockOptions.ConsistencyDelay
	stop    context.CancelFunc
	stopped chan struct{}
	waiting func(Holder, time.Duration)
	close   func() error // ends the lock of the file
	late    lateness
	every   atomic.Int64 // the time between two heartbeats from now on, in nanoseconds; 0 means heartbeatInterval

	turn     chan struct{} // held while using the records and the fields below
	self     Holder
	begun    string    // the saved plan that the run before has begun, and not ended; "" for none
	before   *Holder   // the record of the epoch before; nil if there was none
	earlier  []Holder  // the records of earlier runs that exist
	last     written   // the last heartbeat
	proven   written   // the last one at the last proof that the record was not deleted: see prove
	checked  time.Time // when the last listing was requested that shows this run as the holder; zero before
	unlisted time.Time // since when the record of this run is not listed; zero if it is
	lost     bool
}

// written is a write request that was answered.
type written struct {
	version int64 // of the record
	beats   int
	sent    time.Time
	late    time.Duration
	every   time.Duration // until the next heartbeat
}

// LockOptions configure how to acquire the lock.
type LockOptions struct {
	Who, Command string
	// ConsistencyDelay replaces the default of one minute, for emulators that show new
	// resources at once.
	ConsistencyDelay time.Duration
	// Waiting is called when the run has to wait for a lock to expire; left is how long. If
	// holder.Late is not 0, the run waits for requests of the holder to expire.
	Waiting func(holder Holder, left time.Duration)
}

// DeleteCommand is the command of a run that deletes the cluster. It relies on nothing that
// a run before may delete.
const DeleteCommand = "delete"

// AcquireLock acquires the lock of the cluster for this run and keeps it until Release.
// If the holder of the lock sends no heartbeat, AcquireLock waits until the lock expires;
// if it does, AcquireLock returns a LockedError immediately.
func (c *Clients) AcquireLock(ctx context.Context, o LockOptions) error {
	return c.acquire(ctx, &ssmRecords{c}, o)
}

// AcquireFileLock is AcquireLock with records in a local folder, for accounts in which
// SSM is denied. It does not see runs on other machines.
func (c *Clients) AcquireFileLock(ctx context.Context, folder string, o LockOptions) error {
	r := &fileRecords{folder: folder, clock: c.Clock}
	if err := r.open(ctx); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := c.acquire(ctx, r, o); err != nil {
		return errors.Join(err, r.close())
	}
	c.Lock.close = r.close
	return nil
}

func (c *Clients) acquire(ctx context.Context, r records, o LockOptions) error {
	if o.ConsistencyDelay == 0 {
		o.ConsistencyDelay = ConsistencyDelay
	}
	l := &Lock{
		clock: c.Clock, records: r, delay: o.ConsistencyDelay, turn: make(chan struct{}, 1), stopped: make(chan struct{}), waiting: o.Waiting,
		self: Holder{Run: c.tokens, Who: o.Who, Command: o.Command, Since: c.Clock.Now()}, close: func() error { return nil },
	}
	if err := l.take(unlocked(ctx)); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	c.inherited = l.self.Tokens
	var heartbeats context.Context
	heartbeats, l.stop = context.WithCancel(ctx)
	go l.sendHeartbeats(unlocked(heartbeats))
	c.Lock = l
	return nil
}

// IsFirst reports whether there was no record of another run.
func (l *Lock) IsFirst() bool { return l.self.Epoch == 1 }

// Manager returns the management cluster that the cluster was handed over to; nil if runs
// manage it.
func (l *Lock) Manager() *plan.Manager { return l.self.Manager }

// Worked returns when a run last found all machines of the control plane ready; zero if none has.
func (l *Lock) Worked() time.Time { return l.self.Worked }

// Continues reports whether the run before has begun the saved plan with this digest, and not ended it.
func (l *Lock) Continues(planned string) bool { return planned != "" && l.begun == planned }

// SetPlan records the digest of the saved plan that the run begins to carry out.
func (l *Lock) SetPlan(ctx context.Context, planned string) error {
	return l.record(ctx, func(h *Holder) { h.Plan = planned })
}

// SetManager records the management cluster that manages the cluster from now on; nil if
// runs do.
func (l *Lock) SetManager(ctx context.Context, m *plan.Manager) error {
	return l.record(ctx, func(h *Holder) { h.Manager = m })
}

// record changes what later runs copy from the record, and writes it.
func (l *Lock) record(ctx context.Context, change func(*Holder)) error {
	ctx = unlocked(ctx)
	if err := l.check(ctx); err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	change(&l.self)
	return l.repeat(ctx, func() error {
		if err := l.renew(ctx); err != nil || l.lost {
			return cmp.Or(err, ErrLockLost)
		}
		if err := l.prove(ctx); err != nil || l.lost {
			return cmp.Or(err, ErrLockLost)
		}
		return nil
	})
}

// Ending says how a run ends that releases the lock.
type Ending struct {
	// Unknown: AWS has not answered a call. The next run waits until AWS must show what
	// the call may have created.
	Unknown bool
	// Nothing: the cluster has no resources, so that no record has to remain.
	Nothing bool
	// Worked is when this run found all machines of the control plane ready; zero if it did not.
	Worked time.Time
	// Done: the run has carried out its plan.
	Done bool
	// Planned is the digest of the saved plan that the run was to carry out.
	Planned string
}

// Release gives the lock back. The record stays, so that the next run has a higher epoch:
// the documentation of DeleteParameter says that a deleted parameter should not be created
// again within 30 seconds. ctx must not end with the context of the run.
func (l *Lock) Release(ctx context.Context, e Ending) error {
	l.stop()
	<-l.stopped
	return errors.Join(l.release(unlocked(ctx), e), l.close())
}

func (l *Lock) release(ctx context.Context, e Ending) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	l.self.Released, l.self.Unknown = true, e.Unknown // the heartbeats have ended
	if !e.Worked.IsZero() {
		l.self.Worked = e.Worked.UTC()
	}
	switch {
	case e.Done:
		l.self.Plan = ""
	case l.Continues(e.Planned): // also if this run was refused
		l.self.Plan = e.Planned
	}
	if e.Nothing && !e.Unknown && l.left() <= 0 {
		return l.remove(ctx, append(l.earlier, l.self))
	}
	return l.repeat(ctx, func() error {
		_, err := l.write(ctx, l.self.Epoch)
		return err
	})
}

// remove deletes records, the oldest first.
func (l *Lock) remove(ctx context.Context, all []Holder) error {
	slices.SortFunc(all, func(a, b Holder) int { return a.Epoch - b.Epoch })
	for _, h := range all {
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
