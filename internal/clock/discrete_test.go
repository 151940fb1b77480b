package clock_test

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// awake sleeps in another goroutine, and sends the time at which it woke. It returns when the
// sleeper waits.
func awake(ctx context.Context, c *clock.Clock, d time.Duration, name string, woken chan<- string) {
	asleep := make(chan struct{})
	go func() {
		close(asleep)
		if c.Sleep(ctx, d) == nil {
			woken <- name + " at " + c.Since(origin()).String()
		}
	}()
	<-asleep
}

// Sleepers wake by the time for which they wait, one after the other, and time passes only
// between two of them.
func TestDiscreteOrder(t *testing.T) {
	c := clock.Discrete(origin())
	release := c.Hold()
	woken := make(chan string)
	for name, d := range map[string]time.Duration{"last": 3 * time.Hour, "first": time.Second, "middle": time.Minute} {
		awake(t.Context(), c, d, name, woken)
	}
	require.Equal(t, origin(), c.Now())
	release()
	require.Equal(t, []string{"first at 1s", "middle at 1m0s", "last at 3h0m0s"}, []string{<-woken, <-woken, <-woken})
	require.NoError(t, c.Sleep(t.Context(), 0))
	require.NoError(t, c.Sleep(t.Context(), -time.Second))
	require.Equal(t, origin().Add(3*time.Hour), c.Now())
}

// Sleepers that wait for the same moment wake in the order of their calls, each when what the
// one before it does has come to rest.
func TestDiscreteSameMoment(t *testing.T) {
	c := clock.Discrete(origin())
	var order []int // without a lock: one works at a time
	done := make(chan struct{})
	for i := range 20 {
		require.NoError(t, c.Sleep(t.Context(), time.Second)) // the sleeper before this one waits
		go func() {
			_ = c.Sleep(t.Context(), origin().Add(time.Hour).Sub(c.Now()))
			work()
			order = append(order, i)
			done <- struct{}{}
		}()
	}
	for range 20 {
		<-done
	}
	for i := range 20 {
		require.Equal(t, i, order[i])
	}
	require.Equal(t, origin().Add(time.Hour), c.Now())
}

// A sleeper whose context ends returns its cause, and does not make the time pass.
func TestDiscreteCancel(t *testing.T) {
	c := clock.Discrete(origin())
	ctx, cancel := context.WithCancelCause(t.Context())
	defer c.Hold()()
	ended := make(chan error)
	go func() { ended <- c.Sleep(ctx, time.Hour) }()
	cancel(context.DeadlineExceeded)
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.DeadlineExceeded)
	require.Equal(t, origin(), c.Now())
}

func work() {
	data := make([]byte, 1<<16)
	for range 20 {
		sum := sha256.Sum256(data)
		copy(data, sum[:])
	}
}

// While a goroutine computes, or passes work on to another one, the time stands still.
func TestDiscreteStandsStillDuringWork(t *testing.T) {
	c := clock.Discrete(origin())
	woken := make(chan string, 1)
	awake(t.Context(), c, time.Second, "sleeper", woken)
	work()
	there, back := make(chan int), make(chan int)
	go func() {
		for n := range there {
			back <- n + 1
		}
		close(back)
	}()
	n := 0
	for range 10_000 {
		there <- n
		n = <-back
	}
	close(there)
	require.Equal(t, 10_000, n)
	require.Equal(t, origin(), c.Now())
	require.Equal(t, "sleeper at 1s", <-woken)
}

// Clocks beside each other have their own times.
func TestBeside(t *testing.T) {
	a := clock.Discrete(origin())
	b := a.Beside(origin().Add(time.Hour))
	ended := make(chan error)
	for range 1000 {
		go func() { ended <- b.Sleep(t.Context(), time.Second) }()
		require.NoError(t, a.Sleep(t.Context(), time.Minute))
		require.NoError(t, <-ended)
	}
	require.Equal(t, origin().Add(1000*time.Minute), a.Now())
	require.Equal(t, origin().Add(time.Hour+1000*time.Second), b.Now())
	require.Equal(t, origin(), clock.Fast(origin(), 2).Beside(origin()).Now())
}
