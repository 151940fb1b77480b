package graph_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// find is a lookup of an existing toy.
func (b *bench) find(name string) graph.Lookup[seen] { return b.toy(name).Find }

// Deletion is in reverse order: with an edge of On, the needed resource is deleted last.
func TestDeleteGoesBackwards(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		slow := b.toy("nat")
		slow.goes, slow.hintOff = time.Minute, time.Minute
		vpc := b.add(b.toy("vpc"))
		subnet := b.add(b.toy("subnet", graph.Exists(vpc)))
		slow.needs = graph.On(subnet)
		b.add(slow)
		b.mustApply()
		require.NoError(t, b.engine().Delete(t.Context(), b.g))
		require.Equal(t, []string{"delete nat", "delete subnet", "delete vpc"}, b.asked()[3:])
		require.GreaterOrEqual(t, b.when("delete subnet")[0]-b.when("delete nat")[0], time.Minute)
		require.False(t, b.exists("vpc"))
	})
}

// Loose edges have no effect on deletion; Outlives reverses the order.
func TestLooseEdgesOnDelete(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("read", "v")
		b.put("reader", "v")
		b.put("short", "v")
		b.put("long", "v")
		slowly := func(name string, needs ...[]graph.Edge) *toy {
			y := b.toy(name, needs...)
			y.goes, y.hintOff = time.Minute, time.Minute
			return y
		}
		read := b.add(slowly("read"))
		b.add(slowly("reader", graph.Reads(read), graph.Awaits(read)))
		short := b.add(slowly("short"))
		b.add(slowly("long", graph.Outlives(short)))
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.Equal(t, b.when("delete read"), b.when("delete reader"))
		require.GreaterOrEqual(t, b.when("delete long")[0]-b.when("delete short")[0], time.Minute)
	})
}

// A resource that is deleted after all others waits also for those that are added later, except
// for one that an edge makes wait for it.
func TestDeletedAfter(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		for _, name := range []string{"keys", "marker", "machine", "record"} {
			b.put(name, "v")
		}
		keys := graph.Add(b.g, "keys", b.toy("keys"), graph.DeletedAfter(func(plan.ID) bool { return true }))
		graph.Add(b.g, "marker", b.toy("marker"), graph.DeletedAfter(func(id plan.ID) bool { return id == "machine" }))
		slow := b.toy("machine")
		slow.goes, slow.hintOff = time.Minute, time.Minute
		graph.Add(b.g, "machine", slow)
		graph.Add(b.g, "record", b.toy("record"), graph.With(graph.Outlives(keys)))
		b.fail("delete marker", fault{err: refusal("AccessDenied")})
		require.Error(t, b.x.Delete(t.Context(), b.g))
		require.False(t, b.exists("machine"))
		require.True(t, b.exists("keys") && b.exists("record"))
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.False(t, b.exists("keys") || b.exists("marker") || b.exists("record"))
		require.GreaterOrEqual(t, b.when("delete marker")[0]-b.when("delete machine")[0], time.Minute)
		require.Less(t, b.when("delete keys")[0], b.when("delete record")[0]+1)
	})
}

// The message says what prevents a deletion, which is repeated until it succeeds.
func TestDeleteWaitsForBlockers(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "v")
		b.fail("delete a", slices.Repeat([]fault{{err: refusal("DependencyViolation")}}, 3)...)
		graph.Add(b.g, "a", &explained{b.toy("a")})
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.Equal(t, "the deletion of what uses it, eni-1 of another cluster: api error DependencyViolation: no", b.first("a", plan.Waiting).Detail)
		require.False(t, b.exists("a"))
	})
}

type explained struct{ *toy }

func (*explained) Blockers(context.Context, *cloud.Clients, *seen) string {
	return "eni-1 of another cluster"
}

// "Not found" means deleted. Another refusal is an error, and the resources below stay.
func TestDeleteAnswers(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("gone", "v")
		b.fail("delete gone", fault{err: refusal("InvalidVpcID.NotFound"), after: true})
		b.put("denied", "v")
		b.put("beneath", "v")
		b.fail("delete denied", fault{err: refusal("UnauthorizedOperation")})
		b.add(b.toy("gone"))
		beneath := b.add(b.toy("beneath"))
		b.add(b.toy("denied", graph.On(beneath)))
		err := b.x.Delete(t.Context(), b.g)
		require.EqualError(t, err, "denied: delete: api error UnauthorizedOperation: no")
		require.Equal(t, []plan.What{plan.Blocked}, b.of("beneath"))
		require.False(t, b.exists("gone"))
		require.True(t, b.exists("beneath"))
	})
}

// The deletion of a slow resource is called once.
func TestDeleteAsksOnce(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "v")
		y := b.toy("a")
		y.goes, y.hintOff = 3*time.Minute, time.Minute
		b.add(y)
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.Len(t, b.when("delete a"), 1)
		require.Equal(t, []plan.What{plan.Deleting, plan.Waiting, plan.Done}, b.of("a"))
	})
}

