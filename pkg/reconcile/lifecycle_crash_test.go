package reconcile_test

import (
	"context"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// apart is the distance between two calls that fail: the sweeps of crash_test.go cover
// every call, for fewer examples.
const apart = 31

// For every example, an interrupted creation is continued or deleted, and leaves nothing.
func TestLifecycleAfterCrash(t *testing.T) {
	for _, fault := range []awssim.Fault{awssim.Denied, awssim.KillAfter, awssim.LostAfter} {
		t.Run(string(fault), func(t *testing.T) {
			eachOf(t, sampleOfAll(t), awssim.Options{Lag: lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
				before := a.Detailed()
				for n := apart; ; n += apart {
					p := a.Process()
					err := spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := open(m, p).Apply(ctx, cluster.Options{})
						return err
					})
					if n%2 == 0 {
						mustApply(t, m, a)
						requireNoChange(t, m, a)
					}
					mustDelete(t, m, a)
					require.Equal(t, before, a.Detailed(), "call %d", n)
					if err == nil && p.Calls() < n {
						break
					}
				}
			})
		})
	}
}

// An interrupted deletion is continued, by manifest or by name.
func TestLifecycleAfterCrashOfDeletion(t *testing.T) {
	for _, fault := range []awssim.Fault{awssim.Denied, awssim.KillAfter} {
		t.Run(string(fault), func(t *testing.T) {
			eachOf(t, sampleOfAll(t), awssim.Options{Lag: lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
				before := a.Detailed()
				for n := apart; ; n += apart {
					mustApply(t, m, a)
					p := a.Process()
					err := spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := open(m, p).Delete(ctx, cluster.Options{})
						return err
					})
					if n%2 == 0 {
						mustDelete(t, m, a)
					} else {
						_, err := byName(m.Name, a).Delete(t.Context(), cluster.Options{})
						require.NoError(t, err)
					}
					require.Equal(t, before, a.Detailed(), "call %d", n)
					if err == nil && p.Calls() < n {
						break
					}
				}
			})
		})
	}
}

// spoilt calls a function as a process whose n-th call fails.
func spoilt(t *testing.T, p *awssim.Process, n int, fault awssim.Fault, do func(context.Context) error) error {
	t.Helper()
	return faulty(t, p, only(n, fault), do)
}

// faulty calls a function as a process with faults.
func faulty(t *testing.T, p *awssim.Process, fault func(call int, service, op string) awssim.Fault, do func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.Fault, p.Killed = fault, cancel
	return do(ctx)
}
