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
}

// Fast returns a clock that shows origin now, and runs speed times as fast as
// the machine's. A speed of one or less is the machine's own speed.
func Fast(origin time.Time, speed float64) *Clock {
	return &Clock{speed: max(speed, 1), real: time.Now(), origin: origin}
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
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
	t := time.NewTimer(c.Real(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
