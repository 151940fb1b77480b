package core

import "time"

// Throttle refuses a call of a service that comes too fast.
type Throttle func(op, region string, in any) error

// OnThrottle sets what throttles the calls of a service.
func (a *Account) OnThrottle(service string, t Throttle) { a.throttle[service] = t }

// rate is a token bucket of the account.
type rate struct {
	tokens float64
	at     time.Time
}

// Take takes n tokens out of the bucket of a class of calls, if it has that
// many. A bucket holds size tokens and gets refill more every second.
func (a *Account) Take(class string, n, size, refill float64) bool {
	r := a.rates[class]
	if r == nil {
		r = &rate{tokens: size, at: a.Now()}
		a.rates[class] = r
	}
	r.tokens = min(size, r.tokens+a.Now().Sub(r.at).Seconds()*refill)
	r.at = a.Now()
	if r.tokens < n {
		return false
	}
	r.tokens -= n
	return true
}
