package graph_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The last event of each resource is one of done, kept, failed and blocked.
func TestEveryResourceEndsOnce(t *testing.T) {
	final := []plan.What{plan.Done, plan.Kept, plan.Failed, plan.Blocked}
	requireEnds := func(b *bench) {
		b.t.Helper()
		for _, n := range b.g.Resources() {
			events := b.of(n.ID())
			ends := slices.DeleteFunc(slices.Clone(events), func(w plan.What) bool { return !slices.Contains(final, w) })
			require.Len(b.t, ends, 1, "%s: %v", n.ID(), events)
			require.Equal(b.t, ends[0], events[len(events)-1], n.ID())
		}
	}
	build := func(b *bench) {
		var before graph.Resource
		for i := range 40 {
			y := b.toy(fmt.Sprintf("toy-%d", i))
			y.takes, y.goes, y.call = time.Duration(i%3)*20*time.Second, time.Duration(i%2)*time.Second, time.Duration(i)*time.Millisecond
			y.hintOff = y.goes
			if i%4 == 0 {
				b.put(y.name, "v")
			}
			if before != nil && i%5 != 0 {
				y.needs = graph.On(before)
			}
			before = b.add(y)
		}
	}
	in(t, func(t *testing.T, b *bench) {
		build(b)
		b.mustApply()
		requireEnds(b)
		b.events = nil
		b.x = b.engine()
		b.mustApply()
		for _, n := range b.g.Resources() {
			require.Equal(t, []plan.What{plan.Kept}, b.of(n.ID()))
		}
		b.events = nil
		require.NoError(t, b.engine().Delete(t.Context(), b.g))
		requireEnds(b)
	})
	in(t, func(t *testing.T, b *bench) {
		build(b)
		b.fail("create toy-7", fault{err: refusal("InvalidParameterValue")})
		require.Error(t, b.x.Apply(t.Context(), b.g))
		requireEnds(b)
	})
	in(t, func(t *testing.T, b *bench) {
		build(b)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		require.Error(t, b.x.Apply(ctx, b.g))
		requireEnds(b)
	})
}

// Events say what the run does, what it waits for, how long, and the cloud ID.
func TestEvents(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y := b.toy("a")
		y.takes, y.hint = 90*time.Second, 100*time.Second
		b.add(y)
		b.mustApply()
		require.Equal(t, []plan.What{plan.Creating, plan.Waiting, plan.Done}, b.of("a"))
		require.Equal(t, 100*time.Second, b.first("a", plan.Creating).Expected)
		waiting := b.first("a", plan.Waiting)
		require.Equal(t, "ready to become true, is false", waiting.Detail)
		require.Equal(t, "id-a", waiting.CloudID)
		done := b.first("a", plan.Done)
		require.Equal(t, "id-a", done.CloudID)
		require.InDelta(t, 100, done.Took.Seconds(), 2)
		require.Equal(t, time.Now(), done.At)
	})
}

// CreateTime is the longest path, in which an Exists edge takes no time.
func TestExpected(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		timed := func(name string, seconds int, needs ...[]graph.Edge) *graph.Ref[seen] {
			y := b.toy(name, needs...)
			y.hint = time.Duration(seconds) * time.Second
			return b.add(y)
		}
		require.Zero(t, b.g.CreateTime(nil))
		vpc := timed("vpc", 1)
		nat := timed("nat", 100, graph.On(vpc))
		lb := timed("lb", 150, graph.Exists(vpc))
		require.Equal(t, 150*time.Second, b.g.CreateTime(nil))
		timed("machine", 30, graph.On(nat), graph.Exists(lb))
		require.Equal(t, 150*time.Second, b.g.CreateTime(nil))
		timed("second", 30, graph.On(b.g.Resource("machine")))
		require.Equal(t, 161*time.Second, b.g.CreateTime(nil))
		for _, n := range b.g.Resources() {
			n.(*graph.Ref[seen]).Desired().(*toy).takes, _ = n.Takes()
		}
		b.mustApply()
		require.InDelta(t, 161, time.Since(b.began).Seconds(), 5, "what an apply takes")
	})
}

// Add panics on mistakes in the program.
func TestGraphRefusesMistakes(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		a := b.add(b.toy("a"))
		require.PanicsWithValue(t, "graph: resource a added twice", func() { b.add(b.toy("a")) })
		other := graph.New()
		require.PanicsWithValue(t, "graph: resource b needs a, which is not in the graph", func() {
			graph.Add(other, "b", b.toy("b", graph.On(a)))
		})
		require.Nil(t, b.g.Resource("c"))
		require.Equal(t, "nat-gateway", plan.ID("nat-gateway/us-east-1a").Kind())
		var none *graph.Ref[seen]
		require.Empty(t, graph.On(none, nil), "what is nil is no need")
	})
}
