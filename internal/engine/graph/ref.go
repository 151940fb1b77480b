package graph

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Resource is a node of a graph, whatever it stands for. Only *Ref implements it.
type Resource interface {
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
	// Seen is the state that was last seen, a pointer to one of the node's kind;
	// nil before it exists.
	Seen() State
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

// Role says what Apply and Delete do with a resource.
type Role string

// The roles: one for each function that puts a resource into a graph.
const (
	RoleManaged   Role = "own"    // Add: created and deleted
	RoleExisting  Role = "existing" // Use: looked up only
	RoleRetired   Role = "retire" // Retire: no longer wanted
	RoleSwept     Role = "sweep"  // Sweep: comes and goes by itself; Delete removes it
	RoleExpected  Role = "expect" // Expect: comes by itself, from what is managed
	RoleInstalled Role = "inside" // Install: created in what is managed, and deleted with it
)

// creates reports whether Apply creates and updates the resource.
func (r Role) creates() bool { return r == RoleManaged || r == RoleInstalled }

// dependent reports whether the resource is deleted with what it is a part of:
// Delete does not even look at it.
func (r Role) dependent() bool { return r == RoleExpected || r == RoleInstalled }

// Ref is a node, and the way other resources read its state.
type Ref[S State] struct{ resource }

// Found returns the state of the node, and whether it exists yet.
func (r *Ref[S]) Found() (state S, ok bool) {
	if r == nil {
		return state, false
	}
	if have := r.state(); have != nil {
		return *typed[S](have), true
	}
	return state, false
}

func (r *Ref[S]) isNil() bool { return r == nil }

// resource is what a Ref is, whatever its state. All that the executor does is
// written for it, once, and not for each S: the difference is a hundredth of
// the program.
type resource struct {
	id        ID
	role      Role
	behaviour behaviour
	needs     []Edge
	origin    string

	diagnosis Diagnosis // nil: there is none

	found   atomic.Pointer[State]
	exists  chan struct{} // closed when the thing is first seen
	closing sync.Once
	asked   cloud.Questions // what find asks, so that a write can forget it
	pending time.Time       // when it was asked for with no answer
	seen    time.Time       // when it was last looked at
	made    time.Time       // when Create was accepted
	changed bool            // something was changed since
}

// Unknown stands in a plan for the ID of a thing that is yet to be made.
const Unknown = "(known after apply)"

// ID implements Resource.
func (n *resource) ID() ID { return n.id }

// Needs implements Resource.
func (n *resource) Needs() []Edge { return n.needs }

// Origin implements Resource.
func (n *resource) Origin() string { return n.origin }

// Role implements Resource.
func (n *resource) Role() Role { return n.role }

// CloudID implements Resource.
func (n *resource) CloudID() string {
	if have := n.state(); have != nil {
		return have.CloudID()
	}
	return Unknown
}

// Takes implements Resource.
func (n *resource) Takes() (create, remove time.Duration) {
	if t, ok := n.Desired().(Timed); ok {
		return t.Takes()
	}
	return 0, 0
}

// Wanted implements Resource.
func (n *resource) Wanted() Diff {
	d := n.behaviour.diff(nil)
	if n.role == RoleExpected {
		return d
	}
	return d.wanted()
}

// Desired returns the wanted thing, for tests that look inside; nil for a
// thing that somebody else owns.
func (n *resource) Desired() any { return n.behaviour.wants() }

// Seen implements Resource.
func (n *resource) Seen() State { return n.state() }

func (n *resource) existing() <-chan struct{} { return n.exists }

// state is what was last seen, or nil.
func (n *resource) state() State {
	if have := n.found.Load(); have != nil {
		return *have
	}
	return nil
}

// set notes what was seen, and tells those who wait for it to exist.
func (n *resource) set(have State) {
	if have == nil {
		n.found.Store(nil)
		return
	}
	n.found.Store(&have)
	n.closing.Do(func() { close(n.exists) })
}
