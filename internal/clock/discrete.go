package clock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// discrete is a clock that stands still while the program works. When everybody waits, it
// jumps to the first moment that somebody waits for.
type discrete struct {
	jumps    *jumps
	now      time.Time
	sleepers []*sleeper // by the time for which they wait, and in the order of their calls
}

// sleeper is a call of Sleep.
type sleeper struct {
	until time.Time
	woken chan struct{}
}

// Discrete returns a clock that shows origin and stands still while any goroutine of the
// process works. It wakes sleepers one by one, so that the order of what they do does not depend
// on the machine.
//
// To compute is work, and so is a system call. To wait for a channel, a lock, a timer or a
// network connection is not: where the last two are outside of what is simulated, use Hold.
func Discrete(origin time.Time) *Clock {
	return &Clock{&discrete{jumps: newJumps(), now: origin}}
}

// Beside returns a clock that shows origin and jumps as c does, each to its own next moment. Two
// clocks that know nothing of each other would hold each other up.
func (c *Clock) Beside(origin time.Time) *Clock {
	d, ok := c.source.(*discrete)
	if !ok {
		return Discrete(origin)
	}
	return &Clock{&discrete{jumps: d.jumps, now: origin}}
}

// Now implements Source.
func (d *discrete) Now() time.Time {
	d.jumps.mu.Lock()
	defer d.jumps.mu.Unlock()
	return d.now
}

// Sleep implements Source.
func (d *discrete) Sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := d.add(wait)
	select {
	case <-s.woken:
		return nil
	case <-ctx.Done():
		d.remove(s)
		return context.Cause(ctx)
	}
}

func (d *discrete) add(wait time.Duration) *sleeper {
	d.jumps.mu.Lock()
	defer d.jumps.mu.Unlock()
	s := &sleeper{d.now.Add(wait), make(chan struct{})}
	at, _ := slices.BinarySearchFunc(d.sleepers, s.until, func(other *sleeper, until time.Time) int {
		if other.until.After(until) {
			return 1
		}
		return -1 // this one comes after those that wait for the same moment
	})
	d.sleepers = slices.Insert(d.sleepers, at, s)
	d.jumps.watch(d)
	return s
}

func (d *discrete) remove(s *sleeper) {
	d.jumps.mu.Lock()
	defer d.jumps.mu.Unlock()
	if at := slices.Index(d.sleepers, s); at >= 0 {
		d.sleepers = slices.Delete(d.sleepers, at, at+1)
	}
}

// jump goes to the next moment and wakes one sleeper. It reports whether there was one. The
// caller holds the lock.
func (d *discrete) jump() bool {
	if len(d.sleepers) == 0 {
		return false
	}
	next := d.sleepers[0]
	d.sleepers = slices.Delete(d.sleepers, 0, 1)
	d.now = next.until
	close(next.woken)
	return true
}

// jumps are discrete clocks that jump together, when nobody works.
type jumps struct {
	mu       sync.Mutex
	clocks   []*discrete // with sleepers
	held     int
	released sync.Cond
}

func newJumps() *jumps {
	j := &jumps{}
	j.released.L = &j.mu
	return j
}

// hold keeps the clocks from jumping.
func (j *jumps) hold() (release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held++
	return sync.OnceFunc(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.held--
		j.released.Broadcast()
	})
}

// watch lets a clock jump until it has no sleepers. The caller holds the lock.
func (j *jumps) watch(d *discrete) {
	if slices.Contains(j.clocks, d) {
		return
	}
	if j.clocks = append(j.clocks, d); len(j.clocks) > 1 {
		return
	}
	go func() {
		o := newObserver()
		for more := true; more; more = j.jump() {
			o.awaitRest()
		}
	}()
}

// jump lets each clock jump, unless they are held. It reports whether there are sleepers left.
func (j *jumps) jump() (more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held > 0 {
		for j.held > 0 {
			j.released.Wait()
		}
		return true // whoever held them goes on working
	}
	j.clocks = slices.DeleteFunc(j.clocks, func(d *discrete) bool { return !d.jump() })
	return len(j.clocks) > 0
}
