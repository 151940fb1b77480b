package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// After an interrupt, the current calls end, the lock is released, and the run reports
// that it stopped halfway. The next run continues: immediately, if AWS shows everything
// that was created.
func TestInterrupt(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	_, want := enginetest.CallsOf(t, m)
	for _, after := range []time.Duration{time.Nanosecond, 30 * time.Millisecond, 60 * time.Millisecond, time.Second, 50 * time.Second, 101 * time.Second, 101*time.Second + 60*time.Millisecond, 131 * time.Second, 150 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				before := a.Inventory()
				ctx, interrupt := context.WithTimeout(t.Context(), after)
				defer interrupt()
				res, err := enginetest.Open(m, a.Process()).Apply(ctx, cluster.Options{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				if res.Writes > 0 {
					require.ErrorAs(t, err, new(*plan.HalfwayError))
				}
				began := time.Now()
				enginetest.MustApply(t, m, a)
				if after > 10*time.Second {
					require.Less(t, time.Since(began), 155*time.Second, "there was nothing to wait for")
				}
				require.Equal(t, want, enginetest.Described(a))
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// Calls that started before an interrupt are completed, so that the run knows all
// resources that it created.
func TestInterruptEndsSoon(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(60*time.Second, interrupt)
		began := time.Now()
		_, err := enginetest.Open(m, a.Process()).Apply(ctx, cluster.Options{})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(began), 65*time.Second)
	})
}
