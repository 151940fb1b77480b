package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// An Exists edge is satisfied when the other resource exists; any other edge waits until
// it is settled.
func TestEdgesWait(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		slow := b.toy("balancer")
		slow.takes, slow.hint = 150*time.Second, 150*time.Second
		balancer := b.add(slow)
		b.add(b.toy("settled", graph.On(balancer)))
		b.add(b.toy("awaits", graph.Awaits(balancer)))
		b.add(b.toy("exists", graph.Exists(balancer)))
		b.add(b.toy("reads", graph.Reads(balancer)))
		b.add(b.toy("outlives", graph.Outlives(balancer)))
		b.mustApply()
		for _, name := range []string{"exists", "reads", "outlives"} {
			require.Less(t, b.when("create " + name)[0], time.Second, name)
		}
		for _, name := range []string{"settled", "awaits"} {
			require.GreaterOrEqual(t, b.when("create " + name)[0], 150*time.Second, name)
			require.Less(t, b.when("create " + name)[0], 153*time.Second, name)
		}
	})
}

// A resource with two edges waits for the later one; resources without edges start at the
// same time.
func TestIndependentResourcesRunTogether(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		var all []graph.Resource
		for i := range 5 {
			y := b.toy(fmt.Sprintf("part-%d", i))
			y.call = time.Duration(i+1) * 10 * time.Second
			all = append(all, b.add(y))
		}
		b.add(b.toy("whole", graph.On(all...)))
		b.mustApply()
		for i := range 5 {
			require.Zero(t, b.when(fmt.Sprintf("create part-%d", i))[0])
		}
		require.Equal(t, 50*time.Second, b.when("create whole")[0])
	})
}

// A failure blocks the resources that depend on the failed one, directly and indirectly;
// the others continue.
func TestFailureBlocksDependents(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.fail("create bad", fault{err: refusal("InvalidParameterValue")})
		bad := b.add(b.toy("bad"), graph.From("cluster.yaml:3"))
		child := b.add(b.toy("child", graph.On(bad)))
		b.add(b.toy("grandchild", graph.Exists(child)))
		slow := b.toy("other")
		slow.takes = time.Minute
		other := b.add(slow)
		b.add(b.toy("last", graph.On(other)))
		err := b.x.Apply(t.Context(), b.g)
		var failed *plan.ResourceError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, plan.ID("bad"), failed.Resource)
		require.Equal(t, "bad (cluster.yaml:3): create: api error InvalidParameterValue: no", err.Error())
		require.Equal(t, []plan.What{plan.Blocked}, b.of("child"))
		require.Equal(t, "bad", b.first("child", plan.Blocked).Detail)
		require.Equal(t, []plan.What{plan.Blocked}, b.of("grandchild"))
		require.True(t, b.exists("other"))
		require.True(t, b.exists("last"))
		require.False(t, b.exists("child"))
		require.False(t, b.x.LostAnswers())
	})
}

// All failures are reported.
func TestAllFailuresAreReported(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		for _, name := range []string{"a", "b"} {
			b.fail("create "+name, fault{err: refusal("Wrong." + name)})
			b.add(b.toy(name))
		}
		err := b.x.Apply(t.Context(), b.g)
		require.ErrorContains(t, err, "Wrong.a")
		require.ErrorContains(t, err, "Wrong.b")
	})
}

// After an interrupt no call starts, and the call in progress is completed, if that takes
// no longer than a user waits.
func TestCancellationEndsBetweenCalls(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		slow := b.toy("slow")
		slow.call = 20*time.Second + 700*time.Millisecond
		first := b.add(slow)
		b.add(b.toy("next", graph.On(first)))
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupted := errors.New("interrupted")
		go func() {
			time.Sleep(20 * time.Second)
			cancel(interrupted)
		}()
		err := b.x.Apply(ctx, b.g)
		require.ErrorIs(t, err, interrupted)
		require.Equal(t, []string{"create slow"}, b.asked())
		require.True(t, b.exists("slow"), "the call in progress was cut off")
		require.False(t, b.x.LostAnswers())
		require.Equal(t, plan.Blocked, b.of("next")[len(b.of("next"))-1])
	})
}

// A call that is not answered soon after an interrupt is given up; its outcome is unknown.
func TestCancellationEndsSoon(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		slow := b.toy("slow")
		slow.call = time.Minute
		b.add(slow)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, b.x.Apply(ctx, b.g), context.DeadlineExceeded)
		require.Less(t, time.Since(began), 22*time.Second)
		require.True(t, b.x.LostAnswers())
	})
}

