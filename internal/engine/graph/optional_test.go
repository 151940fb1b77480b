package graph_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// only is a toy without Create, Update and Delete.
type only struct{ y *toy }

func (o only) Needs() []graph.Edge { return nil }

func (o only) Find(ctx context.Context, c *cloud.Clients) (*seen, error) { return o.y.Find(ctx, c) }

func (o only) Diff(have *seen) plan.Diff { return o.y.Diff(have) }

// A resource without Create is waited for; without Update it cannot be changed; without
// Delete it is deleted with the one that it is a part of.
func TestResourceWithoutMethods(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		graph.Add(b.g, "default", only{b.toy("default")})
		time.AfterFunc(20*time.Second, func() { b.put("default", b.toy("default").value) })
		b.mustApply()
		require.Greater(t, time.Since(b.began), 19*time.Second)
		require.NoError(t, b.engine().Delete(t.Context(), b.g))
		require.Empty(t, b.asked())
		require.True(t, b.exists("default"))
	})
	in(t, func(t *testing.T, b *bench) {
		b.put("odd", "another value")
		graph.Expect(b.g, "odd", only{b.toy("odd")})
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "value cannot be changed")
		require.Empty(t, b.asked())
	})
}

// tracked is a toy whose Find depends on its last state.
type tracked struct {
	*toy
	follows int
}

func (f *tracked) Follow(ctx context.Context, c *cloud.Clients, last *seen) (*seen, error) {
	if last.ID == "" {
		panic("there was nothing to follow")
	}
	f.follows++
	return f.Find(ctx, c)
}

// Follow receives the last state, from the second read on.
func TestFollow(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		f := &tracked{toy: b.toy("a")}
		f.takes = 20 * time.Second
		graph.Add(b.g, "a", f)
		b.mustApply()
		require.Positive(t, f.follows)
	})
}

// DeleteTime is that of the longest chain of deletions, including Outlives edges.
func TestDeleteTime(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		timed := func(name string, seconds int, needs ...[]graph.Edge) *graph.Ref[seen] {
			y := b.toy(name, needs...)
			y.hintOff = time.Duration(seconds) * time.Second
			return b.add(y)
		}
		require.Zero(t, b.g.DeleteTime(nil))
		vpc := timed("vpc", 1)
		nat := timed("nat", 60, graph.On(vpc))
		timed("table", 5, graph.Outlives(nat), graph.Awaits(vpc))
		timed("reader", 30, graph.Reads(nat))
		require.Equal(t, 65*time.Second, b.g.DeleteTime(nil), "the gateway, then the table")
		require.Equal(t, 30*time.Second, b.g.DeleteTime(func(id plan.ID) bool { return id != "nat" }), "but for what is deleted already")
		require.Equal(t, 5*time.Second, b.g.DeleteTime(func(id plan.ID) bool { return id == "table" }))
		require.Equal(t, map[graph.Resource]bool{nat: true}, b.g.Before(vpc))
		require.Empty(t, b.g.Before(nat))
	})
}

// Nothing is waited for that is gone with what it was a part of, and a load balancer counts with the
// interfaces that it leaves.
func TestDeletedWithTakesNoTime(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		timed := func(name string, needs ...[]graph.Edge) *toy {
			y := b.toy(name, needs...)
			y.hintOff = 15 * time.Minute
			return y
		}
		cluster := timed("cluster")
		cluster.hintOff = 3 * time.Minute
		owner := b.add(cluster)
		b.add(timed("provider", graph.DeletedWith(owner)))
		groups := b.add(b.toy("groups"))
		graph.Add(b.g, "balancer", &lingering{b.toy("balancer", graph.On(groups))})
		b.mustApply()
		require.Equal(t, 4*time.Minute, b.g.DeleteTime(nil))
		require.Equal(t, 15*time.Minute, b.g.DeleteTime(func(id plan.ID) bool { return id == "provider" }))
		began := b.x.Cloud.Clock.Now()
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.Less(t, b.x.Cloud.Clock.Since(began), 4*time.Minute, "the provider is gone with its cluster")
	})
}

// lingering leaves something for four minutes.
type lingering struct{ *toy }

func (*lingering) Lingers() time.Duration { return 4 * time.Minute }

// CreateTime counts only the resources to create.
func TestCreateTimeOfAPart(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		vpc := b.toy("vpc")
		vpc.hint = time.Minute
		nat := b.toy("nat", graph.On(b.add(vpc)))
		nat.hint = time.Hour
		b.add(nat)
		require.Equal(t, time.Hour, b.g.CreateTime(func(id plan.ID) bool { return id == "nat" }))
	})
}

// A circular order of deletion is refused.
func TestCircle(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		a := b.add(b.toy("a"))
		c := b.add(b.toy("c", graph.On(a)))
		b.add(b.toy("d", graph.Outlives(a), graph.On(c)))
		require.ErrorContains(t, b.x.Delete(t.Context(), b.g), "[d c a]")
		require.Empty(t, b.asked())
	})
}

// limited is a state with a TimeLimit.
type limited struct{ seen }

func (limited) TimeLimit() time.Duration { return 2 * time.Minute }

type slow struct{ y *toy }

func (s slow) Needs() []graph.Edge { return nil }

func (s slow) Find(ctx context.Context, c *cloud.Clients) (*limited, error) {
	have, err := s.y.Find(ctx, c)
	if have == nil {
		return nil, err
	}
	return &limited{*have}, err
}

func (s slow) Diff(have *limited) plan.Diff { return s.y.Diff(&have.seen) }

// A state may have a TimeLimit.
func TestTimeLimitOfAState(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", b.toy("a").value)
		b.toys["a"].ready = time.Now().Add(time.Hour)
		graph.Add(b.g, "a", slow{b.toy("a")})
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "gave up after 2m0s")
	})
}
