package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A new resource that AWS does not show yet is not created again.
func TestWaitsUntilCreatedIsVisible(t *testing.T) {
	for _, silent := range []bool{false, true} {
		in(t, func(t *testing.T, b *bench) {
			b.lag = 40 * time.Second
			y := b.toy("a")
			y.silent = silent
			b.add(y)
			b.mustApply()
			require.Equal(t, []string{"create a"}, b.asked())
		})
	}
}

// After "already exists", the executor waits: the resource was created a moment ago and
// is not visible yet. After a minute, it is an error.
func TestExistsAlready(t *testing.T) {
	in(t, func(_ *testing.T, b *bench) {
		b.put("a", "v")
		b.toys["a"].born, b.lag = time.Now(), 20*time.Second
		b.fail("create a", slices.Repeat([]fault{{err: refusal("InvalidGroup.Duplicate")}}, 100)...)
		b.add(b.toy("a"))
		b.mustApply()
	})
	in(t, func(t *testing.T, b *bench) {
		b.fail("create a", slices.Repeat([]fault{{err: refusal("InvalidGroup.Duplicate")}}, 100)...)
		b.add(b.toy("a"))
		began := time.Now()
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "a: create: api error InvalidGroup.Duplicate")
		require.InDelta(t, cloud.ConsistencyDelay.Seconds(), time.Since(began).Seconds(), 10)
	})
}

// After "not found" for a dependency, the executor waits: it may have been created a
// moment ago. After a minute, it is an error.
func TestNotFoundYet(t *testing.T) {
	for _, call := range []string{"create", "update"} {
		in(t, func(t *testing.T, b *bench) {
			if call == "update" {
				b.put("a", "old")
			}
			b.fail(call+" a", slices.Repeat([]fault{{err: refusal("InvalidSubnetID.NotFound")}}, 3)...)
			b.add(b.toy("a"))
			b.mustApply()
			require.Len(t, b.when(call+" a"), 4)
			require.Equal(t, "v", b.toys["a"].Value)
		})
		in(t, func(t *testing.T, b *bench) {
			if call == "update" {
				b.put("a", "old")
			}
			b.fail(call+" a", slices.Repeat([]fault{{err: refusal("InvalidSubnetID.NotFound")}}, 100)...)
			b.add(b.toy("a"))
			began := time.Now()
			require.ErrorContains(t, b.x.Apply(t.Context(), b.g), call+": api error InvalidSubnetID.NotFound")
			require.InDelta(t, cloud.ConsistencyDelay.Seconds(), time.Since(began).Seconds(), 10)
		})
	}
}

// A create call that returns NotYet is repeated.
func TestCreateSaysNotYet(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.fail("create a", fault{err: graph.NotYet(refusal("ItsNameIsBeingDeleted"))})
		b.add(b.toy("a"))
		b.mustApply()
		require.Len(t, b.when("create a"), 2)
		require.Contains(t, b.first("a", plan.Waiting).Detail, "ItsNameIsBeingDeleted")
	})
}

// When the answer to a create call is lost, the executor waits until AWS must show what
// was created, reads, and only then calls again.
func TestLostAnswerToCreate(t *testing.T) {
	for _, after := range []bool{false, true} {
		in(t, func(t *testing.T, b *bench) {
			b.lag = 5 * time.Second
			b.fail("create a", fault{lost(), after})
			b.add(b.toy("a"))
			b.mustApply()
			asked := b.when("create a")
			if after {
				require.Len(t, asked, 1, "created twice")
			} else {
				require.Len(t, asked, 2)
				require.GreaterOrEqual(t, asked[1]-asked[0], cloud.ConsistencyDelay)
			}
			require.False(t, b.x.LostAnswers())
		})
	}
}

