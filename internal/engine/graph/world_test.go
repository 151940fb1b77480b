package graph_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// world is a cloud that contains toys, identified by name.
type world struct {
	mu       sync.Mutex
	began    time.Time
	toys     map[string]*made
	serial   int
	faults   map[string][]fault // by call, as "create a": the first is for the next call
	diary    []entry
	listings []time.Duration // times of the calls that list toys
	lag      time.Duration   // how long a new toy is not visible
}

// made is a toy in the world.
type made struct {
	ID, Value   string
	born, ready time.Time
	dies        time.Time // zero: it exists
}

// fault is a failure of a call.
type fault struct {
	err   error
	after bool // the call has its effect nevertheless
}

// entry is one write call.
type entry struct {
	what string
	at   time.Duration
}

// seen is the observed state of a toy.
type seen struct {
	ID, Value string
	Ready     bool
	Leaves    bool // the world is deleting it
}

// CloudID implements graph.State.
func (s seen) CloudID() string { return s.ID }

// Deleting implements graph.Deleting.
func (s seen) Deleting() bool { return s.Leaves }

// toy is the desired state of a toy.
type toy struct {
	w     *world
	name  string
	value string
	needs []graph.Edge

	takes, goes   time.Duration // how long the world takes
	call          time.Duration // how long a write takes
	hint, hintOff time.Duration // how long Takes says
	fixed, lazy   bool          // the value cannot be changed; an update is accepted and does nothing
	reads         func() string // replaces value, with one that becomes known late
	returns       int           // how often another appears when it is deleted
	silent        bool          // Create and Update return no state
}

var _ graph.Desired[seen] = (*toy)(nil)

func (y *toy) Needs() []graph.Edge { return y.needs }

func (y *toy) Takes() (create, remove time.Duration) { return y.hint, y.hintOff }

func (y *toy) Find(ctx context.Context, c *cloud.Clients) (*seen, error) {
	all, err := cloud.Remember(ctx, c, "toys", y.w.list)
	if err != nil {
		return nil, err
	}
	s, ok := all[y.name]
	if !ok {
		return nil, y.w.take("find " + y.name).err
	}
	return &s, y.w.take("find " + y.name).err
}

func (y *toy) wanted() string {
	if y.reads != nil {
		return y.reads()
	}
	return y.value
}

func (y *toy) Diff(have *seen) (d plan.Diff) {
	if have.ID != "" {
		d.Await("ready", have.Ready, true)
	}
	if y.fixed {
		d.Fixed("value", have.Value, y.wanted())
	} else {
		d.Set("value", have.Value, y.wanted())
	}
	return d
}

func (y *toy) Create(ctx context.Context, _ *cloud.Clients) (*seen, error) {
	return y.act(ctx, "create "+y.name, func(now time.Time) {
		y.w.serial++
		y.w.toys[y.name] = &made{ID: "id-" + y.name, Value: y.wanted(), born: now, ready: now.Add(y.takes)}
	})
}

func (y *toy) Update(ctx context.Context, _ *cloud.Clients, _ *seen, _ plan.Diff) (*seen, error) {
	return y.act(ctx, "update "+y.name, func(time.Time) {
		if !y.lazy {
			y.w.toys[y.name].Value = y.wanted()
		}
	})
}

func (y *toy) Delete(ctx context.Context, _ *cloud.Clients, _ *seen) error {
	_, err := y.act(ctx, "delete "+y.name, func(now time.Time) {
		if m := y.w.toys[y.name]; m != nil && y.returns == 0 {
			m.dies = now.Add(y.goes)
		}
		y.returns = max(0, y.returns-1)
	})
	return err
}

