package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/crash"
)

// batchWindow is how long a batch waits for more items.
const batchWindow = 50 * time.Millisecond

// batches holds the batches that have not been sent yet, by key.
type batches struct {
	mu   sync.Mutex
	open map[string]any
}

// batch is one pending call that several callers share.
type batch[I, O any] struct {
	items   []I
	done    chan struct{}
	results []O
	err     error
}

// Batch adds item to the pending batch with the given key and returns the result for that
// item. The batch is sent after batchWindow, with the items of all callers that arrived
// by then. The call is not cancelled when one of the callers stops waiting.
func Batch[I, O any](ctx context.Context, c *Clients, key string, item I, run func(context.Context, []I) ([]O, error)) (out O, err error) {
	b, at := join[I, O](ctx, c, key, item, run)
	select {
	case <-b.done:
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	if b.err != nil {
		return out, b.err
	}
	return b.results[at], nil
}

func join[I, O any](ctx context.Context, c *Clients, key string, item I, run func(context.Context, []I) ([]O, error)) (b *batch[I, O], at int) {
	c.batches.mu.Lock()
	defer c.batches.mu.Unlock()
	b, open := c.batches.open[key].(*batch[I, O])
	if !open {
		b = &batch[I, O]{done: make(chan struct{})}
		if c.batches.open == nil {
			c.batches.open = map[string]any{}
		}
		c.batches.open[key] = b
		go func() {
			defer close(b.done)
			ctx, end := shared(ctx)
			defer end()
			_ = c.Clock.Sleep(ctx, batchWindow) // the batch is sent in any case, unless the run was interrupted
			c.batches.mu.Lock()
			delete(c.batches.open, key)
			c.batches.mu.Unlock()
			b.err = crash.Catch(func() (err error) {
				b.results, err = run(ctx, b.items)
				return err
			})
		}()
	}
	b.items = append(b.items, item)
	return b, len(b.items) - 1
}
