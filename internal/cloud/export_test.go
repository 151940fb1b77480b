package cloud

import "context"

// StopForTest stops the heartbeats, as the end of the process does.
func (l *Lock) StopForTest() {
	l.stop()
	<-l.stopped
}

// HeartbeatForTest sends a heartbeat.
func (l *Lock) HeartbeatForTest(ctx context.Context, n int) {
	me := l.self
	me.Beats = n
	_, _ = l.records.write(ctx, me)
}

// LateHeartbeatForTest makes a heartbeat as it is now. The returned function lets it arrive.
func (l *Lock) LateHeartbeatForTest(ctx context.Context) (arrive func() error) {
	h := l.next(l.self.Epoch)
	return func() error {
		_, err := l.records.write(unlocked(ctx), h)
		return err
	}
}

// LoseForTest makes another run take over the lock.
func (l *Lock) LoseForTest() { l.lost = true }

// DieForTest stops the heartbeats and closes the lock file, as the operating system does
// when a process ends.
func (l *Lock) DieForTest() error {
	l.StopForTest()
	return l.close()
}
