package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// seesaw is a resource whose accepted updates lead from one state to the next, of which none
// is the desired one.
type seesaw struct {
	at      int
	next    func(at int) int
	fields  func(at int) []string // those that differ
	updates []time.Time
}

type position struct{ At int }

// CloudID implements graph.State.
func (p position) CloudID() string { return "seesaw" }

func (s *seesaw) Needs() []graph.Edge { return nil }

func (s *seesaw) Find(context.Context, *cloud.Clients) (*position, error) {
	return &position{s.at}, nil
}

func (s *seesaw) Diff(have *position) (d plan.Diff) {
	for _, f := range s.fields(have.At) {
		d.Set(f, fmt.Sprint(have.At), "straight")
	}
	return d
}

func (s *seesaw) Update(context.Context, *cloud.Clients, *position, plan.Diff) (*position, error) {
	s.updates = append(s.updates, time.Now())
	s.at = s.next(s.at)
	return &position{s.at}, nil
}

func swinging(states int) *seesaw {
	return &seesaw{next: func(at int) int { return (at + 1) % states }, fields: func(int) []string { return []string{"angle"} }}
}

// A resource whose accepted updates lead back to an earlier state fails after a few of them,
// each later than the one before, and the error has the states.
func TestSwingingResourceFails(t *testing.T) {
	for states, want := range map[int]string{
		2: `swing: does not converge: AWS accepted 6 updates, and the resource differs again after each: it has angle "0" instead of "straight", ` +
			`then angle "1" instead of "straight"; either two lines of the manifest set the same value, or something else changes it`,
		100: `then angle "2" instead of "straight", then 3 other states; either`,
	} {
		in(t, func(t *testing.T, b *bench) {
			s := swinging(states)
			graph.Add(b.g, "swing", s)
			began := time.Now()
			err := b.x.Apply(t.Context(), b.g)
			require.ErrorContains(t, err, want)
			require.ErrorAs(t, err, new(*graph.NotConvergingError))
			require.Len(t, s.updates, 6)
			require.Less(t, time.Since(began), 2*time.Minute)
			for i := range s.updates[1:] {
				require.GreaterOrEqual(t, s.updates[i+1].Sub(s.updates[i]), 2*time.Second<<i)
			}
		})
	}
}

// States with fewer differences and with more in turn are no progress.
func TestSwingingBetweenMoreAndFewerDifferences(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		s := swinging(1000)
		s.fields = func(at int) []string { return []string{"a", "b"}[:1+at%2] }
		graph.Add(b.g, "swing", s)
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "does not converge")
		require.Less(t, len(s.updates), 15)
	})
}

// Updates that leave fewer differences each time follow one another without a pause.
func TestUpdatesThatHelpDoNotPause(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		fields := make([]string, 30)
		for i := range fields {
			fields[i] = fmt.Sprint("field ", i)
		}
		s := &seesaw{next: func(at int) int { return at + 1 }, fields: func(at int) []string { return fields[at:] }}
		graph.Add(b.g, "steps", s)
		began := time.Now()
		require.NoError(t, b.x.Apply(t.Context(), b.g))
		require.Len(t, s.updates, 30)
		require.Zero(t, time.Since(began))
	})
}

// An interrupt, and the timeout of the run, also end a resource that never waits.
func TestStopEndsAResourceThatNeverWaits(t *testing.T) {
	stop := errors.New("stopped")
	in(t, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &seesaw{next: func(at int) int { return at + 1 }, fields: func(at int) []string { return make([]string, 1000-at) }}
		update := s.next
		s.next = func(at int) int {
			if at == 10 {
				cancel(stop)
			}
			return update(at)
		}
		graph.Add(b.g, "endless", s)
		require.ErrorIs(t, b.x.Apply(ctx, b.g), stop)
		require.Len(t, s.updates, 11)
	})
}

// A resource that AWS never shows, although it accepts the creation, is not created for ever.
func TestVanishingResourceFails(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y := b.toy("ghost")
		y.silent = true
		b.lag = 24 * time.Hour
		b.add(y)
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "ghost: create: AWS has accepted it 5 times, and does not show it")
		require.Len(t, b.asked(), 5)
	})
}

// patient is a resource that AWS may give up on.
type patient struct {
	w                 *world
	reasons           []string // why the creations fail, in order; "" for one that does not
	status            string
	ready             time.Time
	repairs, creating int
	stubborn          bool // Update does not repair it
}

type health struct{ Status, Reason string }

// CloudID implements graph.State.
func (h health) CloudID() string { return "patient" }

// Failure implements graph.Failing.
func (h health) Failure() string {
	if h.Status == "FAILED" {
		return h.Status + ": " + h.Reason
	}
	return ""
}

func (p *patient) Needs() []graph.Edge { return nil }

