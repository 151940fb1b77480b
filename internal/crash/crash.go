// Package crash turns panics into errors. A panic of a goroutine would otherwise end the
// process with exit code 2, without releasing the lock of the cluster.
package crash

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Error is a panic: a bug of this program.
type Error struct {
	Value any    // the value of the panic
	Stack string // of the goroutine that panicked
}

func (e *Error) Error() string { return fmt.Sprintf("bug in clusterawsadm: %v", e.Value) }

// Catch calls a function, and returns its panic as an *Error.
func Catch(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = caught(r)
		}
	}()
	return f()
}

// caught returns the error of a panic. The panic of a Group already is one.
func caught(r any) *Error {
	if e, ok := r.(*Error); ok {
		return e
	}
	return &Error{Value: r, Stack: string(debug.Stack())}
}

// Group is a sync.WaitGroup whose functions may panic: Wait then panics in the goroutine
// of its caller.
type Group struct {
	running sync.WaitGroup
	slots   chan struct{} // nil: no limit
	mu      sync.Mutex
	first   *Error
}

// SetLimit limits the number of functions that run at the same time: Go waits until one may.
func (g *Group) SetLimit(n int) { g.slots = make(chan struct{}, n) }

// Go calls a function in a new goroutine.
func (g *Group) Go(f func()) {
	if g.slots != nil {
		g.slots <- struct{}{}
	}
	g.running.Go(func() {
		defer func() {
			if g.slots != nil {
				<-g.slots
			}
			if r := recover(); r != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.first == nil {
					g.first = caught(r)
				}
			}
		}()
		f()
	})
}

// Wait waits for all functions.
func (g *Group) Wait() {
	g.running.Wait()
	if g.first != nil {
		panic(g.first)
	}
}