// An error from before any request is no lost answer: the run ends at once.
func TestErrorBeforeTheRequest(t *testing.T) {
	for _, what := range []string{"create", "update", "delete"} {
		in(t, func(t *testing.T, b *bench) {
			y := b.toy("a")
			b.add(y)
			if what != "create" {
				b.mustApply()
				y.value = "other"
			}
			b.fail(what+" a", fault{err: fmt.Errorf("bootstrap data: %w", errors.New("user data is 672 bytes too large"))})
			began := time.Now()
			do := b.x.Apply
			if what == "delete" {
				do = b.x.Delete
			}
			require.ErrorContains(t, do(t.Context(), b.g), "672 bytes too large")
			require.Len(t, b.when(what+" a"), 1)
			require.False(t, b.x.LostAnswers())
			require.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

// After three lost answers the run fails, and LostAnswers reports true.
func TestLostAnswersReported(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.fail("create a", slices.Repeat([]fault{{lost(), false}}, 10)...)
		b.add(b.toy("a"))
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "connection reset")
		require.Len(t, b.when("create a"), 3)
		require.True(t, b.x.LostAnswers())
	})
}

// A run that fails checks what it has created: LostAnswers is true only if some of it is
// not visible yet.
func TestChecksCreatedAfterFailure(t *testing.T) {
	for _, lag := range []time.Duration{0, 30 * time.Second} {
		in(t, func(t *testing.T, b *bench) {
			b.lag = lag
			b.add(b.toy("a"))
			bad := b.toy("bad")
			bad.call = 2 * time.Second
			b.fail("create bad", fault{err: refusal("InvalidParameterValue")})
			b.add(bad)
			require.Error(t, b.x.Apply(t.Context(), b.g))
			require.Equal(t, lag > 0, b.x.LostAnswers())
		})
	}
}

// After an interrupt while an answer is lost, LostAnswers is true at once.
func TestInterruptWhileAnswerIsLost(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y := b.toy("a")
		y.call = 10 * time.Second
		b.fail("create a", fault{lost(), true})
		b.add(y)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.Error(t, b.x.Apply(ctx, b.g))
		require.True(t, b.x.LostAnswers())
		require.Len(t, b.when("create a"), 1)
	})
}

// Updates and deletions whose answers are lost are repeated: both are idempotent.
func TestLostAnswersToOtherCalls(t *testing.T) {
	for _, after := range []bool{false, true} {
		in(t, func(t *testing.T, b *bench) {
			b.put("a", "old")
			b.fail("update a", fault{lost(), after})
			b.fail("delete a", fault{lost(), after})
			b.add(b.toy("a"))
			b.mustApply()
			require.Equal(t, "v", b.toys["a"].Value)
			require.NoError(t, b.engine().Delete(t.Context(), b.g))
			require.False(t, b.exists("a"))
		})
	}
}

// An error of Find fails the resource, in a plan and in an apply.
func TestFindFails(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "v")
		b.fail("find a", fault{err: refusal("UnauthorizedOperation")})
		a := b.add(b.toy("a"))
		b.add(b.toy("next", graph.On(a)))
		_, err := b.x.Plan(t.Context(), b.g)
		require.EqualError(t, err, "a: read: api error UnauthorizedOperation: no")
		require.Empty(t, b.asked())
	})
}

// A thousand resources of a kind share their queries.
func TestResourcesShareQueries(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		for i := range 1000 {
			y := b.toy(fmt.Sprintf("toy-%d", i))
			y.takes, y.hint = 100*time.Second, 100*time.Second
			b.add(y)
		}
		b.mustApply()
		require.LessOrEqual(t, len(b.listings), 4, "%v", b.listings)
	})
}

// The first read comes when AWS is expected to have finished, the next ones after one
// second and then less often, at most every five seconds.
func TestPolling(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y := b.toy("a")
		y.takes, y.hint = 130*time.Second, 100*time.Second
		b.add(y)
		b.mustApply()
		looks := b.listings[1:] // the first is that of the plan
		require.GreaterOrEqual(t, looks[0], 100*time.Second)
		require.LessOrEqual(t, looks[0], 102*time.Second)
		var gaps []time.Duration
		for i := 1; i < len(looks); i++ {
			gaps = append(gaps, looks[i]-looks[i-1])
		}
		require.LessOrEqual(t, slices.Max(gaps), 5*time.Second)
		require.LessOrEqual(t, len(looks), 12)
		require.Less(t, time.Since(b.began), 136*time.Second)
	})
}

// A read that fails because of throttling or the connection is an error of its resource:
// nothing is assumed to be missing.
func TestErrorIsNotAbsence(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.fail("find a", fault{err: errors.New("no route to host")})
		b.add(b.toy("a"))
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "no route to host")
		require.Empty(t, b.asked())
	})
}
