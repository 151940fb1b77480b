package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// fate is what happens to one request of a process to the store, or to the process at that
// time.
type fate string

const (
	normal           fate = "normal"
	held             fate = "the request arrives late"
	heldShortly      fate = "the request arrives a little late"
	answeredLate     fate = "the answer arrives late"
	lostRequest      fate = "the request is lost"
	lostAnswer       fate = "the answer is lost"
	arrivesAfterLoss fate = "the connection breaks, and the request arrives late"
	oldListing       fate = "the listing is old"
	oldOfOthers      fate = "the listing shows old records of others, and none if they are new"
	sleepsBefore     fate = "the machine sleeps before the request, and the monotonic clock stops"
	sleepsAfter      fate = "the machine sleeps before the answer, and the monotonic clock stops"
	stoppedBefore    fate = "the process is stopped before the request, and the wall clock is set back"
	stoppedAfter     fate = "the process is stopped before the answer, and the wall clock is set back"
	pausedBefore     fate = "the virtual machine is paused with its clocks before the request"
	pausedAfter      fate = "the virtual machine is paused with its clocks before the answer"
	jumpsForward     fate = "the wall clock is set forward"
	jumpsBack        fate = "the wall clock is set back"
	diesBefore       fate = "the process is killed before the request"
	diesAfter        fate = "the process is killed before the answer"
	arrivesLast      fate = "the connection breaks, and the request arrives when AWS just accepts it"
	diesUnderWay     fate = "the process is killed, and the request arrives when AWS just accepts it"
)

// The fates of requests, apart from the normal one.
var (
	fatesOfAll    = []fate{lostRequest, sleepsBefore, sleepsAfter, stoppedBefore, stoppedAfter, pausedBefore, pausedAfter, jumpsForward, jumpsBack, diesBefore}
	fatesOfWrites = append([]fate{held, heldShortly, answeredLate, lostAnswer, arrivesAfterLoss, diesAfter}, fatesOfAll...)
	fatesOfLists  = append([]fate{oldListing, oldOfOthers, answeredLate}, fatesOfAll...)
	// A request that deletes something is protected by the lock. The process signs it after
	// it has checked the lock.
	fatesOfDeletes  = []fate{held, heldShortly, answeredLate, lostRequest, lostAnswer, arrivesAfterLoss, arrivesLast, diesBefore, diesAfter, diesUnderWay}
	fatesOfNetworks = []fate{held, heldShortly, answeredLate, lostRequest, lostAnswer, arrivesAfterLoss, oldListing, oldOfOthers}
)

// Durations of the fates.
const (
	latency     = 40 * time.Millisecond
	long        = 100 * time.Second // more than an expired lock takes to be taken over
	short       = 20 * time.Second  // more than a heartbeat interval
	rest        = 50 * time.Second  // three heartbeats
	jump        = time.Hour
	lossTimeout = time.Second // until a process notices that a connection is broken
)

// world is where processes use one lock: the store, the time and what has happened.
type world struct {
	began   time.Time
	clocks  time.Time // wall and monotonic clock at began; time.Now has no monotonic clock in a synctest bubble
	store   func(*process) records
	shared  *machine // all processes are on this machine; nil if each one has its own
	deletes bool     // the runs delete something after every second write
	rests   bool     // the runs rest after every third write

	background sync.WaitGroup // requests that arrive after their process has given up

	mu        sync.Mutex
	snapshots []snapshot
	events    []event
	fates     func(p *process, n int, of []fate) fate
}

// snapshot is what the store contained from then on.
type snapshot struct {
	at      time.Time
	records []Holder
}

// event is something that a process does.
type event struct {
	at   time.Duration
	who  string
	what string

	deletes bool // it is a run that deletes the cluster
}

// What processes do.
const (
	creates     = "creates its record"
	acquires    = "acquires the lock"
	writesNow   = "writes"
	deletes     = "deletes something"
	deletesLate = "deletes something when it has ended"
	loses       = "has lost the lock"
	releases    = "releases the lock"
	pauses      = "is paused"
)

func (w *world) log(p *process, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{time.Since(w.began), p.name, what, p.command == DeleteCommand})
}

// machine has clocks.
type machine struct {
	mu      sync.Mutex
	wall    time.Duration // by how much the wall clock is ahead
	stopped time.Duration // for how long the monotonic clock has been stopped
}

// process is one run of the program. It implements records: each request has a fate.
type process struct {
	name    string
	command string
	world   *world
	machine *machine
	latency time.Duration
	records // the store
	clients *Clients
	kill    context.CancelCauseFunc

	mu       sync.Mutex
	requests int
	frozen   time.Time // the process is suspended until then
	dead     bool
}

var errDead, errLost = errors.New("killed"), errors.New("connection lost")

