package cloud

import (
	"context"
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
	size, rate float64
	tokens     float64
	at         time.Time
	throttled  int // consecutive throttled calls
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
