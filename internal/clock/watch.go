package clock

import (
	"context"
	"sync"
	"time"
)

// Watch ends a context when nothing was touched for a while.
type Watch struct {
	clock  *Clock
	ctx    context.Context //nolint:containedctx // it is what this ends
	cancel context.CancelCauseFunc
	limit  time.Duration
	cause  error

	mu     sync.Mutex
	armed  time.Time
	disarm func()
}

// Watch returns a context that ends, with a cause, when Touch was not called for limit. Beside a
// Fast clock, limit is in real time, as with WithTimeout. The caller calls Stop in the end.
func (c *Clock) Watch(ctx context.Context, limit time.Duration, cause error) (context.Context, *Watch) {
	if c != nil && c.isFast() {
		c = nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watch{clock: c, ctx: ctx, cancel: cancel, limit: limit, cause: cause}
	w.arm()
	return ctx, w
}

func (w *Watch) arm() {
	w.armed = w.clock.Now()
	w.disarm = w.clock.AfterFunc(w.ctx, w.limit, func() { w.cancel(w.cause) })
}

// Touch starts the time again. Often repeated calls are cheap.
func (w *Watch) Touch() {
	const rare = 10 // the limit is exact to this part of it
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() == nil && w.clock.Since(w.armed) > w.limit/rare {
		w.disarm()
		w.arm()
	}
}

// Write implements io.Writer.
func (w *Watch) Write(p []byte) (int, error) {
	w.Touch()
	return len(p), nil
}

// Stop ends the context.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disarm()
	w.cancel(nil)
}
