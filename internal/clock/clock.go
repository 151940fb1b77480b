// Package clock provides the clocks of a run: the system clock, one that is faster, one that
// jumps while everybody waits, and that of a program which embeds the engine.
package clock

import (
	"cmp"
	"context"
	"time"
)

// Clock shows the time of a run, and waits on it. A nil Clock is the system clock.
type Clock struct{ source Source }

// Source is a clock of a program that embeds the engine.
type Source interface {
	Now() time.Time
	// Sleep waits for d. If ctx ends before, Sleep returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// Of returns the Clock of a source; nil, the system clock, for none.
func Of(s Source) *Clock {
	if c, ok := s.(*Clock); ok || s == nil {
		return c
	}
	return &Clock{s}
}

// Now returns the time of this clock.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c.source.Now()
}

// Since returns the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep waits for d on this clock. If ctx ends before, Sleep returns the cause.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if c == nil {
		return sleep(ctx, d)
	}
	return c.source.Sleep(ctx, d)
}

// WithTimeout returns a context for calls that ends after d on this clock. Its cause is then the
// given one; nil: context.DeadlineExceeded. Beside a Fast clock, d is in real time: servers do
// not answer faster because a clock does. On other clocks, the context does not show its
// deadline, and its error is context.Canceled.
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if c == nil || c.isFast() {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	limited, cancel := context.WithCancelCause(ctx)
	stop := c.AfterFunc(limited, d, func() { cancel(cmp.Or(cause, context.DeadlineExceeded)) })
	return limited, func() {
		stop()
		cancel(nil)
	}
}

// AfterFunc calls a function in its own goroutine after d on this clock, unless ctx ends or
// stop is called before.
func (c *Clock) AfterFunc(ctx context.Context, d time.Duration, do func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		if c.Sleep(ctx, d) == nil {
			do()
		}
	}()
	return cancel
}

// Hold keeps the time from jumping until release is called: the caller waits for something
// outside of the program. Other clocks run on.
func (c *Clock) Hold() (release func()) {
	if c != nil {
		if d, ok := c.source.(*discrete); ok {
			return d.jumps.hold()
		}
	}
	return func() {}
}

// sleep waits on the system clock.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
