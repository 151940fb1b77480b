package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// sweepExamples are the examples for which every call is made to fail.
func sweepExamples() []string {
	return []string{"../../configs/quickstart.yaml", "../../configs/eks-addons.yaml", "../../configs/three-zones.yaml", "../../configs/machine-pool.yaml", "../../configs/eks-machines.yaml", "../../configs/eks-templates.yaml"}
}

// loadQuick reads an example and sets a key algorithm that is quick: a sweep creates
// thousands of keys.
func loadQuick(t *testing.T, file string) *manifest.Cluster {
	t.Helper()
	return quick(load(t, file, nil))
}

// prepared returns an account with the existing resources of the example.
func prepared(t *testing.T, file string, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := account(m, lag)
	prepare(t, file, a, m)
	return a
}

// described returns the details of an account without the records of the lock, after its
// machines have booted and deleted their boot data.
func described(a *awssim.AWS) []string {
	time.Sleep(booting)
	return slices.DeleteFunc(a.Described(), isLock)
}

// isLock reports whether a line of an inventory is a record of the lock.
func isLock(line string) bool { return strings.Contains(line, "/lock/") }

// callsOf returns the number of calls of an apply without faults, and its result.
func callsOf(t *testing.T, file string, m *manifest.Cluster) (calls int, detailed []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		p := a.Process()
		_, err := open(m, p).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		calls, detailed = p.Calls(), described(a)
	})
	return calls, detailed
}

// only injects a fault into the n-th call of a process.
func only(n int, fault awssim.Fault) func(int, string, string) awssim.Fault {
	return func(call int, _, _ string) awssim.Fault {
		if call == n {
			return fault
		}
		return awssim.None
	}
}

// disturbed executes an apply whose n-th call fails.
func disturbed(t *testing.T, m *manifest.Cluster, a *awssim.AWS, n int, fault awssim.Fault) error {
	t.Helper()
	p := a.Process()
	return spoilt(t, p, n, fault, func(ctx context.Context) error {
		_, err := open(m, p).Apply(ctx, cluster.Options{Observe: tell(t)})
		return err
	})
}

// Whichever call fails, and in whatever way: the next run has the same result as one
// without faults, without duplicates and orphans. A deletion leaves nothing. The first two examples have
// all faults at all calls, the others every second fault, which alternate from call to call: most of
// their calls are those of the first two.
func TestEveryCallMayFail(t *testing.T) {
	for example, file := range sample(sweepExamples()) {
		every := min(2, 1+example/2)
		m := loadQuick(t, file)
		total, want := callsOf(t, file, m)
		for i, fault := range []awssim.Fault{awssim.Throttled, awssim.Denied, awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter, awssim.Broken, awssim.Unsent, awssim.Silent, awssim.Cut, awssim.Old} {
			t.Run(name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := first(i) + i%every; n <= total; n += stride(every) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							a := prepared(t, file, m)
							before := a.Inventory()
							err := disturbed(t, m, a, n, fault)
							if transient(fault) && (fault != awssim.Unsent || n > 1) { // the first call: TestUnreachable
								require.NoError(t, err, "call %d", n)
							}
							if errors.As(err, new(*plan.HalfwayError)) {
								require.NotEqual(t, before, a.Inventory())
							}
							mustApply(t, m, a)
							requireNoChange(t, m, a)
							require.Equal(t, want, described(a), "call %d", n)
							mustDelete(t, m, a)
							require.Equal(t, before, a.Inventory(), "call %d", n)
						})
					})
				}
			})
		}
	}
}

// transient reports whether a run survives the fault: it says nothing about the next call.
func transient(fault awssim.Fault) bool {
	return !slices.Contains([]awssim.Fault{awssim.Denied, awssim.KillBefore, awssim.KillAfter}, fault)
}

// A deletion right after a crash also finds resources that AWS does not show yet.
func TestDeleteAfterCrash(t *testing.T) {
	for _, file := range sample(sweepExamples()) {
		m := loadQuick(t, file)
		total, _ := callsOf(t, file, m)
		t.Run(name(file), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= total; n += stride(1) {
				synctest.Test(t, func(t *testing.T) {
					a := prepared(t, file, m)
					before := a.Inventory()
					_ = disturbed(t, m, a, n, awssim.KillAfter)
					mustDelete(t, m, a)
					require.Equal(t, before, a.Inventory(), "call %d", n)
				})
			}
		})
	}
}

// A deletion that is killed at any call is completed by the next one.
func TestDeleteMayDie(t *testing.T) {
	for _, file := range sample(sweepExamples()) {
		m := loadQuick(t, file)
		for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.Denied} {
			t.Run(name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := first(i); ; n += stride(1) {
					made := 0
					synctest.Test(t, func(t *testing.T) {
						a := prepared(t, file, m)
						before := a.Inventory()
						mustApply(t, m, a)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						p := a.Process()
						p.Killed = cancel
						p.Fault = func(call int, _, _ string) awssim.Fault {
							if call == n {
								return fault
							}
							return awssim.None
						}
						_, _ = open(m, p).Delete(ctx, cluster.Options{})
						made = p.Calls()
						mustDelete(t, m, a)
						require.Equal(t, before, a.Inventory(), "call %d", n)
					})
					if made < n {
						break // the deletion ended before the n-th call
					}
				}
			})
		}
	}
}