// act executes a call, unless there is a fault for it.
func (y *toy) act(ctx context.Context, what string, do func(now time.Time)) (*seen, error) {
	w := y.w
	w.write(what)
	timer := time.NewTimer(y.call)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f := w.take(what)
	if f.err != nil && !f.after {
		return nil, f.err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	do(time.Now())
	if f.err != nil || y.silent {
		return nil, f.err
	}
	s := w.toys[y.name].seen()
	if y.lazy && s != nil {
		s.Value = y.wanted() // accepted, and without effect
	}
	return s, nil
}

func (m *made) seen() *seen {
	if m == nil {
		return nil
	}
	return &seen{ID: m.ID, Value: m.Value, Ready: !time.Now().Before(m.ready), Leaves: !m.dies.IsZero()}
}

func (w *world) list(context.Context) (map[string]seen, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.listings = append(w.listings, now.Sub(w.began))
	all := map[string]seen{}
	for name, m := range w.toys {
		if !m.dies.IsZero() && !now.Before(m.dies) {
			delete(w.toys, name)
		} else if now.Sub(m.born) >= w.lag {
			all[name] = *m.seen()
		}
	}
	return all, nil
}

func (w *world) take(what string) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults[what]) == 0 {
		return fault{}
	}
	f := w.faults[what][0]
	w.faults[what] = w.faults[what][1:]
	return f
}

// fail injects faults into the next calls.
func (w *world) fail(what string, faults ...fault) {
	w.faults[what] = append(w.faults[what], faults...)
}

func (w *world) write(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diary = append(w.diary, entry{what, time.Since(w.began)})
}

// when returns the times of a call.
func (w *world) when(what string) (at []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.diary {
		if e.what == what {
			at = append(at, e.at)
		}
	}
	return at
}

// asked lists the write calls in order.
func (w *world) asked() (what []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.diary {
		what = append(what, e.what)
	}
	return what
}

// exists reports whether a toy exists.
func (w *world) exists(name string) bool {
	all, _ := w.list(context.Background())
	_, ok := all[name]
	return ok
}

// put adds a toy that was created long ago.
func (w *world) put(name, value string) {
	w.toys[name] = &made{ID: "id-" + name, Value: value}
}

// toy returns a desired toy and its edges.
func (w *world) toy(name string, needs ...[]graph.Edge) *toy {
	return &toy{w: w, name: name, value: "v", needs: slices.Concat(needs...)}
}

// listener collects events, and checks that they arrive one at a time.
type listener struct {
	t      *testing.T
	busy   atomic.Bool
	mu     sync.Mutex
	events []plan.Event
}

func (l *listener) hear(e plan.Event) {
	if !l.busy.CompareAndSwap(false, true) {
		l.t.Error("two events at the same time")
	}
	for range 10 {
		runtime.Gosched()
	}
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
	l.busy.Store(false)
}

// of lists the types of a resource's events, in order.
func (l *listener) of(id plan.ID) (out []plan.What) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Resource == id {
			out = append(out, e.What)
		}
	}
	return out
}

// first returns the first event of a type.
func (l *listener) first(id plan.ID, what plan.What) plan.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.events, func(e plan.Event) bool { return e.Resource == id && e.What == what })
	require.GreaterOrEqual(l.t, i, 0, "%s was never %s", id, what)
	return l.events[i]
}

// bench is a world and an executor for it.
type bench struct {
	*world
	*listener
	t *testing.T
	g *graph.Graph
	x *graph.Executor
}

// in runs a test in its own world, in virtual time.
func in(t *testing.T, do func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			world: &world{began: time.Now(), toys: map[string]*made{}, faults: map[string][]fault{}}, listener: &listener{t: t}, t: t, g: graph.New(),
		}
		b.x = b.engine()
		do(t, b)
	})
}

// engine returns the executor of a new process.
func (b *bench) engine() *graph.Executor {
	clients := cloud.New(aws.Config{Region: "us-east-1"}, "demo", cloud.Options{})
	return &graph.Executor{Cloud: clients, Observe: b.hear}
}

// add adds a toy to the graph by its name.
func (b *bench) add(y *toy, opts ...graph.Option) *graph.Ref[seen] {
	return graph.Add(b.g, plan.ID(y.name), y, opts...)
}

func (b *bench) mustApply() {
	b.t.Helper()
	require.NoError(b.t, b.x.Apply(b.t.Context(), b.g))
}

// errors as AWS gives them.
func refusal(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "no", Fault: smithy.FaultClient}
}

func lost() error { return &smithyhttp.RequestSendError{Err: errors.New("connection reset by peer")} }
