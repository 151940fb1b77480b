package lives_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// disturbed executes an apply whose n-th call fails.
func disturbed(t *testing.T, m *manifest.Cluster, a *awssim.AWS, n int, fault awssim.Fault) error {
	t.Helper()
	p := a.Process()
	return enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
		_, err := enginetest.Open(m, p).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
		return err
	})
}

// Whichever call fails, and in whatever way: the next run has the same result as one
// without faults, without duplicates and orphans. A deletion leaves nothing. The first two examples have
// all faults at all calls, the others every second fault, which alternate from call to call: most of
// their calls are those of the first two.
func TestEveryCallMayFail(t *testing.T) {
	for example, file := range enginetest.Sample(enginetest.SweepExamples()) {
		every := min(2, 1+example/2)
		m := enginetest.LoadQuick(t, file)
		total, want := enginetest.CallsOf(t, m)
		for i, fault := range []awssim.Fault{awssim.Throttled, awssim.Denied, awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter, awssim.Broken, awssim.Unsent, awssim.Silent, awssim.Cut, awssim.Old} {
			t.Run(enginetest.Name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := enginetest.First(every, i) + i%every; n <= total; n += enginetest.Stride(every) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							a := enginetest.Prepared(t, m)
							before := a.Inventory()
							err := disturbed(t, m, a, n, fault)
							if transient(fault) && (fault != awssim.Unsent || n > 1) { // the first call: TestUnreachable
								require.NoError(t, err, "call %d", n)
							}
							if errors.As(err, new(*plan.HalfwayError)) {
								require.NotEqual(t, before, a.Inventory())
							}
							enginetest.MustApply(t, m, a)
							enginetest.RequireNoChange(t, m, a)
							require.Equal(t, want, enginetest.Described(a), "call %d", n)
							enginetest.MustDelete(t, m, a)
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
	for _, file := range enginetest.Sample(enginetest.SweepExamples()) {
		m := enginetest.LoadQuick(t, file)
		total, _ := enginetest.CallsOf(t, m)
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			for n := enginetest.First(1, 0); n <= total; n += enginetest.Stride(1) {
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Prepared(t, m)
					before := a.Inventory()
					_ = disturbed(t, m, a, n, awssim.KillAfter)
					enginetest.MustDelete(t, m, a)
					require.Equal(t, before, a.Inventory(), "call %d", n)
				})
			}
		})
	}
}

// A deletion that is killed at any call is completed by the next one.
func TestDeleteMayDie(t *testing.T) {
	for _, file := range enginetest.Sample(enginetest.SweepExamples()) {
		m := enginetest.LoadQuick(t, file)
		for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.Denied} {
			t.Run(enginetest.Name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := enginetest.First(1, i); ; n += enginetest.Stride(1) {
					made := 0
					synctest.Test(t, func(t *testing.T) {
						a := enginetest.Prepared(t, m)
						before := a.Inventory()
						enginetest.MustApply(t, m, a)
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
						_, _ = enginetest.Open(m, p).Delete(ctx, cluster.Options{})
						made = p.Calls()
						enginetest.MustDelete(t, m, a)
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
