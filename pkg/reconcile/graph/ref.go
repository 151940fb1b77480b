package graph

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"clusterawsadm/internal/cloud"
)

// Node is a node of a graph, whatever it stands for. Only *Ref implements it.
type Node interface {
	// ID names the node.
	ID() ID
	// Needs lists what has to be there first.
	Needs() []Edge
	// Origin is the part of the manifest that the node comes from.
	Origin() string
	// Role says whose thing it is.
	Role() Role
	// CloudID is what AWS calls the thing, or Unknown before it exists.
	CloudID() string
	// Takes returns how long AWS usually takes to make and to remove it.
	Takes() (create, remove time.Duration)
	// Wanted lists the fields that the thing is wanted with.
	Wanted() Diff

	isNil() bool
	existing() <-chan struct{}
	look(ctx context.Context, x *Executor) (Step, error)
	converge(ctx context.Context, x *Executor) error
	prove(ctx context.Context, x *Executor) error
	shown(ctx context.Context, x *Executor) bool
	remove(ctx context.Context, x *Executor) error
}

// Role says whose a thing is and what becomes of it.
type Role string

// The roles.
const (
	own    Role = "own"    // we make it and remove it
	borrow Role = "borrow" // somebody else does
	retire Role = "retire" // we made it, and it has to go
	sweep  Role = "sweep"  // it comes and goes; Delete removes it
)

// Ref is a node, and the way other resources read its state.
type Ref[S State] struct {
	id       ID
	role     Role
	resource Resource[S] // nil for a thing that somebody else owns
	find     Lookup[S]
	needs    []Edge
	origin   string

	found   atomic.Pointer[S]
	exists  chan struct{} // closed when the thing is first seen
	closing sync.Once
	asked   cloud.Questions // what Find asks, so that a write can forget it
	pending time.Time       // when it was asked for with no answer
	seen    time.Time       // when it was last looked at
	made    time.Time       // when Create was accepted
	changed bool            // something was changed since
}

// Unknown stands in a plan for the ID of a thing that is yet to be made.
const Unknown = "(known after apply)"

// ID implements Node.
func (r *Ref[S]) ID() ID { return r.id }

// Needs implements Node.
func (r *Ref[S]) Needs() []Edge { return r.needs }

// Origin implements Node.
func (r *Ref[S]) Origin() string { return r.origin }

// Role implements Node.
func (r *Ref[S]) Role() Role { return r.role }

// Found returns the state of the node, and whether it exists yet.
func (r *Ref[S]) Found() (state S, ok bool) {
	if r == nil {
		return state, false
	}
	if s := r.found.Load(); s != nil {
		return *s, true
	}
	return state, false
}

// CloudID implements Node.
func (r *Ref[S]) CloudID() string {
	if s, ok := r.Found(); ok {
		return s.CloudID()
	}
	return Unknown
}

// Takes implements Node.
func (r *Ref[S]) Takes() (create, remove time.Duration) {
	if t, ok := r.resource.(Timed); ok && r.resource != nil {
		return t.Takes()
	}
	return 0, 0
}

// Wanted implements Node.
func (r *Ref[S]) Wanted() Diff {
	if r.resource == nil {
		return nil
	}
	return r.resource.Diff(new(S)).wanted()
}

// Resource returns the wanted thing, for tests that look inside; nil for a
// thing that somebody else owns.
func (r *Ref[S]) Resource() any { return r.resource }

func (r *Ref[S]) isNil() bool { return r == nil }

func (r *Ref[S]) existing() <-chan struct{} { return r.exists }

// set notes what was seen, and tells those who wait for it to exist.
func (r *Ref[S]) set(have *S) {
	r.found.Store(have)
	if have != nil {
		r.closing.Do(func() { close(r.exists) })
	}
}
