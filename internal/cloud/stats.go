package cloud

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stats counts the calls of a run. Calls of the lock are not counted.
type Stats struct {
	Reads, Writes, Throttled atomic.Int64
	// KubeReads and KubeWrites count requests to the cluster's API server.
	KubeReads, KubeWrites atomic.Int64

	late throttleTime
}

// throttleTime is the time in which AWS throttles at least one call.
type throttleTime struct {
	mu       sync.Mutex
	calls    int       // that are throttled now
	since    time.Time // when there was none, if there are any
	sum      time.Duration
	services map[string]bool // those that have throttled calls
}

func (l *throttleTime) begin(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; l.calls == 1 {
		l.since = now
	}
}

func (l *throttleTime) end(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls--; l.calls == 0 {
		l.sum += now.Sub(l.since)
	}
}

// throttle notes that a service has throttled an attempt.
func (s *Stats) throttle(service string) {
	s.Throttled.Add(1)
	s.late.mu.Lock()
	defer s.late.mu.Unlock()
	if s.late.services == nil {
		s.late.services = map[string]bool{}
	}
	s.late.services[service] = true
}

// ThrottledBy lists the services that have throttled calls, sorted.
func (s *Stats) ThrottledBy() []string {
	s.late.mu.Lock()
	defer s.late.mu.Unlock()
	return slices.Sorted(maps.Keys(s.late.services))
}

// Late returns for how long, until now, AWS has throttled at least one call: by that much the run
// may be late.
func (c *Clients) Late() time.Duration {
	l := &c.stats.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == 0 {
		return l.sum
	}
	return l.sum + c.Clock.Now().Sub(l.since)
}

// Stats returns the counters of this run.
func (c *Clients) Stats() *Stats { return &c.stats }
