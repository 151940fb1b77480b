package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Remember returns the result of a query, and shares it between callers: concurrent
// callers wait for the same call. In a snapshot (a plan) a result is valid until the next
// snapshot begins. Elsewhere it is valid for a second, and until the caller calls Forget
// after a write.
func Remember[T any](ctx context.Context, c *Clients, question string, ask func(context.Context) (T, error)) (answer T, err error) {
	record(ctx, question)
	m, arrived := c.memo(question), c.Clock.Now()
	if err := m.takeTurn(ctx); err != nil {
		return answer, err
	}
	defer func() { <-m.turn }()
	if !m.fresh(ctx, c, arrived) {
		reading, at := c.reading.Load(), c.Clock.Now()
		if answer, err = ask(ctx); err != nil {
			return answer, err
		}
		m.store(reading, at, answer)
	}
	answer, ok := m.answer.(T)
	if !ok {
		return answer, fmt.Errorf("question %q has answers of two types", question)
	}
	return answer, nil
}

// RememberUntil returns the result of a query that knows how long its result is valid,
// and shares it between callers: ask returns that time too.
func RememberUntil[T any](ctx context.Context, c *Clients, question string, ask func(context.Context) (T, time.Time, error)) (answer T, err error) {
	m := c.memo(question)
	if err := m.takeTurn(ctx); err != nil {
		return answer, err
	}
	defer func() { <-m.turn }()
	answer, ok := m.answer.(T)
	if ok && c.Clock.Now().Before(m.until) {
		return answer, nil
	}
	answer, until, err := ask(ctx)
	if err == nil {
		m.answer, m.until = answer, until
	}
	return answer, err
}

// takeTurn waits until no other caller makes the query. It is a channel, because a mutex
// should not be held during a call.
func (m *memo) takeTurn(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freshness is the maximum age of a cached result outside a snapshot. It is shorter than
// the shortest pause between two observations, so that waiting always sees new results.
const freshness = 900 * time.Millisecond

// memo is one query and its last result.
type memo struct {
	turn    chan struct{} // held during the call
	mu      sync.Mutex    // guards stale against a Forget during the call
	stale   bool
	reading int64
	at      time.Time
	answer  any
	until   time.Time // of RememberUntil
}

// fresh reports whether the cached result is valid for a caller that arrived at the given
// time. Callers that waited during the call arrived before its end, so the result is
// valid for them.
func (m *memo) fresh(ctx context.Context, c *Clients, arrived time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stale {
		m.stale, m.at = false, time.Time{} // the old result is invalid even if the next call fails
	}
	switch {
	case m.at.IsZero() || m.reading != c.reading.Load():
		return false
	case ctx.Value(snapshotKey) == true:
		return true
	}
	return arrived.Sub(m.at) < freshness
}

func (m *memo) store(reading int64, at time.Time, answer any) {
	m.reading, m.at, m.answer = reading, at, answer
}

func (c *Clients) memo(question string) *memo {
	m, _ := c.memos.LoadOrStore(question, &memo{turn: make(chan struct{}, 1)})
	return m.(*memo) //nolint:forcetypeassert // only this function stores into memos
}

// Snapshot begins a new snapshot, in which every query is sent once. Results of earlier
// snapshots are not used in it.
func (c *Clients) Snapshot() { c.reading.Add(1) }

// InSnapshot returns a context in which results of the current snapshot are valid,
// however old they are.
func InSnapshot(ctx context.Context) context.Context {
	return context.WithValue(ctx, snapshotKey, true)
}

// Live returns a context in which no result is older than a second.
func Live(ctx context.Context) context.Context {
	return context.WithValue(ctx, snapshotKey, false)
}

// Questions records which queries are made in a context, so that their results can be
// forgotten after a write.
type Questions struct {
	mu    sync.Mutex
	asked map[string]bool
}

// Recording returns a context in which q records every query.
func Recording(ctx context.Context, q *Questions) context.Context {
	return context.WithValue(ctx, recorderKey, q)
}

func record(ctx context.Context, question string) {
	q, ok := ctx.Value(recorderKey).(*Questions)
	if !ok {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked == nil {
		q.asked = map[string]bool{}
	}
	q.asked[question] = true
}

// Forget invalidates the results of the recorded queries, after a write.
func (c *Clients) Forget(q *Questions) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for question := range q.asked {
		m := c.memo(question)
		m.mu.Lock()
		m.stale = true
		m.mu.Unlock()
	}
}