// An interrupt ends a pause at once.
func TestCancellationEndsAPause(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		slow := b.toy("slow")
		slow.takes = time.Hour
		b.add(slow)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, b.x.Apply(ctx, b.g), context.DeadlineExceeded)
		require.Equal(t, 20*time.Second, time.Since(began))
	})
}

// A resource that takes too long fails, and the error says what it waited for.
func TestTimeout(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.x.Timeout = 5 * time.Minute
		slow := b.toy("slow")
		slow.takes = time.Hour
		b.add(slow)
		began := time.Now()
		err := b.x.Apply(t.Context(), b.g)
		require.EqualError(t, err, "slow: gave up after 5m0s waiting for ready to become true, is false")
		require.InDelta(t, 5*60, time.Since(began).Seconds(), 10)
	})
}

// Without a limit from the user, a resource may take 15 minutes, or five times as long as
// its kind usually does.
func TestTimeoutOfTheKind(t *testing.T) {
	for hint, want := range map[time.Duration]time.Duration{0: 15 * time.Minute, time.Minute: 15 * time.Minute, 9 * time.Minute: 45 * time.Minute} {
		in(t, func(t *testing.T, b *bench) {
			slow := b.toy("slow")
			slow.takes, slow.hint = 10*time.Hour, hint
			b.add(slow)
			began := time.Now()
			require.ErrorContains(t, b.x.Apply(t.Context(), b.g), "gave up after "+want.String())
			require.InDelta(t, want.Seconds(), time.Since(began).Seconds(), 10)
		})
	}
}

// An update that is accepted and has no effect becomes an error: it is sent once only.
func TestPerpetualDifferenceIsAnError(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("liar", "old")
		y := b.toy("liar")
		y.lazy, y.silent = true, true
		b.add(y)
		err := b.x.Apply(t.Context(), b.g)
		require.EqualError(t, err, `liar: does not converge: AWS accepted an update, and 5m5s later the resource still has value "old" instead of "v"; `+
			`either AWS does not change this, or something else changes it back`)
		require.Equal(t, []string{"update liar"}, b.asked())
	})
}

// A resource whose Update returns success but does nothing is not reported as done: the
// last read of an apply detects it.
func TestApplyVerifies(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("liar", "old")
		y := b.toy("liar")
		y.lazy = true
		b.add(y)
		require.ErrorContains(t, b.x.Apply(t.Context(), b.g), `still has value "old" instead of "v"`)
	})
}

// A change that somebody else makes during an apply is reverted after the last read.
func TestApplyRevertsChanges(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "v")
		b.add(b.toy("a"))
		slow := b.toy("slow")
		slow.takes = time.Minute
		b.add(slow)
		go func() {
			time.Sleep(30 * time.Second)
			b.world.mu.Lock()
			defer b.world.mu.Unlock()
			b.toys["a"].Value = "rogue"
		}()
		b.mustApply()
		require.Equal(t, "v", b.toys["a"].Value)
		p, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.True(t, p.Empty())
	})
}

// A difference that cannot be changed is a conflict: the plan shows it, and apply fails
// without a write.
func TestConflict(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "old")
		y := b.toy("a")
		y.fixed = true
		b.add(y)
		p, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.Len(t, p.Conflicts(), 1)
		require.Equal(t, 1, p.Count(plan.Conflict))
		err = b.x.Apply(t.Context(), b.g)
		var conflict *plan.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, `cannot change value from "old" to "v": set the existing value in the manifest again, or create another cluster`, conflict.Error())
		require.Empty(t, b.asked())
	})
}

// A plan cannot write: the client refuses the call before it is sent.
func TestPlanMakesNoWrite(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		a := awssim.New(awssim.Options{})
		x := &graph.Executor{Cloud: cloud.New(a.Config(), "demo", cloud.Options{})}
		graph.Use(b.g, "sneaky", func(ctx context.Context, c *cloud.Clients) (*seen, error) {
			_, err := c.EC2.CreateVpc(ctx, &ec2.CreateVpcInput{})
			return nil, err
		})
		_, err := x.Plan(t.Context(), b.g)
		var refused *cloud.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "CreateVpc", refused.Operation)
		require.Empty(t, a.Calls())
	})
}