// start returns a new process.
func (w *world) start(ctx context.Context, name string, slower time.Duration) (*process, context.Context) {
	p := &process{name: name, world: w, machine: w.shared, latency: latency + slower}
	if p.machine == nil {
		p.machine = &machine{}
	}
	ctx, p.kill = context.WithCancelCause(ctx)
	p.clients = &Clients{Clock: clock.Of(p), tokens: name}
	p.records = w.store(p)
	return p, ctx
}

// Now returns the time of the process: of the wall clock, and of the monotonic clock, which
// are independent of each other.
func (p *process) Now() time.Time {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	t := p.world.clocks.Add(time.Since(p.world.began) + p.machine.wall)
	// Add moves both clocks. The second field of a time.Time with a monotonic clock is that
	// of this clock.
	monotonic := (*[3]int64)(unsafe.Pointer(&t))
	monotonic[1] -= int64(p.machine.wall + p.machine.stopped)
	return t
}

// Sleep waits. A suspended process does not go on.
func (p *process) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return p.running()
	}
}

// running waits while the process is suspended. It returns an error if the process is dead.
func (p *process) running() error {
	for {
		p.mu.Lock()
		dead, left := p.dead, time.Until(p.frozen)
		p.mu.Unlock()
		if dead {
			return errDead
		}
		if left <= 0 {
			return nil
		}
		time.Sleep(left)
	}
}

// suspend suspends the process. clocks says what happens to the clocks of its machine.
func (p *process) suspend(clocks func(m *machine)) {
	p.mu.Lock()
	p.frozen = time.Now().Add(long)
	p.mu.Unlock()
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	clocks(p.machine)
}

func (p *process) sleep() { p.suspend(func(m *machine) { m.stopped += long }) }

func (p *process) stop() { p.suspend(func(m *machine) { m.wall -= jump }) }

func (p *process) pause() {
	p.suspend(func(m *machine) {
		m.stopped += long
		m.wall -= long
	})
	p.world.log(p, pauses)
}

func (p *process) set(by time.Duration) {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	p.machine.wall += by
}

func (p *process) die() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.kill(errDead)
	if files, ok := p.records.(*fileRecords); ok {
		_ = files.close() // as the operating system does
	}
}

// before does what a fate has in store before the request.
func (p *process) before(f fate) error {
	switch f { //nolint:exhaustive // the other fates do not matter here
	case sleepsBefore:
		p.sleep()
	case stoppedBefore:
		p.stop()
	case pausedBefore:
		p.pause()
	case jumpsForward:
		p.set(jump)
	case jumpsBack:
		p.set(-jump)
	case diesBefore:
		p.die()
	default:
	}
	if err := p.running(); err != nil {
		return err
	}
	time.Sleep(p.latency)
	return p.running()
}

// after does what a fate has in store before the answer.
func (p *process) after(f fate) error {
	switch f { //nolint:exhaustive // the other fates do not matter here
	case sleepsAfter:
		p.sleep()
	case stoppedAfter:
		p.stop()
	case pausedAfter:
		p.pause()
	case answeredLate:
		time.Sleep(long)
	case diesAfter:
		p.die()
	default:
	}
	time.Sleep(p.latency)
	return p.running()
}

// request sends a request with the next fate.
func (p *process) request(fates []fate, arrive func(f fate) error) error {
	p.mu.Lock()
	p.requests++
	n := p.requests
	p.mu.Unlock()
	f := p.world.fates(p, n, fates)
	if err := p.before(f); err != nil {
		return err
	}
	switch f { //nolint:exhaustive // the other fates do not matter here
	case held:
		time.Sleep(long)
	case heldShortly:
		time.Sleep(short)
	case lostRequest:
		return p.lose()
	case arrivesAfterLoss:
		p.world.background.Go(func() {
			time.Sleep(long)
			_ = arrive(f)
		})
		return p.lose()
	default:
	}
	if f == arrivesLast || f == diesUnderWay {
		p.world.background.Go(func() {
			time.Sleep(signatureValidity - latency)
			_ = arrive(f)
		})
		if f == arrivesLast {
			return p.lose()
		}
		p.die()
		return p.running()
	}
	err := arrive(f)
	if f == lostAnswer {
		return p.lose()
	}
	return errors.Join(err, p.after(f))
}

func (p *process) lose() error {
	time.Sleep(lossTimeout)
	return errors.Join(errLost, p.running())
}

// changed stores what the store contains now.
func (w *world) changed(r records) error {
	all, err := r.list(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range all {
		all[i].age = time.Since(w.began) - all[i].age // the time of the last write
	}
	w.snapshots = append(w.snapshots, snapshot{time.Now(), all})
	return err
}

// shown returns what the store contained at that time.
func (w *world) shown(at time.Time) (all []Holder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.snapshots {
		if !s.at.After(at) {
			all = s.records
		}
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].age = time.Since(w.began) - all[i].age
	}
	return all
}

