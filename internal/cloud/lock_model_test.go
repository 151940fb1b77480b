package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/sweep"
)

// parameters is a store with the promises of Parameter Store that the lock relies on.
type parameters struct {
	mu  sync.Mutex
	all map[int]*parameter
}

type parameter struct {
	versions []Holder
	written  time.Time
}

func (s *parameters) list(context.Context) (out []Holder, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, epoch := range slices.Sorted(maps.Keys(s.all)) {
		x := s.all[epoch]
		h := x.versions[len(x.versions)-1]
		h.version, h.age = int64(len(x.versions)), time.Since(x.written)
		out = append(out, h)
	}
	return out, nil
}

func (s *parameters) create(ctx context.Context, h Holder) (taken bool, err error) {
	s.mu.Lock()
	_, taken = s.all[h.Epoch]
	s.mu.Unlock()
	if !taken {
		_, err = s.write(ctx, h)
	}
	return taken, err
}

func (s *parameters) write(_ context.Context, h Holder) (version int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.all[h.Epoch]
	if x == nil {
		x = &parameter{}
		s.all[h.Epoch] = x
	}
	x.versions, x.written = append(x.versions, h), time.Now()
	return int64(len(x.versions)), nil
}

func (s *parameters) read(_ context.Context, epoch int, version int64) (h Holder, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.all[epoch]; x != nil && version <= int64(len(x.versions)) {
		h = x.versions[version-1]
	}
	return h, nil
}

func (*parameters) kept() int64 { return 3 }

func (s *parameters) transient(error) bool { return false }

func (s *parameters) remove(_ context.Context, epoch int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, epoch)
	return nil
}

// point is a request of a process.
type point struct {
	who string
	n   int
}

// schedule is the fates that differ from the normal one.
type schedule map[point]fate

