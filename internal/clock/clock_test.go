package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

func origin() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// A fast clock shows and waits a multiple of the time that passes.
func TestFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Fast(origin(), 60)
		began := time.Now()
		require.NoError(t, c.Sleep(t.Context(), 10*time.Minute))
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Equal(t, origin().Add(10*time.Minute), c.Now())
		require.Equal(t, 10*time.Minute, c.Since(origin()))
	})
}

// A nil clock is the system clock, and Sleep returns the cause when the context ends.
func TestNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *clock.Clock
		require.Equal(t, time.Now(), c.Now())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(context.DeadlineExceeded) })
		require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, func() time.Duration {
			began := c.Now()
			require.NoError(t, c.Sleep(t.Context(), 10*time.Second))
			return c.Since(began)
		}())
		c.Hold()() // does nothing
	})
}

// A context ends after a time of its clock, or of the system clock beside a fast one, with its
// cause.
func TestWithTimeout(t *testing.T) {
	var system *clock.Clock
	errLate := errors.New("too late")
	for name, of := range map[string]struct {
		clock  func() *clock.Clock
		minute time.Duration // on the clock
	}{
		"system":   {func() *clock.Clock { return system }, time.Minute},
		"fast":     {func() *clock.Clock { return clock.Fast(origin(), 60) }, time.Hour},
		"discrete": {func() *clock.Clock { return clock.Discrete(origin()) }, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := of.clock()
				began := c.Now()
				ctx, cancel := c.WithTimeout(t.Context(), time.Minute, errLate)
				defer cancel()
				require.ErrorIs(t, c.Sleep(ctx, 24*time.Hour), errLate)
				require.Equal(t, of.minute, c.Since(began))

				ctx, cancel = c.WithTimeout(t.Context(), time.Minute, nil)
				defer cancel()
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)

				ctx, cancel = c.WithTimeout(t.Context(), time.Minute, errLate)
				cancel()
				require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.Canceled)
				require.Equal(t, 2*of.minute, c.Since(began))
			})
		})
	}
}
