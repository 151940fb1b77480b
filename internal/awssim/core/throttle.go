package core

import "time"

// Throttle rejects a call that exceeds the rate limit.
type Throttle func(op, region string, in any) error

// OnThrottle sets the rate limits of a service.
func (a *Account) OnThrottle(service string, t Throttle) { a.throttle[service] = t }

// rate is a token bucket.
type rate struct {
	tokens float64
	at     time.Time
}

// Take takes n tokens from the bucket of a class of calls, if it has that many. A bucket
// holds size tokens and is refilled with refill tokens per second.
func (a *Account) Take(class string, n, size, refill float64) bool {
	r := a.rates[class]
	if r == nil {
		r = &rate{tokens: size, at: a.Now()}
		a.rates[class] = r
	}
	r.tokens = min(size, r.tokens+a.Now().Sub(r.at).Seconds()*refill)
	r.at = a.Now()
	const rounding = 1e-6 // of seconds and rates that are no whole numbers
	if r.tokens < n-rounding {
		return false
	}
	r.tokens -= n
	return true
}
