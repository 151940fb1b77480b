package core

import (
	"strings"
	"time"
)

// TokenBucket is a token bucket that limits the rate of a class of calls.
type TokenBucket struct {
	Class  string  // of the calls that share it, such as "writes"
	Each   bool    // every operation of the class has a bucket of its own
	Size   float64 // how many tokens it holds
	Refill float64 // tokens per second
	Takes  float64 // tokens that a call takes; 0 means one
}

// Limits are the rate limits of a service. AWS limits the calls of an account in a region, whichever program sends
// them.
type Limits struct {
	Code   string                                // the error of a call above a limit
	Global bool                                  // the service is the same in all regions
	Of     func(op string, in any) []TokenBucket // the buckets of a call; in is nil if only the classes are asked for
}

// ReadsAndWrites returns the buckets of a service that has one for reads and one for writes.
func ReadsAndWrites(reads, writes TokenBucket) func(op string, in any) []TokenBucket {
	reads.Class, writes.Class = "reads", "writes"
	return func(op string, _ any) []TokenBucket {
		if Reads(op) {
			return []TokenBucket{reads}
		}
		return []TokenBucket{writes}
	}
}

// Limit sets the rate limits of a service.
func (a *Account) Limit(service string, l Limits) { a.limits[service] = l }

// rate is the content of a bucket.
type rate struct {
	tokens float64
	at     time.Time
}

// throttle rejects a call above the rate limits of its service. Such a call takes no tokens.
func (a *Account) throttle(service, op, region string, in any) error {
	l, limited := a.limits[service]
	if !limited {
		return nil
	}
	if l.Global {
		region = ""
	}
	buckets := l.Of(op, in)
	rates := make([]*rate, len(buckets))
	for i, b := range buckets {
		class := region + " " + service + " " + b.Class
		if b.Each {
			class += " " + op
		}
		rates[i] = a.filled(class, b)
		const rounding = 1e-6 // of seconds and rates that are no whole numbers
		if rates[i].tokens < b.takes()-rounding {
			return Fail(l.Code, "Rate exceeded")
		}
	}
	for i, b := range buckets {
		rates[i].tokens -= b.takes()
	}
	return nil
}

func (b TokenBucket) takes() float64 {
	if b.Takes > 0 {
		return b.Takes
	}
	return 1
}

// filled returns the content of a bucket now.
func (a *Account) filled(class string, b TokenBucket) *rate {
	r := a.rates[class]
	if r == nil {
		r = &rate{tokens: b.Size, at: a.Now()}
		a.rates[class] = r
	}
	r.tokens = min(b.Size, r.tokens+a.Now().Sub(r.at).Seconds()*b.Refill)
	r.at = a.Now()
	return r
}

// Reads reports whether an operation changes nothing, by its name.
func Reads(op string) bool {
	for _, p := range []string{"Describe", "Get", "List", "Head", "Simulate", "Validate"} {
		if strings.HasPrefix(op, p) {
			return true
		}
	}
	return false
}
