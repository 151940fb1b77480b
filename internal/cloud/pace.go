package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// Budget limits the calls of the clients that share it: how many are sent at the same time, and their
// rate. AWS counts the calls of an account in a region together.
type Budget struct {
	slots   chan struct{}
	buckets *buckets
}

// NewBudget returns a Budget with that many calls at the same time; 0 means DefaultParallel.
func NewBudget(c *clock.Clock, parallel int) *Budget {
	if parallel <= 0 {
		parallel = DefaultParallel
	}
	return &Budget{make(chan struct{}, parallel), newBuckets(c)}
}

// buckets are copies of the token buckets with which AWS limits the API rate of an
// account. A burst of calls waits here instead of being throttled.
type buckets struct {
	clock *clock.Clock
	mu    sync.Mutex
	by    map[string]*bucket
}

// bucket holds up to size tokens and gains rate tokens per second.
type bucket struct {
	size, rate float64
	tokens     float64
	at         time.Time
	throttled  int // consecutive throttled calls
}

func newBuckets(c *clock.Clock) *buckets { return &buckets{clock: c, by: map[string]*bucket{}} }

// limits returns the class of an operation, and the size and rate of the bucket of that
// class. Sources: "Request throttling for the Amazon EC2 API", and the quota pages of AWS
// Secrets Manager and AWS Systems Manager.
func limits(service, op string) (class string, size, rate float64) {
	switch {
	case service == "EC2":
		return ec2Limits(op)
	case service == "SSM" && op == "PutParameter":
		return "SSM PutParameter", 10, 3
	case service == "Auto Scaling" && !Reads(op): // AWS publishes no limits: these are a guess
		return "Auto Scaling write", 20, 5
	case service == "Secrets Manager":
		return service, 50, 50
	case Reads(op):
		return service + " read", 40, 10
	}
	return service + " write", 40, 10
}

func ec2Limits(op string) (class string, size, rate float64) {
	switch {
	case op == "RunInstances":
		return op, 5, 2
	case op == "CreateTags":
		return op, 100, 10
	case Reads(op):
		return "EC2 read", 100, 20
	}
	return "EC2 write", 50, 5
}

// wait takes a token, and waits until one is available.
func (b *buckets) wait(ctx context.Context, service, op string) error {
	if d := b.take(service, op); d > 0 {
		return b.clock.Sleep(ctx, d)
	}
	return nil
}

// take takes a token, or goes into debt, and returns how long to wait until the debt is
// paid.
func (b *buckets) take(service, op string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, now := b.get(service, op), b.clock.Now()
	t.tokens = min(t.size, t.tokens+now.Sub(t.at).Seconds()*t.rate)
	t.at = now
	t.tokens--
	if t.tokens >= 0 {
		t.throttled = 0
		return 0
	}
	return time.Duration(-t.tokens / t.rate * float64(time.Second))
}

// slow empties the bucket after a throttled call: other callers in the account use the
// same limit. Each further throttled call increases the debt, up to ten seconds.
func (b *buckets) slow(service, op string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.get(service, op)
	t.throttled++
	debt := min(t.rate*float64(t.throttled)/2, t.rate*10)
	t.tokens = max(min(t.tokens, 0)-debt, -10*t.rate)
}

func (b *buckets) get(service, op string) *bucket {
	class, size, rate := limits(service, op)
	t := b.by[class]
	if t == nil {
		t = &bucket{size: size, rate: rate, tokens: size, at: b.clock.Now()}
		b.by[class] = t
	}
	return t
}
