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

// A watch lasts as long as it is touched, and ends its context with the cause after that. Beside a fast
// clock, the limit is in real time.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errIdle := errors.New("idle")
		for _, c := range []*clock.Clock{nil, clock.Fast(time.Now(), 60)} {
			began := time.Now()
			ctx, w := c.Watch(t.Context(), time.Minute, errIdle)
			for range 10 {
				time.Sleep(50 * time.Second)
				require.NoError(t, ctx.Err())
				_, err := w.Write([]byte("x"))
				require.NoError(t, err)
			}
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), errIdle)
			require.Equal(t, 10*50*time.Second+time.Minute, time.Since(began))
			w.Touch()
			w.Stop()

			ctx, w = c.Watch(t.Context(), time.Minute, errIdle)
			w.Stop()
			require.ErrorIs(t, context.Cause(ctx), context.Canceled)
		}
	})
}
