package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// A fast clock shows and waits a multiple of the time that passes.
func TestFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		c := clock.Fast(origin, 60)
		began := time.Now()
		require.NoError(t, c.Sleep(t.Context(), 10*time.Minute))
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Equal(t, origin.Add(10*time.Minute), c.Now())
		require.Equal(t, 10*time.Minute, c.Since(origin))
		require.Equal(t, 10*time.Second, c.Real(10*time.Minute))
	})
}

// A nil clock is the system clock, and Sleep returns the cause when the context ends.
func TestNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *clock.Clock
		require.Equal(t, time.Hour, c.Real(time.Hour))
		require.Equal(t, time.Now(), c.Now())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(context.DeadlineExceeded) })
		require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, func() time.Duration {
			began := c.Now()
			require.NoError(t, c.Sleep(t.Context(), 10*time.Second))
			return c.Since(began)
		}())
	})
}
