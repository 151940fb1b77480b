package clock

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"time"
)

// observer finds out when no other goroutine of the process works.
type observer struct {
	samples []metrics.Sample
	stacks  []byte
}

func newObserver() *observer {
	return &observer{
		samples: []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}},
		stacks:  make([]byte, 1<<16),
	}
}

// The observer looks often at first: most work takes microseconds. Then it leaves the processor
// to others.
const (
	impatience   = 300 * time.Microsecond
	longestPause = 10 * time.Millisecond
)

// awaitRest returns when all other goroutines wait.
func (o *observer) awaitRest() {
	pause := impatience
	for began := time.Now(); ; {
		runtime.Gosched()
		if o.othersWait() {
			return
		}
		if time.Since(began) > impatience {
			time.Sleep(pause) //nolint:forbidigo // in real time
			pause = min(2*pause, longestPause)
		}
	}
}

// othersWait reports whether all other goroutines wait. The numbers of the scheduler are
// approximate, and read in no time. If they say so, the world is stopped to see every goroutine.
func (o *observer) othersWait() bool {
	metrics.Read(o.samples)
	if running, runnable := o.samples[0].Value.Uint64(), o.samples[1].Value.Uint64(); running > 1 || runnable > 0 {
		return false
	}
	n := runtime.Stack(o.stacks, true)
	for n == len(o.stacks) {
		o.stacks = make([]byte, 2*n)
		n = runtime.Stack(o.stacks, true)
	}
	_, others, _ := bytes.Cut(o.stacks[:n], []byte("\n\n")) // the first stack is the caller's
	for stack := range bytes.SplitSeq(others, []byte("\n\n")) {
		if works(stack) {
			return false
		}
	}
	return true
}

// works reports whether a goroutine works, by the first line of its stack: "goroutine 7
// [select]:". A goroutine that waits has the reason in brackets.
func works(stack []byte) bool {
	header, frames, _ := bytes.Cut(stack, []byte("\n"))
	_, state, _ := bytes.Cut(header, []byte("["))
	for _, working := range []string{"running", "runnable", "preempted", "copystack"} {
		if bytes.HasPrefix(state, []byte(working)) {
			return true
		}
	}
	return bytes.HasPrefix(state, []byte("syscall")) && !bytes.HasPrefix(frames, []byte("os/signal.signal_recv(")) // which never returns
}