func (s schedule) String() string {
	var parts []string
	for x, f := range s {
		parts = append(parts, fmt.Sprintf("request %d of %s: %s", x.n, x.who, f))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// choice is a request, and the fates that it may have.
type choice struct {
	point
	fates []fate
}

// scenario is what does not change from schedule to schedule.
type scenario struct {
	store   func(t *testing.T) func(p *process) records
	shared  bool   // the store is in files of the machine of all processes
	second  Ending // how the second run ends
	earlier bool   // a run has ended before
	deletes bool   // the runs delete something
	rests   bool   // the runs write nothing for some heartbeats after every third write
}

// play lets two runs use the lock, and then a third one, with the fates of the schedule. It
// returns all requests, and what happened.
func (s scenario) play(t *testing.T, plan schedule) (choices []choice, events []event) {
	t.Helper()
	clocks := time.Now()
	synctest.Test(t, func(t *testing.T) {
		w := &world{began: time.Now(), clocks: clocks, store: s.store(t), deletes: s.deletes, rests: s.rests}
		if s.shared {
			w.shared = &machine{}
		}
		if s.earlier {
			w.next(t)
			w.events = nil
		}
		w.fates = func(p *process, n int, of []fate) fate {
			at := point{p.name, n}
			w.mu.Lock()
			defer w.mu.Unlock()
			choices = append(choices, choice{at, of})
			if f, ok := plan[at]; ok {
				return f
			}
			return normal
		}
		w.run(t.Context(), s)
		w.next(t)
		events = w.events
	})
	return choices, events
}

// run starts the runs, and waits until they have ended.
func (w *world) run(ctx context.Context, s scenario) {
	var all sync.WaitGroup
	a, ctxA := w.start(ctx, "first", 0)
	b, ctxB := w.start(ctx, "second", 7*time.Millisecond)
	c, ctxC := w.start(ctx, "third", 13*time.Millisecond)
	all.Go(func() { a.live(ctxA, 1, 22, Ending{}) })
	if s.deletes && s.second.Nothing {
		b.command = DeleteCommand
	}
	all.Go(func() {
		time.Sleep(21 * time.Second)
		b.live(ctxB, 7, 2, s.second)
		time.Sleep(time.Second)
		c.live(ctxC, 1, 4, Ending{})
	})
	all.Wait()
	w.background.Wait()
}

// next requires that one more run, which nothing disturbs, gets the lock.
func (w *world) next(t *testing.T) {
	t.Helper()
	w.fates = func(*process, int, []fate) fate { return normal }
	time.Sleep(2 * ConsistencyDelay) // so that listings show everything
	p, ctx := w.start(t.Context(), "next", 0)
	p.live(ctx, 3, 1, Ending{})
	last := w.events[len(w.events)-1]
	require.Equal(t, event{at: last.at, who: "next", what: releases}, last, "the next run gets the lock")
}

// account is what a run has done so far.
type account struct {
	created, wrote, paused time.Duration
	acquired, released     bool
	deletes                bool // it deletes the cluster
}

// broken says which promise of the lock the events break; "" for none: a run that another
// one has taken over from does not write any more, and if it has not released the lock, the
// other one takes it over a minute after its last write. A run that was paused with its
// clocks cannot know that: it may write until its next listing, or until its next heartbeat
// if something else goes wrong, too; and until that heartbeat, another run may take over.
func broken(plan schedule, events []event) string {
	grace := checkValidity
	if len(plan) > 1 {
		grace = heartbeatInterval
	}
	runs := map[string]*account{}
	for _, e := range events {
		if runs[e.who] == nil {
			runs[e.who] = &account{}
		}
		r := runs[e.who]
		switch e.what {
		case creates:
			r.created = e.at
		case acquires:
			r.acquired, r.deletes = true, e.deletes
		case releases:
			r.released = true
		case pauses:
			r.paused = e.at
		}
		for name, other := range runs {
			if late := e.what == deletes ||
				e.what == deletesLate; late && name != e.who && r.paused == 0 && other.acquired && other.created > r.created &&
				!other.deletes {
				return fmt.Sprintf("a request of %s deletes something at %s, after %s has taken over", e.who, e.at, name)
			}
		}
		unaware := func(d time.Duration) bool { return r.paused > 0 && e.at <= r.paused+long+d }
		if e.what == writesNow && !unaware(heartbeatInterval) {
			r.wrote = e.at
		}
		for name, other := range runs {
			earlier := name != e.who && other.created < r.created
			if since := e.at - other.wrote; earlier && e.what == acquires && other.wrote > 0 && !other.released && since < ConsistencyDelay {
				return fmt.Sprintf("%s takes over from %s %s after its last write", e.who, name, since)
			}
			if later := other.acquired && other.created > r.created; later && e.what == writesNow && !unaware(grace) {
				return fmt.Sprintf("%s writes at %s, after %s has taken over", e.who, e.at, name)
			}
		}
	}
	return ""
}

// among is how many requests of each run, from the first one on, may have another fate than
// the normal one. Later ones are alike.
const among = 20

// explorer plays all schedules with at most that many fates that are not normal.
type explorer struct {
	scenario
	most int
	sampled

	played, skipped int
	seen            map[string]int // how many schedules had such an event
}

func (x *explorer) explore(t *testing.T, plan schedule, after point) {
	t.Helper()
	choices, events := x.play(t, plan)
	x.played++
	had := map[string]bool{}
	for _, e := range events {
		had[e.who+" "+e.what] = true
	}
	for what := range had {
		x.seen[what]++
	}
	if why := broken(plan, events); why != "" {
		var story []string
		for _, e := range events {
			story = append(story, fmt.Sprintf("%10s %s %s", e.at.Round(time.Millisecond), e.who, e.what))
		}
		require.Fail(t, why, "schedule: %s\n%s", plan, strings.Join(story, "\n"))
	}
	if len(plan) == x.most {
		return
	}
	from := 1 + slices.IndexFunc(choices, func(c choice) bool { return c.point == after })
	for _, c := range choices[from:] {
		if c.n > among {
			continue
		}
		for _, f := range c.fates {
			if x.shared && slices.Contains(fatesOfNetworks, f) {
				continue
			}
			if x.skipped++; len(plan) == x.most-1 && x.skipped%x.stride != x.part {
				continue
			}
			longer := maps.Clone(plan)
			longer[c.point] = f
			x.explore(t, longer, c.point)
		}
	}
}

// The schedules of TestLockModel, TestLockModelOfParameters and TestLockModelOfFiles are all
// those with at most so many fates that are not normal, among the first 20 requests of each
// run. There are three runs: the first one begins at once and writes for two and a half
// minutes, the second one begins 21 seconds later and tries until it gets the lock, and the
// third one begins when the second one has ended, with or without the records. If it
// deletes them, there is one of an earlier run at the beginning. After all that, one more
// run must get the lock. A listing is a minute old at most, as ConsistencyDelay
// says. "make test" plays a sample of them.

// Two fates, with a store that promises no more than Parameter Store.
func TestLockModel(t *testing.T) {
	endings(t, func(t *testing.T, e Ending) {
		x := &explorer{
			most:    2,
			sampled: sampledBy(211),
			seen:    map[string]int{},
			scenario: scenario{second: e, earlier: e.Nothing, store: func(*testing.T) func(*process) records {
				s := &parameters{all: map[int]*parameter{}}
				return func(*process) records { return s }
			}},
		}
		x.explore(t, schedule{}, point{})
		x.requireVariety(t)
	})
}

// Runs that write nothing for some heartbeats prove only after them that they are in their own record.
func TestLockModelOfRests(t *testing.T) {
	endings(t, func(t *testing.T, e Ending) {
		x := &explorer{
			most:    2,
			sampled: sampledBy(211),
			seen:    map[string]int{},
			scenario: scenario{second: e, rests: true, store: func(*testing.T) func(*process) records {
				s := &parameters{all: map[int]*parameter{}}
				return func(*process) records { return s }
			}},
		}
		x.explore(t, schedule{}, point{})
		x.requireVariety(t)
	})
}

// One fate, with the simulated Parameter Store and the code that calls it.
func TestLockModelOfParameters(t *testing.T) {
	endings(t, func(t *testing.T, e Ending) {
		x := &explorer{most: 1, sampled: sampledBy(11), seen: map[string]int{}, scenario: scenario{second: e, store: func(*testing.T) func(*process) records {
			a := awssim.New(awssim.Options{})
			return func(*process) records { return &ssmRecords{New(a.Config(), "demo", Options{})} }
		}}}
		x.explore(t, schedule{}, point{})
		x.requireVariety(t)
	})
}

// Files, on one machine. Its clocks are those of all runs, and files are not read or written
// late.
func TestLockModelOfFiles(t *testing.T) {
	endings(t, func(t *testing.T, e Ending) {
		x := &explorer{
			most:    1,
			sampled: sampledBy(11),
			seen:    map[string]int{},
			scenario: scenario{second: e, shared: true, store: func(t *testing.T) func(*process) records {
				folder := t.TempDir()
				return func(p *process) records { return &fileRecords{folder: folder, clock: p.clients.Clock} }
			}},
		}
		x.explore(t, schedule{}, point{})
		x.requireVariety(t)
	})
}

// Requests that delete something may arrive as long as AWS accepts their signatures. A run
// that relies on what is there does not take over before that. The second run, if it deletes
// the cluster, takes over earlier, and releases the lock when none can arrive any more.
func TestLockModelOfDeletions(t *testing.T) {
	endings(t, func(t *testing.T, e Ending) {
		x := &explorer{
			most:    2,
			sampled: sampledBy(211),
			seen:    map[string]int{},
			scenario: scenario{second: e, deletes: true, store: func(*testing.T) func(*process) records {
				s := &parameters{all: map[int]*parameter{}}
				return func(*process) records { return s }
			}},
		}
		x.explore(t, schedule{}, point{})
		t.Logf("%d schedules: %v", x.played, x.seen)
		for _, what := range []string{"first " + deletes, "first " + deletesLate, "second " + deletesLate, "third " + deletes} {
			require.Positive(t, x.seen[what], what)
		}
	})
}

// A heartbeat from before a request to delete something, which arrives after the one that
// announces the request, does not hide it. The sample of TestLockModelOfDeletions does not
// have this schedule.
func TestLateHeartbeatHidesNoDeletion(t *testing.T) {
	s := scenario{deletes: true, store: func(*testing.T) func(*process) records {
		s := &parameters{all: map[int]*parameter{}}
		return func(*process) records { return s }
	}}
	found := 0
	for heartbeat := 3; heartbeat < 16; heartbeat++ {
		for deletion := heartbeat + 1; deletion < 24; deletion++ {
			plan := schedule{point{"first", heartbeat}: arrivesAfterLoss, point{"first", deletion}: diesUnderWay}
			choices, events := s.play(t, plan)
			require.Empty(t, broken(plan, events), "%s", plan)
			if slices.ContainsFunc(choices, func(c choice) bool {
				return c.point == point{"first", deletion} && slices.Contains(c.fates, diesUnderWay)
			}) {
				found++
			}
		}
	}
	require.Positive(t, found)
}

// sampled says which of the longest schedules are played: one in that many.
type sampled struct{ part, stride int }

// sampledBy is the part of "make sweep", or the sample of "make test".
func sampledBy(sample int) sampled {
	if part, of := sweep.Part(); of > 0 {
		return sampled{part, of}
	}
	return sampled{0, sample}
}

// endings runs a test for each way in which the second run may end.
func endings(t *testing.T, do func(t *testing.T, e Ending)) {
	t.Helper()
	for name, e := range map[string]Ending{"the cluster remains": {}, "the cluster is deleted": {Nothing: true}} {
		t.Run(name, func(t *testing.T) { do(t, e) })
	}
}

// requireVariety requires that the schedules include those that matter.
func (x *explorer) requireVariety(t *testing.T) {
	t.Helper()
	t.Logf("%d schedules: %v", x.played, x.seen)
	for _, what := range []string{"first " + releases, "second " + writesNow, "third " + writesNow} {
		require.Positive(t, x.seen[what], what)
	}
	if !x.shared {
		require.Positive(t, x.seen["first "+loses], "a run that another one has taken over from notices it")
	}
}
