package cloud_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// counter answers a query with the number of calls so far, after a delay.
type counter struct {
	asked atomic.Int32
	takes time.Duration
	err   error
}

func (r *counter) ask(ctx context.Context) (int, error) {
	n := int(r.asked.Add(1))
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return n, r.err
}

func (r *counter) remembered(ctx context.Context, c *cloud.Clients) (int, error) {
	return cloud.Remember(ctx, c, "question", r.ask)
}

// Concurrent callers share one call.
func TestRememberShares(t *testing.T) {
	in(t, func(t *testing.T) {
		c, r := newWire(nil).clients(), &counter{takes: 10 * time.Second}
		together(100, func() {
			n, err := r.remembered(t.Context(), c)
			require.NoError(t, err)
			require.Positive(t, n)
		})
		require.EqualValues(t, 1, r.asked.Load())
		go func() { _, _ = r.remembered(t.Context(), c) }()
		time.Sleep(5 * time.Second)
		together(100, func() {
			n, err := r.remembered(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, 3, n, "the result of the running call is too old for a caller that arrives this late")
		})
	})
}

// A result is valid for less than a second; in a snapshot, until the next snapshot
// begins.
func TestRememberFreshness(t *testing.T) {
	in(t, func(t *testing.T) {
		c, r := newWire(nil).clients(), &counter{}
		want := func(n int, ctx context.Context) {
			t.Helper()
			got, err := r.remembered(ctx, c)
			require.NoError(t, err)
			require.Equal(t, n, got)
		}
		live := t.Context()
		want(1, live)
		time.Sleep(800 * time.Millisecond)
		want(1, live)
		time.Sleep(200 * time.Millisecond)
		want(2, live)
		snapshot := cloud.InSnapshot(live)
		time.Sleep(time.Hour)
		want(2, snapshot)
		want(3, cloud.Live(snapshot))
		c.Snapshot()
		want(4, snapshot)
		time.Sleep(time.Hour)
		want(4, snapshot)
	})
}

// Forget invalidates what the writer has queried and nothing else, also during a call.
func TestForget(t *testing.T) {
	in(t, func(t *testing.T) {
		c, r, other := newWire(nil).clients(), &counter{takes: 10 * time.Second}, &counter{}
		var mine cloud.Questions
		ctx := cloud.InSnapshot(cloud.Recording(t.Context(), &mine))
		_, err := cloud.Remember(cloud.InSnapshot(t.Context()), c, "other", other.ask)
		require.NoError(t, err)
		go func() {
			time.Sleep(5 * time.Second)
			c.Forget(&mine)
		}()
		n, err := r.remembered(ctx, c)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n, err = r.remembered(ctx, c)
		require.NoError(t, err)
		require.Equal(t, 2, n, "the result may be from before the write")
		n, err = r.remembered(ctx, c)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		_, err = cloud.Remember(cloud.InSnapshot(t.Context()), c, "other", other.ask)
		require.NoError(t, err)
		require.EqualValues(t, 1, other.asked.Load())
	})
}

// An error is not cached; and a result from before a write is not used when the next call
// fails.
func TestRememberErrors(t *testing.T) {
	in(t, func(t *testing.T) {
		c, r := newWire(nil).clients(), &counter{}
		var mine cloud.Questions
		ctx := cloud.InSnapshot(cloud.Recording(t.Context(), &mine))
		_, err := r.remembered(ctx, c)
		require.NoError(t, err)
		c.Forget(&mine)
		r.err = errors.New("no")
		_, err = r.remembered(ctx, c)
		require.EqualError(t, err, "no")
		r.err = nil
		n, err := r.remembered(ctx, c)
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
}

// A caller that stops waiting does not affect the others.
func TestRememberGivesUp(t *testing.T) {
	in(t, func(t *testing.T) {
		c, r := newWire(nil).clients(), &counter{takes: 10 * time.Second}
		brief, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		go func() { _, _ = r.remembered(t.Context(), c) }()
		time.Sleep(time.Second)
		_, err := r.remembered(brief, c)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, r.asked.Load())
		_, err = cloud.Remember(cloud.InSnapshot(t.Context()), c, "question", func(context.Context) (string, error) { return "", nil })
		require.ErrorContains(t, err, "two types")
	})
}

// Items that arrive in time share a batch, and each caller gets its own result.
func TestBatch(t *testing.T) {
	in(t, func(t *testing.T) {
		c := newWire(nil).clients()
		var runs [][]int
		double := func(_ context.Context, items []int) (out []int, err error) {
			runs = append(runs, items)
			for _, i := range items {
				out = append(out, 2*i)
			}
			return out, nil
		}
		i := make(chan int, 30)
		for n := range 30 {
			i <- n
		}
		together(30, func() {
			n := <-i
			got, err := cloud.Batch(t.Context(), c, "double", n, double)
			require.NoError(t, err)
			require.Equal(t, 2*n, got)
		})
		require.Len(t, runs, 1)
		_, err := cloud.Batch(t.Context(), c, "double", 1, double)
		require.NoError(t, err)
		require.Len(t, runs, 2)
		failing := func(context.Context, []int) ([]int, error) { return nil, errors.New("no") }
		together(3, func() {
			_, err := cloud.Batch(t.Context(), c, "fails", 1, failing)
			require.EqualError(t, err, "no")
		})
	})
}

// A batch is sent even if the caller that opened it stops waiting; later items go into a
// new batch.
func TestBatchOutlivesItsFirstCaller(t *testing.T) {
	in(t, func(t *testing.T) {
		c := newWire(nil).clients()
		var ran atomic.Int32
		run := func(_ context.Context, items []int) ([]int, error) {
			ran.Add(int32(len(items)))
			return items, nil
		}
		brief, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(10 * time.Millisecond)
			cancel()
		}()
		go func() {
			time.Sleep(5 * time.Millisecond)
			n, err := cloud.Batch(t.Context(), c, "key", 7, run)
			assert.NoError(t, err)
			assert.Equal(t, 7, n)
		}()
		_, err := cloud.Batch(brief, c, "key", 1, run)
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(time.Second)
		require.EqualValues(t, 2, ran.Load())
		n, err := cloud.Batch(t.Context(), c, "key", 3, run)
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
}

// A result with its own expiry is valid until then, also across snapshots, and shared by
// concurrent callers. An error is not cached.
func TestRememberUntil(t *testing.T) {
	in(t, func(t *testing.T) {
		c, r := newWire(nil).clients(), &counter{takes: time.Second}
		remembered := func() (int, error) {
			return cloud.RememberUntil(t.Context(), c, "question", func(ctx context.Context) (int, time.Time, error) {
				n, err := r.ask(ctx)
				return n, time.Now().Add(time.Hour), err
			})
		}
		want := func(n int) {
			t.Helper()
			got, err := remembered()
			require.NoError(t, err)
			require.Equal(t, n, got)
		}
		r.err = errors.New("no answer")
		_, err := remembered()
		require.ErrorIs(t, err, r.err)
		r.err = nil
		together(100, func() { want(2) })
		time.Sleep(time.Hour - time.Second)
		c.Snapshot()
		want(2)
		time.Sleep(time.Second)
		want(3)
	})
}
