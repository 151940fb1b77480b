// Package clock tells the time, and waits, at the speed of a run: a simulated
// account lives faster than a real one, and the engine has to keep step.
package clock

import (
	"context"
	"time"
)

// Clock is a clock that may run faster than the machine's. A nil Clock is the
// machine's own.
type Clock struct {
	speed  float64
	real   time.Time // when the clock was started
	origin time.Time // what it showed then
	source Source    // shows the time and waits instead; may be nil
}

// Source is a clock of a program that embeds the engine.
type Source interface {
	Now() time.Time
	// Sleep waits for d, or until the context ends, whose cause it returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Of returns the Clock of a source; nil, the machine's own, for none.
func Of(s Source) *Clock {
	if c, ok := s.(*Clock); ok || s == nil {
		return c
	}
	return &Clock{speed: 1, source: s}
}

// Fast returns a clock that shows origin now, and runs speed times as fast as
// the machine's. A speed of one or less is the machine's own speed.
func Fast(origin time.Time, speed float64) *Clock {
	return &Clock{speed: max(speed, 1), real: time.Now(), origin: origin}
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	switch {
	case c == nil:
		return time.Now()
	case c.source != nil:
		return c.source.Now()
	}
	return c.origin.Add(time.Duration(float64(time.Since(c.real)) * c.speed))
}

// Since returns how long ago t was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Real returns how long something takes on the machine's clock that takes d on
// this one.
func (c *Clock) Real(d time.Duration) time.Duration {
	if c == nil {
		return d
	}
	return time.Duration(float64(d) / c.speed)
}

// Sleep waits for d on this clock, or until the context ends, whose cause it
// then returns.
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
