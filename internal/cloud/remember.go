package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Remember returns the answer to a question about the cluster. Askers at the
// same time share one call. In a snapshot (a plan) an answer holds until the
// next snapshot begins; elsewhere for a second, and until the asker's own
// node has written something.
func Remember[T any](ctx context.Context, c *Clients, question string, ask func(context.Context) (T, error)) (answer T, err error) {
	record(ctx, question)
	m, arrived := c.memo(question), c.Clock.Now()
	select {
	case m.turn <- struct{}{}: // a mutex is never held over a call
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
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

// freshness is how old a remembered answer may be outside a snapshot: less
// than any pause between two looks, so that a look that waits sees anew.
const freshness = 900 * time.Millisecond

// memo is one question and its last answer.
type memo struct {
	turn    chan struct{} // held while asking
	mu      sync.Mutex    // guards stale against a Forget during the asking
	stale   bool
	reading int64
	at      time.Time
	answer  any
}

// fresh reports whether the answer will do for one who came at that time. All
// who wait while it is asked come close to that asking, or before it.
func (m *memo) fresh(ctx context.Context, c *Clients, arrived time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stale {
		m.stale, m.at = false, time.Time{} // for good, even if the next asking fails
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

// Snapshot begins a new reading, in which every question is asked once:
// whatever was read before is history.
func (c *Clients) Snapshot() { c.reading.Add(1) }

// InSnapshot returns a context in which answers of the current reading hold,
// however old they are.
func InSnapshot(ctx context.Context) context.Context {
	return context.WithValue(ctx, snapshotKey, true)
}

// Briefly returns a context for looks that only have to tell what exists and
// whose it is, not how it is set up.
func Briefly(ctx context.Context) context.Context { return context.WithValue(ctx, briefKey, true) }

// IsBrief reports whether it is enough to tell what exists.
func IsBrief(ctx context.Context) bool { return ctx.Value(briefKey) == true }

// Live returns a context in which an answer is never older than a second.
func Live(ctx context.Context) context.Context {
	return context.WithValue(ctx, snapshotKey, false)
}

// Questions notes which questions are asked in a context, so that a write of
// the same asker can forget their answers.
type Questions struct {
	mu    sync.Mutex
	asked map[string]bool
}

// Recording returns a context in which q notes every question asked.
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

// Forget drops the answers to the questions: the asker has changed something.
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
