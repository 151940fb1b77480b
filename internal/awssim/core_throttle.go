package awssim

import (
	"time"
)

// rate is a token bucket of the account.
type rate struct {
	tokens float64
	at     time.Time
}

// drink takes n tokens out of a bucket, if there are that many.
func (a *AWS) drink(class string, n, size, refill float64) bool {
	r := a.rates[class]
	if r == nil {
		r = &rate{tokens: size, at: a.now()}
		a.rates[class] = r
	}
	r.tokens = min(size, r.tokens+a.now().Sub(r.at).Seconds()*refill)
	r.at = a.now()
	if r.tokens < n {
		return false
	}
	r.tokens -= n
	return true
}
