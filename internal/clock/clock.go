// Package clock provides a clock that may run faster than the system clock: time in a
// simulated account does, and the engine has to use the same time.
package clock

import (
	"context"
	"time"
)

// Clock is a clock that may run faster than the system clock. A nil Clock is the system
// clock.
type Clock struct {
	speed  float64
	real   time.Time // system time when the clock was started
	origin time.Time // time of this clock at that moment
	source Source    // shows the time and waits instead; may be nil
}

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
	return &Clock{speed: 1, source: s}
}

// Fast returns a clock that shows origin now and runs speed times as fast as the system
// clock. The minimum speed is 1.
func Fast(origin time.Time, speed float64) *Clock {
	return &Clock{speed: max(speed, 1), real: time.Now(), origin: origin}
}

// Now returns the time of this clock.
func (c *Clock) Now() time.Time {
	switch {
	case c == nil:
		return time.Now()
	case c.source != nil:
		return c.source.Now()
	}
	return c.origin.Add(time.Duration(float64(time.Since(c.real)) * c.speed))
}

// Since returns the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Real converts a duration of this clock to one of the system clock.
func (c *Clock) Real(d time.Duration) time.Duration {
	if c == nil {
		return d
	}
	return time.Duration(float64(d) / c.speed)
}

// Sleep waits for d on this clock. If ctx ends before, Sleep returns the cause.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if c != nil && c.source != nil {
		return c.source.Sleep(ctx, d)
	}
	t := time.NewTimer(c.Real(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
