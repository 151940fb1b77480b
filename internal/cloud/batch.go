package cloud

import (
	"context"
	"sync"
	"time"
)

// window is how long a batch waits for more of its kind.
const window = 50 * time.Millisecond

// batches are those that are still open, by key.
type batches struct {
	mu   sync.Mutex
	open map[string]any
}

// batch is one call in the making for several askers.
type batch[I, O any] struct {
	items   []I
	done    chan struct{}
	results []O
	err     error
}

// Batch adds an item to the batch of that key, which runs a moment later for
// all who came in time, and returns the item's result. The run goes on when
// one of the askers gives up.
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
			ctx := context.WithoutCancel(ctx)
			_ = c.Clock.Sleep(ctx, window) // never ends early
			c.batches.mu.Lock()
			delete(c.batches.open, key)
			c.batches.mu.Unlock()
			b.results, b.err = run(ctx, b.items)
		}()
	}
	b.items = append(b.items, item)
	return b, len(b.items) - 1
}
