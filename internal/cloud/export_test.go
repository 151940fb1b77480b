package cloud

import (
	"context"
	"time"
)

// StopForTest stops the heartbeats, as the end of the process does.
func (l *Lock) StopForTest() {
	l.stop()
	<-l.stopped
}

// HeartbeatForTest sends a heartbeat.
func (l *Lock) HeartbeatForTest(ctx context.Context, n int) {
	me := l.self
	me.Beats = n
	_ = l.records.write(ctx, me)
}

// LoseForTest makes another run take over the lock.
func (l *Lock) LoseForTest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

// CheckedForTest returns the time of the last check.
func (l *Lock) CheckedForTest() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checked
}