func (p *patient) Find(context.Context, *cloud.Clients) (*health, error) {
	if p.status == "CREATING" && !time.Now().Before(p.ready) {
		p.status = "ACTIVE"
		if p.reasons[0] != "" {
			p.status = "FAILED"
		}
	}
	if p.status == "" {
		return nil, nil
	}
	return &health{p.status, p.reasons[0]}, nil
}

func (p *patient) Diff(have *health) (d plan.Diff) {
	if have.Status == "FAILED" && !p.stubborn {
		d.Set("status", have.Failure(), "created again")
		return d
	}
	d.Await("status", have.Status, "ACTIVE")
	return d
}

func (p *patient) Create(context.Context, *cloud.Clients) (*health, error) {
	p.creating++
	p.status, p.ready = "CREATING", time.Now().Add(time.Minute)
	return &health{Status: p.status}, nil
}

func (p *patient) Update(context.Context, *cloud.Clients, *health, plan.Diff) (*health, error) {
	p.repairs++
	p.status, p.reasons = "", p.reasons[1:]
	return &health{Status: "DELETING"}, nil
}

// A resource that AWS gives up on ends the wait at once, with AWS's reason. The next run
// repairs it; if that fails, it ends at once, too.
func TestFailureEndsTheWait(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		p := &patient{w: b.world, reasons: []string{"NoCapacity: none left", "NoPermission: no", ""}}
		for i, want := range []string{
			"patient: AWS reports FAILED: NoCapacity: none left", "patient: AWS reports FAILED: NoPermission: no", "",
		} {
			b.g, b.x = graph.New(), b.engine()
			graph.Add(b.g, "patient", p)
			began := time.Now()
			if err := b.x.Apply(t.Context(), b.g); want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, want)
			}
			require.Less(t, time.Since(began), 2*time.Minute, "run %d", i)
			require.Equal(t, i, p.repairs, "a run repairs what had failed before it, and nothing that fails in it")
			require.Equal(t, i+1, p.creating)
		}
	})
}

// A resource that had failed before the run, and that no update repairs, is an error at once.
func TestFailureThatNothingRepairs(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		graph.Add(b.g, "patient", &patient{w: b.world, status: "FAILED", reasons: []string{"NoPermission: no"}, stubborn: true})
		began := time.Now()
		require.EqualError(t, b.x.Apply(t.Context(), b.g), "patient: AWS reports FAILED: NoPermission: no")
		require.Zero(t, time.Since(began))
	})
}

// stubborn is a resource whose accepted updates change nothing. AWS says when it has ended them, or an
// update deletes the resource, and Create follows.
type stubborn struct {
	field            string
	tells, recreated bool
	gone             bool
	updated          time.Time
	updates          int
}

type stubbornState struct{ ended bool }

func (stubbornState) CloudID() string { return "stubborn" }

// Updated implements graph.Finishing.
func (s stubbornState) Updated() bool { return s.ended }

func (s *stubborn) Needs() []graph.Edge { return nil }

func (s *stubborn) Takes() (create, remove time.Duration) { return 15 * time.Minute, 0 }

func (s *stubborn) Find(context.Context, *cloud.Clients) (*stubbornState, error) {
	if s.gone {
		return nil, nil
	}
	return &stubbornState{s.tells && !s.updated.IsZero() && time.Since(s.updated) > 15*time.Minute}, nil
}

func (s *stubborn) Diff(*stubbornState) (d plan.Diff) {
	d.Set(s.field, "old", "new")
	return d
}

func (s *stubborn) Create(context.Context, *cloud.Clients) (*stubbornState, error) {
	s.gone = false
	return &stubbornState{}, nil
}

func (s *stubborn) Update(context.Context, *cloud.Clients, *stubbornState, plan.Diff) (*stubbornState, error) {
	s.updates++
	s.updated, s.gone = time.Now(), s.recreated
	return nil, nil
}

// TestUpdatesThatHaveEnded checks how long a run waits for the effect of an update: one minute after its end
// if the end is known, because AWS reports it or the resource was created again. Updates of tags end at once.
// For other updates, the run waits five times their usual duration.
func TestUpdatesThatHaveEnded(t *testing.T) {
	for _, c := range []struct {
		s      stubborn
		within time.Duration
		told   string
	}{
		{stubborn{field: "size", tells: true}, 17 * time.Minute, "does not converge: AWS accepted an update"},
		{stubborn{field: "size", recreated: true}, 17 * time.Minute, "does not converge: AWS accepted an update"},
		{stubborn{field: "tag Name"}, 6 * time.Minute, "does not converge: AWS accepted an update"},
		{stubborn{field: "size"}, 76 * time.Minute, "and 1h15m5s later the resource still has"},
	} {
		in(t, func(t *testing.T, b *bench) {
			graph.Add(b.g, "stubborn", &c.s)
			began := time.Now()
			require.ErrorContains(t, b.x.Apply(t.Context(), b.g), c.told)
			require.Less(t, time.Since(began), c.within, "%+v", c.s)
			require.Equal(t, 1, c.s.updates)
		})
	}
}
