package cloud

import "context"

// StopForTest ends the signs of life, as the end of the process does.
func (l *Lock) StopForTest() {
	l.stop()
	<-l.stopped
}

// BeatForTest gives a sign of life.
func (l *Lock) BeatForTest(ctx context.Context, n int) {
	me := l.me
	me.Beats = n
	_ = l.records.write(ctx, me)
}
