package clock

import (
	"context"
	"time"
)

// fast is a clock that runs faster than the system clock.
type fast struct {
	speed  float64
	real   time.Time // system time when the clock was started
	origin time.Time // time of this clock at that moment
}

// Fast returns a clock that shows origin now and runs speed times as fast as the system
// clock. The minimum speed is 1.
func Fast(origin time.Time, speed float64) *Clock {
	return &Clock{&fast{speed: max(speed, 1), real: time.Now(), origin: origin}}
}

func (c *Clock) isFast() bool {
	_, is := c.source.(*fast)
	return is
}

// Now implements Source.
func (f *fast) Now() time.Time {
	return f.origin.Add(time.Duration(float64(time.Since(f.real)) * f.speed))
}

// Sleep implements Source.
func (f *fast) Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, time.Duration(float64(d)/f.speed))
}