func (p *process) list(ctx context.Context) (all []Holder, err error) {
	err = p.request(fatesOfLists, func(f fate) error {
		all, err = p.records.list(ctx)
		old := p.world.shown(time.Now().Add(-ConsistencyDelay))
		switch f { //nolint:exhaustive // the other fates do not matter here
		case oldListing:
			all = old
		case oldOfOthers:
			all = slices.DeleteFunc(all, func(h Holder) bool { return h.Run != p.clients.tokens })
			all = append(all, slices.DeleteFunc(old, func(h Holder) bool {
				return slices.ContainsFunc(all, func(x Holder) bool { return x.Epoch == h.Epoch })
			})...)
		default:
		}
		return err
	})
	return all, err
}

func (p *process) create(ctx context.Context, h Holder) (taken bool, err error) {
	err = p.request(fatesOfWrites, func(fate) error {
		if taken, err = p.records.create(ctx, h); !taken && err == nil {
			p.world.log(p, creates)
		}
		return errors.Join(err, p.world.changed(p.records))
	})
	return taken, err
}

func (p *process) write(ctx context.Context, h Holder) (version int64, err error) {
	err = p.request(fatesOfWrites, func(fate) error {
		version, err = p.records.write(ctx, h)
		return errors.Join(err, p.world.changed(p.records))
	})
	return version, err
}

func (p *process) read(ctx context.Context, epoch int, version int64) (h Holder, err error) {
	err = p.request(fatesOfAll, func(fate) error {
		h, err = p.records.read(ctx, epoch, version)
		return err
	})
	return h, err
}

func (p *process) transient(err error) bool {
	return errors.Is(err, errLost) && !errors.Is(err, errDead)
}

func (p *process) remove(ctx context.Context, epoch int) error {
	return p.request(fatesOfWrites, func(fate) error {
		return errors.Join(p.records.remove(ctx, epoch), p.world.changed(p.records))
	})
}

// live is the life of a run: it acquires the lock, writes, and releases the lock. If
// another run holds the lock, it tries again later, as a new run.
func (p *process) live(ctx context.Context, attempts, writes int, e Ending) {
	defer p.kill(nil)
	for n := range attempts {
		p.clients.tokens = fmt.Sprintf("%s.%d", p.name, n)
		err := p.acquire(ctx)
		if err == nil {
			p.hold(ctx, writes, e)
			return
		}
		if !errors.As(err, new(*plan.LockedError)) || p.Sleep(ctx, 25*time.Second) != nil {
			return
		}
	}
}

// acquire is AcquireLock or AcquireFileLock, with the requests of this process.
func (p *process) acquire(ctx context.Context) error {
	files, ok := p.records.(*fileRecords)
	if ok {
		if err := files.open(ctx); err != nil {
			return err
		}
	}
	err := p.clients.acquire(ctx, p, LockOptions{Who: p.name, Command: p.command})
	if ok && err == nil {
		p.clients.Lock.close = files.close
	} else if ok {
		_ = files.close()
	}
	return err
}

func (p *process) hold(ctx context.Context, writes int, e Ending) {
	p.world.log(p, acquires)
	for n := range writes {
		if p.world.deletes && n%2 == 1 && p.delete(ctx) != nil {
			return
		}
		if p.world.rests && n%3 == 2 && p.Sleep(ctx, rest) != nil {
			return
		}
		if p.Sleep(ctx, 6700*time.Millisecond) != nil {
			return
		}
		switch err := p.clients.Lock.check(ctx); {
		case err == nil:
			p.world.log(p, writesNow)
		case errors.Is(err, ErrLockLost):
			p.world.log(p, loses)
			return
		}
	}
	if p.command == DeleteCommand {
		p.clients.Lock.AwaitRequests(ctx, func(time.Duration) {})
	}
	p.world.log(p, releases)
	_ = p.clients.Lock.Release(ctx, e)
}

// delete sends a request that deletes something, as the middleware Pace does.
func (p *process) delete(ctx context.Context) error {
	l := p.clients.Lock
	done := l.expect(signatureValidity)
	if err := l.check(ctx); err != nil {
		done(time.Time{}, true)
		return err
	}
	sent := p.Now()
	err := p.request(fatesOfDeletes, func(f fate) error {
		if f == arrivesLast || f == diesUnderWay {
			p.world.log(p, deletesLate)
		} else {
			p.world.log(p, deletes)
		}
		return nil
	})
	done(sent, !errors.Is(err, errLost))
	if errors.Is(err, errDead) {
		return err
	}
	return nil
}
