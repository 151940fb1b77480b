package lives_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// apart is the distance between two calls that fail: the sweeps of crash_test.go cover
// every call, for fewer examples.
const apart = 31

// For every example, an interrupted creation is continued or deleted, and leaves nothing.
func TestLifecycleAfterCrash(t *testing.T) {
	for _, fault := range []awssim.Fault{awssim.Denied, awssim.KillAfter, awssim.LostAfter} {
		t.Run(string(fault), func(t *testing.T) {
			enginetest.EachOf(t, enginetest.SampleOfAll(t), awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
				before := a.Detailed()
				for n := apart; ; n += apart {
					p := a.Process()
					err := enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := enginetest.Open(m, p).Apply(ctx, cluster.Options{})
						return err
					})
					if n%2 == 0 {
						enginetest.MustApply(t, m, a)
						enginetest.RequireNoChange(t, m, a)
					}
					enginetest.MustDelete(t, m, a)
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
			enginetest.EachOf(t, enginetest.SampleOfAll(t), awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
				before := a.Detailed()
				for n := apart; ; n += apart {
					enginetest.MustApply(t, m, a)
					p := a.Process()
					err := enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := enginetest.Open(m, p).Delete(ctx, cluster.Options{})
						return err
					})
					if n%2 == 0 {
						enginetest.MustDelete(t, m, a)
					} else {
						_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{})
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
