package graph

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Resource is a resource of a graph, of any kind. *Ref[S] implements it, for each type of state S:
// a map, a list and the arguments of On have references to states of several types.
type Resource interface {
	// ID is the identity in the graph.
	ID() plan.ID
	// Needs lists the edges to other resources.
	Needs() []Edge
	// Origin is the part of the manifest that the resource comes from.
	Origin() string
	// Role says what Apply and Delete do with it.
	Role() Role
	// CloudID is the ID, ARN or name in AWS, or Unknown before the resource exists.
	CloudID() string
	// Observed is the last observed state, a pointer to the state type of the kind; nil
	// before the resource exists.
	Observed() State
	// Takes returns how long AWS usually takes to create and to delete it.
	Takes() (create, remove time.Duration)
	// Desired is the desired resource; nil for an existing one.
	Desired() any
	// Wanted lists the desired fields.
	Wanted() plan.Diff

	isNil() bool
	postpone(until []Edge)
	untag(keys []string)
	deletedAfter() func(plan.ID) bool
	deletedBehind() func(plan.ID) bool
	existing() <-chan struct{}
	leaving() <-chan struct{}
	lingersSince() time.Time
	deletion() State
	wasWritten() bool
	differences() plan.Diff
	plan(ctx context.Context, x *Executor, deep depth) (plan.Step, error)
	converge(ctx context.Context, x *Executor) error
	verify(ctx context.Context, x *Executor) error
	visible(ctx context.Context, x *Executor) bool
	remove(ctx context.Context, x *Executor, left time.Time) error
	recall() bool
	forget()
	rehearse(ctx context.Context, c *cloud.Clients, d plan.Diff) error
	there(ctx context.Context, x *Executor) (bool, error)
}

// Role says what Apply and Delete do with a resource.
type Role string

// The roles: one for each function that adds a resource to a graph.
const (
	RoleManaged   Role = "managed"   // Add: created and deleted
	RoleExisting  Role = "existing"  // Use: looked up only
	RoleRetired   Role = "retired"   // Retire: not desired any more
	RoleSwept     Role = "swept"     // Sweep: appears and disappears by itself; Delete deletes it
	RoleExpected  Role = "expected"  // Expect: created by something else
	RoleInstalled Role = "installed" // Install: created inside the Kubernetes cluster, and deleted with it
)

// creates reports whether Apply creates and updates the resource.
func (r Role) creates() bool { return r == RoleManaged || r == RoleInstalled }

// dependent reports whether the resource is deleted together with the one that it is a
// part of. Delete does not read it.
func (r Role) dependent() bool { return r == RoleExpected || r == RoleInstalled }

// Ref is a resource in a graph, from which other resources read its state.
type Ref[S State] struct{ resource }

// Found returns the state of the resource, and whether it exists.
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

// resource is the part of a Ref that does not depend on S. The executor uses only this
// part.
type resource struct {
	id        plan.ID
	role      Role
	behaviour behaviour
	needs     []Edge
	origin    string

	diagnosis Diagnosis // nil: there is none
	hopeless  func(ctx context.Context, c *cloud.Clients) bool

	replacedBy plan.ID   // what takes its place when it is deleted; "": nothing
	partOf     plan.ID   // whose deletion it is a part of; "": of none
	label      plan.ID   // its ID before it was retired; "": the same
	reasons    plan.Diff // why it is deleted
	former     []string  // keys of tags that earlier runs have set, and that it should not have any more

	after  func(plan.ID) bool // DeletedAfter; nil: none
	behind func(plan.ID) bool // DeletedBehind; nil: none

	found   atomic.Pointer[State]
	exists  chan struct{} // closed when the resource is first observed
	closing sync.Once
	leaves  chan struct{} // closed when AWS has accepted the deletion
	left    sync.Once
	gone    time.Time       // when AWS accepted the deletion
	asked   cloud.Questions // the queries of find, whose answers are discarded after a write
	pending time.Time       // time of a create call whose answer was lost
	seen    time.Time       // time of the last read
	made    time.Time       // time of the accepted create call
	changed bool            // there was a write after the last read
	written atomic.Bool     // AWS has accepted a write
	removed State           // the state in which it was deleted; nil: it was not deleted
	ending  State           // what AWS is deleting, before another one is created in its place; nil: nothing
}

// ID implements Resource.
func (n *resource) ID() plan.ID { return n.id }

// Needs implements Resource.
func (n *resource) Needs() []Edge { return n.needs }

func (n *resource) postpone(until []Edge) { n.needs = append(n.needs, until...) }

func (n *resource) untag(keys []string) { n.former = keys }

func (n *resource) deletedAfter() func(plan.ID) bool { return n.after }

func (n *resource) deletedBehind() func(plan.ID) bool { return n.behind }

// Origin implements Resource.
func (n *resource) Origin() string { return n.origin }

// Role implements Resource.
func (n *resource) Role() Role { return n.role }

// CloudID implements Resource.
func (n *resource) CloudID() string {
	if have := n.state(); have != nil {
		return have.CloudID()
	}
	return plan.Unknown
}

// Takes implements Resource. What is gone with another resource takes no time to delete.
func (n *resource) Takes() (create, remove time.Duration) {
	t, ok := n.Desired().(Timed)
	if !ok {
		return 0, 0
	}
	create, remove = t.Takes()
	if goesWith(n.needs, func(owner Resource) bool { return owner.Observed() == nil }) {
		remove = 0
	}
	return create, remove
}

// differences lists how the last observed state differs from the desired one.
func (n *resource) differences() plan.Diff { return n.diff(n.state()) }

// Wanted implements Resource.
func (n *resource) Wanted() plan.Diff {
	d := n.behaviour.diff(nil)
	if n.role == RoleExpected {
		return d
	}
	return d.Wanted()
}

// diff lists the differences of a resource that exists, with the tags to remove.
func (n *resource) diff(have State) plan.Diff {
	d := n.behaviour.diff(have)
	if tagged, is := have.(interface{ ResourceTags() cloud.Tags }); is {
		d.Untag(tagged.ResourceTags(), n.former)
	}
	return d
}

func (n *resource) rehearse(ctx context.Context, c *cloud.Clients, d plan.Diff) (err error) {
	if have := n.state(); have != nil {
		_, err = n.behaviour.update(ctx, c, have, d)
		return err
	}
	_, err = n.behaviour.create(ctx, c)
	return err
}

// Desired implements Resource.
func (n *resource) Desired() any { return n.behaviour.wants() }

// Observed implements Resource.
func (n *resource) Observed() State { return n.state() }

func (n *resource) existing() <-chan struct{} { return n.exists }

func (n *resource) leaving() <-chan struct{} { return n.leaves }

// lingersSince returns when AWS accepted the deletion of a resource that leaves something behind;
// zero for others. It is called after the deletion.
func (n *resource) lingersSince() time.Time {
	if l, is := n.Desired().(Lingering); is && l.Lingers() > 0 {
		return n.gone
	}
	return time.Time{}
}

func (n *resource) deletion() State { return n.ending }

func (n *resource) wasWritten() bool { return n.written.Load() }

// state returns the last observed state, or nil.
func (n *resource) state() State {
	if have := n.found.Load(); have != nil {
		return *have
	}
	return nil
}

// set stores the observed state, and releases those that wait until the resource exists.
func (n *resource) set(have State) {
	if have == nil {
		n.found.Store(nil)
		return
	}
	n.found.Store(&have)
	n.closing.Do(func() { close(n.exists) })
}
