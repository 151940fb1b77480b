package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// An interrupt lets the calls under way end, gives the lock back and says
// that the run stopped half way. The next run goes on: where AWS shows all
// that was made, at once.
func TestInterrupt(t *testing.T) {
	m := loadQuick(t, threeZones)
	_, want := callsOf(t, threeZones, m)
	for _, after := range []time.Duration{time.Nanosecond, 30 * time.Millisecond, 60 * time.Millisecond, time.Second, 50 * time.Second, 101 * time.Second, 101*time.Second + 60*time.Millisecond, 131 * time.Second, 150 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := account(m, lag)
				before := a.Inventory()
				ctx, interrupt := context.WithTimeout(t.Context(), after)
				defer interrupt()
				res, err := open(m, a.Process()).Apply(ctx, reconcile.Options{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				if res.Writes > 0 {
					require.ErrorAs(t, err, new(*reconcile.HalfwayError))
				}
				began := time.Now()
				mustApply(t, m, a)
				if after > 10*time.Second {
					require.Less(t, time.Since(began), 155*time.Second, "there was nothing to wait for")
				}
				require.Equal(t, want, described(a))
				mustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// What was begun before an interrupt is carried through: nothing is left that
// the account has and the run does not know of.
func TestInterruptEndsSoon(t *testing.T) {
	m := loadQuick(t, threeZones)
	synctest.Test(t, func(t *testing.T) {
		a := account(m, lag)
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(60*time.Second, interrupt)
		began := time.Now()
		_, err := open(m, a.Process()).Apply(ctx, reconcile.Options{})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(began), 65*time.Second)
	})
}