// A plan lists the steps in the order of the graph, with the desired values.
func TestPlan(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("kept", "v")
		b.put("differs", "old")
		kept := b.add(b.toy("kept"))
		b.add(b.toy("differs", graph.On(kept)))
		b.add(b.toy("missing"), graph.From("cluster.yaml:7"))
		p, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.Equal(t, []plan.Step{
			{Resource: "kept", Action: plan.Keep, CloudID: "id-kept"},
			{Resource: "differs", Action: plan.Update, CloudID: "id-differs", Diff: plan.Diff{{Field: "value", Have: "old", Want: "v", Remedy: plan.InPlace}}},
			{Resource: "missing", Action: plan.Create, Origin: "cluster.yaml:7", Diff: plan.Diff{{Field: "value", Want: "v", Remedy: plan.InPlace}}},
		}, p.Steps)
		require.False(t, p.Empty())
		require.Equal(t, 2, p.Count(plan.Create, plan.Update))
		b.mustApply()
		require.Len(t, b.listings, 2, "one read for the plan and one at the end: apply starts from the plan")
		p, err = b.engine().Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.True(t, p.Empty())
	})
}

// Apply does not start from an old plan.
func TestApplyReadsAgainAfterOldPlan(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.add(b.toy("a"))
		_, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		b.put("a", "v") // by somebody else, in the meantime
		b.mustApply()
		require.Empty(t, b.asked())
	})
}

// An update whose value is not known yet waits until it is known.
func TestUpdateWaitsForUnknownValue(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "old")
		known := time.Now().Add(20 * time.Second)
		y := b.toy("a")
		y.reads = func() string {
			if time.Now().Before(known) {
				return plan.Unknown
			}
			return "new"
		}
		b.add(y)
		b.mustApply()
		require.Equal(t, []string{"update a"}, b.asked())
		require.GreaterOrEqual(t, b.when("update a")[0], 20*time.Second)
		require.Equal(t, "new", b.toys["a"].Value)
		require.Equal(t, "the value of value", b.first("a", plan.Waiting).Detail)
	})
}

// A resource that AWS is changing is not updated until AWS has finished.
func TestUpdateWaitsWhileAWSChanges(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("a", "old")
		b.toys["a"].ready = time.Now().Add(30 * time.Second)
		b.add(b.toy("a"))
		b.mustApply()
		require.GreaterOrEqual(t, b.when("update a")[0], 30*time.Second)
	})
}

// A panic in the work on one resource is the error of that resource.
func TestPanic(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y, other := b.toy("a"), b.toy("b")
		y.reads = func() string {
			var none *toy
			return none.value
		}
		b.add(y)
		b.add(other)
		err := b.x.Apply(t.Context(), b.g)
		require.ErrorAs(t, err, new(*crash.Error))
		require.ErrorContains(t, err, "a: bug in clusterawsadm: runtime error: invalid memory address")
	})
}

// What AWS is deleting counts as missing in a plan, with all that depends on it. A run waits for the end of the deletion, and creates it again.
func TestApplyAfterDeletionInProgress(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y := b.toy("a")
		y.takes, y.hint, y.hintOff = 10*time.Minute, 10*time.Minute, 5*time.Minute
		a := graph.Add(b.g, "a", y)
		user := b.toy("user", graph.Exists(a))
		user.reads = a.CloudID
		graph.Add(b.g, "user", user)
		b.put("a", "v")
		b.put("user", "id-a")
		b.toys["a"].dies = time.Now().Add(12 * time.Minute)

		p, err := b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.Equal(t, 1, p.Count(plan.Create))
		require.Equal(t, "id-a", p.Steps[0].After)
		require.Empty(t, p.Steps[0].CloudID)
		require.Equal(t, plan.Unknown, p.Steps[1].Diff[0].Want)
		require.Equal(t, 15*time.Minute, b.g.CreateTime(func(id plan.ID) bool { return id == "a" }))

		began := time.Now()
		require.NoError(t, b.x.Apply(t.Context(), b.g), "the time limit of the creation begins when the deletion ends")
		require.Equal(t, []string{"create a"}, b.asked())
		require.GreaterOrEqual(t, b.when("create a")[0], 12*time.Minute)
		require.Less(t, time.Since(began), 23*time.Minute)
		p, err = b.x.Plan(t.Context(), b.g)
		require.NoError(t, err)
		require.True(t, p.Empty())
	})
}

// A deletion finds what AWS is deleting already, and waits for it.
func TestDeleteAfterDeletionInProgress(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		y := b.toy("a")
		y.hintOff = 5 * time.Minute
		graph.Add(b.g, "a", y)
		b.put("a", "v")
		b.toys["a"].dies = time.Now().Add(4 * time.Minute)
		p, err := b.x.PlanDelete(t.Context(), b.g)
		require.NoError(t, err)
		require.Equal(t, 1, p.Count(plan.Remove))
		require.NoError(t, b.x.Delete(t.Context(), b.g))
		require.False(t, b.exists("a"))
	})
}
