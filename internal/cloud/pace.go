package cloud

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
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
	size, full float64
	rate       float64 // full, unless AWS has throttled calls
	tokens     float64
	at         time.Time
	slowed     time.Time // when AWS throttled a call last
	queue      []*waiter // calls that wait for a token, the first ones first
}

// waiter is a call that waits for a token.
type waiter struct {
	ahead time.Duration      // of WithAhead
	look  context.CancelFunc // ends its sleep, so that it checks again whether it is its turn
}

func newBuckets(c *clock.Clock) *buckets { return &buckets{clock: c, by: map[string]*bucket{}} }

// limits returns the class of an operation, and the size and rate of the bucket of that
// class. Sources: "Request throttling" in the documentation of the EC2 and the Elastic Load
// Balancing API, and the pages with quotas of Secrets Manager, Systems Manager, Service Quotas,
// EventBridge and the Price List. AWS does not publish the limits of EKS, IAM, Auto Scaling and
// SQS: those are guesses.
func limits(service, op string) (class string, size, rate float64) {
	switch service {
	case "EC2":
		return ec2Limits(op)
	case "Elastic Load Balancing", "Elastic Load Balancing v2":
		return elbLimits(service, op)
	case "SSM":
		return ssmLimits(op)
	case "Secrets Manager", "EventBridge":
		return service, 50, 50
	case "KMS", "S3", "STS":
		return service, 500, 500
	case "Pricing":
		return service, 10, 5
	case "Service Quotas":
		return service + op, 10, 5
	case "EKS":
		if !Reads(op) {
			return service + op, 10, 2
		}
		return service + op, 40, 10
	}
	if Reads(op) {
		return service + " read", 40, 10
	}
	return service + " write", 20, 5
}

func ec2Limits(op string) (class string, size, rate float64) {
	switch {
	case op == "RunInstances", op == "StartInstances":
		return op, 5, 2
	case op == "CreateTags":
		return op, 100, 10
	case Reads(op):
		return "EC2 read", 100, 20
	}
	return "EC2 write", 50, 5
}

func elbLimits(service, op string) (class string, size, rate float64) {
	switch {
	case Reads(op):
		return service + " read", 40, 10
	case strings.HasPrefix(op, "Register"), strings.HasPrefix(op, "Deregister"):
		return service + " registration", 20, 4
	case op == "CreateLoadBalancer":
		return service + op, 10, 0.2
	}
	return service + " write", 20, 3
}

func ssmLimits(op string) (class string, size, rate float64) {
	switch {
	case op == "PutParameter":
		return op, 10, 3
	case strings.HasPrefix(op, "GetParameter"):
		return "SSM read", 40, 40
	}
	return "SSM " + op, 40, 10
}

// WithAhead returns a context for the calls of a piece of work. ahead is the time from the beginning of this work to the
// end of all work that depends on it. Of the calls that wait for tokens, those with the longest time ahead are sent first,
// so that the run ends as early as possible.
func WithAhead(ctx context.Context, ahead time.Duration) context.Context {
	return context.WithValue(ctx, aheadKey, ahead)
}

// wait takes a token, and waits until one is available. The first call of the queue waits for the next token,
// and the others for the first call.
func (b *buckets) wait(ctx context.Context, service, op string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.get(service, op)
	ahead, _ := ctx.Value(aheadKey).(time.Duration)
	w := &waiter{ahead: ahead, look: func() {}}
	at := t.place(ahead)
	t.queue = slices.Insert(t.queue, at, w)
	if at == 0 && len(t.queue) > 1 {
		t.queue[1].look() // it is not the first any more
	}
	defer func() {
		t.queue = slices.DeleteFunc(t.queue, func(x *waiter) bool { return x == w })
		if len(t.queue) > 0 {
			t.queue[0].look()
		}
	}()
	for {
		first := t.queue[0] == w
		if t.refill(b.clock.Now()); first && t.has() {
			t.tokens--
			return nil
		}
		waiting, look := context.WithCancel(ctx)
		w.look = look
		d := t.until()
		b.mu.Unlock()
		if first {
			_ = b.clock.Sleep(waiting, d)
		} else {
			<-waiting.Done()
		}
		look()
		b.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// place returns where a call gets into the queue: behind those with the same time ahead.
func (t *bucket) place(ahead time.Duration) int {
	at, _ := slices.BinarySearchFunc(t.queue, ahead, func(x *waiter, ahead time.Duration) int {
		if x.ahead >= ahead {
			return -1
		}
		return 1
	})
	return at
}

// until returns how long to wait for a token. While the rate is lowered, the wait is up to one and a half times as long, at
// random. Otherwise two runs could send their calls alternately for hours, and AWS would always refuse the same run.
func (t *bucket) until() time.Duration {
	d := (1 - t.tokens) / t.rate
	if t.rate < t.full {
		d *= 1 + rand.Float64()/2 //nolint:gosec // nothing secret
	}
	return max(time.Duration(d*float64(time.Second)), time.Nanosecond)
}

// has reports whether there is a token.
func (t *bucket) has() bool {
	const rounding = 1e-6 // of seconds and rates that are no whole numbers
	return t.tokens >= 1-rounding
}

func (t *bucket) refill(now time.Time) {
	t.tokens = min(t.size, t.tokens+now.Sub(t.at).Seconds()*t.rate)
	t.at = now
}

// take takes a token at once, also one that is not there yet.
func (b *buckets) take(service, op string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.get(service, op)
	t.refill(b.clock.Now())
	t.tokens--
}

// Runs that share the limits of an account learn their share as TCP does ("Congestion Avoidance and
// Control", V. Jacobson, 1988): a throttled call halves the rate, and each that is not throttled raises it
// by a hundredth of the full one.
const (
	slowest = 0.02 // of the full rate
	gain    = 0.01
)

// slow empties the bucket and halves its rate after a throttled call: other programs use the same limit. A call that
// was sent before the rate was last lowered does not lower it again.
func (b *buckets) slow(service, op string, sent time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.get(service, op)
	if !sent.After(t.slowed) {
		return
	}
	t.slowed = b.clock.Now()
	t.refill(t.slowed)
	t.tokens, t.rate = min(t.tokens, 0), max(t.rate/2, slowest*t.full)
}

// quicken raises the rate after a call that was not throttled.
func (b *buckets) quicken(service, op string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.get(service, op); t.rate < t.full {
		t.refill(b.clock.Now())
		t.rate = min(t.rate+gain*t.full, t.full)
		if len(t.queue) > 0 {
			t.queue[0].look()
		}
	}
}

func (b *buckets) get(service, op string) *bucket {
	class, size, rate := limits(service, op)
	t := b.by[class]
	if t == nil {
		t = &bucket{size: size, full: rate, rate: rate, tokens: size, at: b.clock.Now()}
		b.by[class] = t
	}
	return t
}