// The plan of a deletion lists what exists in reverse order. Existing resources are left
// alone, whether they are there or not.
func TestPlanDelete(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("mine", "old")
		b.put("theirs", "v")
		theirs := graph.Use(b.g, "theirs", b.find("theirs"))
		graph.Use(b.g, "gone", b.find("gone"))
		mine := b.add(b.toy("mine", graph.On(theirs)))
		b.add(b.toy("never-made", graph.On(mine)))
		p, err := b.x.PlanDelete(t.Context(), b.g)
		require.NoError(t, err)
		require.Equal(t, []plan.Step{
			{Resource: "never-made", Action: plan.Keep},
			{Resource: "mine", Action: plan.Remove, CloudID: "id-mine"},
			{Resource: "gone", Action: plan.Existing},
			{Resource: "theirs", Action: plan.Existing, CloudID: "id-theirs"},
		}, p.Steps)
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.Equal(t, []string{"delete mine"}, b.asked())
		require.True(t, b.exists("theirs"))
	})
}

// A missing existing resource fails the plan, and an apply before its first write.
func TestExistingResourceIsMissing(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.add(b.toy("first"))
		theirs := graph.Use(b.g, "theirs", b.find("theirs"), graph.From("cluster.yaml:9"))
		b.add(b.toy("mine", graph.On(theirs)))
		const problem = "theirs (cluster.yaml:9): does not exist in this account and region: let the manifest refer to one that does, or to none"
		_, err := b.x.Plan(t.Context(), b.g)
		require.EqualError(t, err, problem)
		require.EqualError(t, b.engine().Apply(t.Context(), b.g), problem)
		require.Empty(t, b.asked())
	})
}

// An existing resource is read, and never changed.
func TestExistingResource(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("theirs", "value")
		theirs := graph.Use(b.g, "theirs", b.find("theirs"))
		y := b.toy("mine", graph.On(theirs))
		y.reads = theirs.CloudID
		b.add(y)
		require.Equal(t, plan.Unknown, theirs.CloudID())
		b.mustApply()
		require.Equal(t, "id-theirs", b.toys["mine"].Value)
		require.Equal(t, []string{"create mine"}, b.asked())
		require.Equal(t, []plan.What{plan.Kept}, b.of("theirs"))
	})
}

// Apply deletes a retired resource after the others.
func TestRetire(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("old", "v")
		next := b.toy("new")
		next.takes = time.Minute
		made := b.add(next)
		graph.Retire(b.g, "old", b.toy("old"), graph.With(graph.Awaits(made)))
		graph.Retire(b.g, "long gone", b.toy("long gone"))
		p, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.Equal(t, 1, p.Count(plan.Remove))
		b.mustApply()
		require.Equal(t, []string{"create new", "delete old"}, b.asked())
		require.GreaterOrEqual(t, b.when("delete old")[0], time.Minute)
	})
}

// Apply leaves swept resources alone; Delete deletes them until no more appear.
func TestSweep(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("litter", "v")
		y := b.toy("litter")
		y.hintOff = 10 * time.Second
		graph.Sweep(b.g, "litter", y)
		p, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.True(t, p.Empty())
		b.mustApply()
		require.Empty(t, b.asked())
		y.returns = 2
		require.NoError(t, b.engine().Delete(t.Context(), b.g))
		require.Len(t, b.when("delete litter"), 3)
		require.False(t, b.exists("litter"))
	})
}

// A resource that is deleted behind others waits until AWS has accepted their deletion, not until they do
// not exist. If AWS refuses one of them, it stays.
func TestDeletedBehind(t *testing.T) {
	for _, refused := range []bool{false, true} {
		in(t, func(t *testing.T, b *bench) {
			for _, name := range []string{"balancer", "machine", "other"} {
				b.put(name, "v")
			}
			graph.Add(b.g, "balancer", b.toy("balancer"), graph.DeletedBehind(func(id plan.ID) bool { return id != "balancer" }))
			slow := b.toy("machine")
			slow.goes, slow.hintOff = time.Minute, time.Minute
			graph.Add(b.g, "machine", slow)
			graph.Add(b.g, "other", b.toy("other"))
			require.Equal(t, time.Minute, b.g.DeleteTime(nil))
			if refused {
				b.fail("delete other", fault{err: refusal("AccessDenied")})
				require.Error(t, b.x.Delete(t.Context(), b.g))
				require.True(t, b.exists("balancer"))
			}
			require.NoError(t, b.x.Delete(t.Context(), b.g))
			require.False(t, b.exists("balancer"))
			if !refused {
				require.Less(t, b.when("delete balancer")[0]-b.when("delete machine")[0], 10*time.Second)
			}
		})
	}
}
