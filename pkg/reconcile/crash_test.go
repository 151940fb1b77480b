package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// sweepExamples are the clusters over which every call is made to fail.
func sweepExamples() []string {
	return []string{"../../configs/quickstart.yaml", "../../configs/eks-addons.yaml", "../../configs/three-zones.yaml", "../../configs/machine-pool.yaml", "../../configs/eks-machines.yaml", "../../configs/eks-templates.yaml"}
}

// loadQuick reads an example and lets its keys be of the kind that is quick to
// make: a sweep makes thousands.
func loadQuick(t *testing.T, file string) *manifest.Cluster {
	t.Helper()
	return quick(load(t, file, nil))
}

// prepared returns an account that has what the example's user brings.
func prepared(t *testing.T, file string, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := account(m, lag)
	prepare(t, file, a, m)
	return a
}

// described returns all of an account but for what is drawn by lot (addresses,
// names of groups that EKS makes, digests of what holds keys) and how often a
// secret was written; when its machines have booted, and deleted what they
// booted with.
func described(a *awssim.AWS) (out []string) {
	time.Sleep(booting)
	lot := regexp.MustCompile(`\d+\.\d+\.\d+\.\d+/32|/lock/\d+|versions=\d+|eks-cluster-sg-\S+-\d{10}|eks-remoteAccess-[0-9a-f]{8}|[0-9a-f]{8}-[0-9a-f]{4}-4000-8000-0{12}|bootstrap-data-hash(=|","Value":")[\w-]+`)
	groups := regexp.MustCompile(`"SecurityGroupIds":\[[^]]*\]`)
	inOrder := func(list string) string {
		return strings.Join(slices.Sorted(strings.SplitSeq(strings.Trim(list, "[]"), ",")), ",")
	} // of names, not of IDs
	for _, line := range a.Detailed() {
		out = append(out, groups.ReplaceAllStringFunc(lot.ReplaceAllString(line, "…"), func(s string) string {
			return inOrder(strings.TrimPrefix(s, `"SecurityGroupIds":`))
		}))
	}
	slices.Sort(out)
	return out
}

// callsOf returns how many calls an undisturbed apply makes, and what it
// leaves in the account.
func callsOf(t *testing.T, file string, m *manifest.Cluster) (calls int, detailed []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		p := a.Process()
		_, err := open(m, p).Apply(t.Context(), reconcile.Options{})
		require.NoError(t, err)
		calls, detailed = p.Calls(), described(a)
	})
	return calls, detailed
}

// only makes the n-th call of a process go wrong.
func only(n int, fault awssim.Fault) func(int, string, string) awssim.Fault {
	return func(call int, _, _ string) awssim.Fault {
		if call == n {
			return fault
		}
		return awssim.None
	}
}

// disturbed runs an apply of which the n-th call fails.
func disturbed(t *testing.T, m *manifest.Cluster, a *awssim.AWS, n int, fault awssim.Fault) error {
	t.Helper()
	p := a.Process()
	return spoilt(t, p, n, fault, func(ctx context.Context) error {
		_, err := open(m, p).Apply(ctx, reconcile.Options{Observe: tell(t)})
		return err
	})
}

// Whichever call fails, and however, running again ends with what an
// undisturbed run makes: no twin, no orphan. Deleting leaves nothing.
func TestEveryCallMayFail(t *testing.T) {
	for _, file := range sample(sweepExamples()) {
		m := loadQuick(t, file)
		total, want := callsOf(t, file, m)
		for i, fault := range []awssim.Fault{awssim.Throttled, awssim.Denied, awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter} {
			t.Run(name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := first(i); n <= total; n += stride(1) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							a := prepared(t, file, m)
							before := a.Inventory()
							err := disturbed(t, m, a, n, fault)
							if fault == awssim.Throttled {
								require.NoError(t, err, "call %d", n)
							}
							if errors.As(err, new(*reconcile.HalfwayError)) {
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

// Deleting right after a crash finds even what AWS does not show yet.
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

// A deletion that dies at any call is finished by the next one.
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
						_, _ = open(m, p).Delete(ctx, reconcile.Options{})
						made = p.Calls()
						mustDelete(t, m, a)
						require.Equal(t, before, a.Inventory(), "call %d", n)
					})
					if made < n {
						break // the deletion was over before the n-th call
					}
				}
			})
		}
	}
}
