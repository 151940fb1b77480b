// Package graph keeps a set of things in the cloud the way they are wanted.
//
// A graph is built once, from values, without talking to the cloud. Plan,
// Apply and Delete are walks over it: Plan looks, Apply looks and mends until
// there is nothing left to mend, Delete walks backwards.
package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// ID names a node: "subnet/private/us-east-1a". Its first word is the kind.
type ID string

// Kind returns the first word of the ID: "subnet".
func (id ID) Kind() string {
	kind, _, _ := strings.Cut(string(id), "/")
	return kind
}

// State is what can be seen of a thing that exists.
type State interface {
	// CloudID is what AWS calls it: an ID, an ARN or a name.
	CloudID() string
}

// Desired is one resource as it is wanted, as plain data: how to find it, and how
// to tell what differs. What else can be done with it are interfaces of their own:
// Creator, Updater and Deleter. No method waits, retries or logs, which the
// executor does, and Find and Diff change nothing, not even the Desired itself.
type Desired[S State] interface {
	// Needs lists the resources that this one reads, and those that have to
	// exist as long as it does.
	Needs() []Edge
	// Find returns the resource as it is, or nil when there is none.
	Find(ctx context.Context, c *cloud.Clients) (*S, error)
	// Diff lists how the resource as it is differs from what is wanted.
	Diff(have *S) Diff
}

// Creator is implemented by a resource that a run creates. Without it the
// executor waits until the resource exists.
type Creator[S State] interface {
	// Create creates the resource and returns it as AWS answered. What it leaves
	// out, Diff shows and Update adds. A nil state means: look for it.
	Create(ctx context.Context, c *cloud.Clients) (*S, error)
}

// Updater is implemented by a resource that can be changed: one whose Diff uses
// Set, Tags or Lines.
type Updater[S State] interface {
	// Update closes the differences in d, and returns the resource as it is then
	// where the answers tell; nil means: look again.
	Update(ctx context.Context, c *cloud.Clients, have *S, d Diff) (*S, error)
}

// Deleter is implemented by a resource that is deleted by itself, and not just
// with the one it is a part of, as a listener is with its load balancer.
type Deleter[S State] interface {
	// Delete starts to delete the resource.
	Delete(ctx context.Context, c *cloud.Clients, have *S) error
}

// Managed is a resource with all three, as most are.
type Managed[S State] interface {
	Desired[S]
	Creator[S]
	Updater[S]
	Deleter[S]
}

// deletable is a resource that can be deleted.
type deletable[S State] interface {
	Desired[S]
	Deleter[S]
}

// Timed is implemented by a resource that AWS takes its time to make or to
// remove. A thing whose removal takes no time is gone when Delete has been
// accepted; any other is looked for until it is not found.
type Timed interface {
	// Takes returns how long AWS usually takes.
	Takes() (create, remove time.Duration)
}

// TimeLimited is implemented by a resource, or by its state, of which some
// changes take much longer than its creation.
type TimeLimited interface {
	// TimeLimit returns how long to wait before a run gives up; 0: as long as
	// for others.
	TimeLimit() time.Duration
}

// Follower is implemented by a resource of which a look depends on what the
// last one saw, or on what the last call started.
type Follower[S State] interface {
	// Follow does what Find does; last is the state that is known.
	Follow(ctx context.Context, c *cloud.Clients, last *S) (*S, error)
}

// Explained is implemented by a resource that can say what keeps it from
// being deleted, for messages.
type Explained[S State] interface {
	// Blockers names what still hangs on the thing; "" when that is unknown.
	Blockers(ctx context.Context, c *cloud.Clients, have *S) string
}

// Diagnosis looks for the reasons why an expected resource may not have come. It
// changes nothing. Each finding says what was seen and what to do about it, the
// most likely cause first; look is a command line that shows more, "" for none.
type Diagnosis func(ctx context.Context, c *cloud.Clients) (findings []string, look string)

// Lookup finds a thing that somebody else owns.
type Lookup[S State] func(ctx context.Context, c *cloud.Clients) (*S, error)

// Edge is a need of a node: another node, and how much of it.
type Edge struct {
	Resource Resource
	// Existing edges are satisfied as soon as the other node exists; the rest
	// wait until it has settled.
	Existing bool
	// Loose edges say nothing about deletion. With any other edge the other
	// node is removed only when this one is gone.
	Loose bool
	// Outlives turns that round: this node is removed only when the other one
	// is gone.
	Outlives bool
}

// On returns edges to nodes that have to be settled first, and outlive us.
func On(nodes ...Resource) []Edge { return edges(nodes, Edge{}) }

// Exists returns edges to nodes that only have to exist first (an ID or a
// name is enough), and outlive us.
func Exists(nodes ...Resource) []Edge { return edges(nodes, Edge{Existing: true}) }

// Reads returns edges to nodes of which only a value is read once they exist;
// which of us is removed first does not matter.
func Reads(nodes ...Resource) []Edge { return edges(nodes, Edge{Existing: true, Loose: true}) }

// Awaits returns edges to nodes that have to be settled first; which of us is
// removed first does not matter.
func Awaits(nodes ...Resource) []Edge { return edges(nodes, Edge{Loose: true}) }

// Outlives returns edges to nodes of which only a value is read once they
// exist, and which are removed before us.
func Outlives(nodes ...Resource) []Edge {
	return edges(nodes, Edge{Existing: true, Loose: true, Outlives: true})
}

// DeletedWith returns edges to nodes that have to be settled first, and that take
// us with them when they are removed.
func DeletedWith(nodes ...Resource) []Edge { return edges(nodes, Edge{Loose: true, Outlives: true}) }

func edges(nodes []Resource, like Edge) (out []Edge) {
	for _, n := range nodes {
		if n != nil && !n.isNil() {
			like.Resource = n
			out = append(out, like)
		}
	}
	return out
}

// Graph is a set of nodes. A node can only need nodes added before it, so the
// order of adding is an order of creation and a cycle cannot be written.
type Graph struct {
	resources []Resource
	byID      map[ID]Resource
	read      time.Time // when all of it was last looked at
}

// New returns an empty graph.
func New() *Graph { return &Graph{byID: map[ID]Resource{}} }

// Add puts a thing that we own into the graph: Apply makes it, Delete removes
// it. It starts only after its needs.
func Add[S State](g *Graph, id ID, r Desired[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleManaged, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Use puts a thing that somebody else owns into the graph: it is looked up,
// and never made, changed or removed.
func Use[S State](g *Graph, id ID, find Lookup[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleExisting, behaviour: lookup[S]{look: find}}}, opts)
}

// Retire puts a thing that we own, and no longer want, into the graph: Apply
// and Delete remove it.
func Retire[S State](g *Graph, id ID, r deletable[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleRetired, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Sweep puts things into the graph that come and go by themselves while the
// cluster lives: Apply leaves them alone, Delete removes them.
func Sweep[S State](g *Graph, id ID, r deletable[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleSwept, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Expect puts a thing into the graph that comes by itself: Apply waits until
// it is as wanted, Delete has nothing to do with it.
func Expect[S State](g *Graph, id ID, r Desired[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleExpected, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Install adds a resource inside the Kubernetes cluster: Apply creates and updates
// it, and Delete leaves it alone, because it is deleted together with the cluster.
func Install[S State](g *Graph, id ID, r Desired[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleInstalled, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Option says more about a node.
type Option func(*options)

type options struct {
	needs     []Edge
	origin    string
	diagnosis Diagnosis
}

// With adds needs that the resource itself does not read.
func With(needs ...[]Edge) Option {
	return func(o *options) { o.needs = append(o.needs, slices.Concat(needs...)...) }
}

// From says which part of the manifest a node comes from, for messages:
// "cluster.yaml:31 AWSCluster/prod spec.network.vpc".
func From(origin string) Option {
	return func(o *options) { o.origin = origin }
}

// Diagnosed says how to find out why a resource has not come in time.
func Diagnosed(d Diagnosis) Option {
	return func(o *options) { o.diagnosis = d }
}

func add[S State](g *Graph, r *Ref[S], opts []Option) *Ref[S] {
	g.add(r, &r.resource, opts)
	return r
}

func (g *Graph) add(ref Resource, n *resource, opts []Option) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	n.origin, n.diagnosis, n.needs, n.exists = o.origin, o.diagnosis, append(n.needs, o.needs...), make(chan struct{})
	if _, dup := g.byID[n.id]; dup {
		panic(fmt.Sprintf("graph: node %s added twice", n.id))
	}
	for _, e := range n.needs {
		if g.byID[e.Resource.ID()] != e.Resource {
			panic(fmt.Sprintf("graph: node %s needs %s, which is not in the graph", n.id, e.Resource.ID()))
		}
	}
	g.resources = append(g.resources, ref)
	g.byID[n.id] = ref
}

// Resources lists the nodes in the order they were added.
func (g *Graph) Resources() []Resource { return g.resources }

// Resource returns the node of that ID, or nil.
func (g *Graph) Resource(id ID) Resource { return g.byID[id] }

// CreateTime returns how long AWS is expected to take for the creation of those
// resources that busy names: the longest path through the times that kinds say
// they take. Nil stands for all resources.
func (g *Graph) CreateTime(busy func(ID) bool) time.Duration {
	settled, exists := map[Resource]time.Duration{}, map[Resource]time.Duration{}
	var end time.Duration
	for _, n := range g.resources {
		var start time.Duration
		for _, e := range n.Needs() {
			if e.Existing {
				start = max(start, exists[e.Resource])
			} else {
				start = max(start, settled[e.Resource])
			}
		}
		exists[n], settled[n] = start, start
		if create, _ := n.Takes(); busy == nil || busy(n.ID()) {
			settled[n] += create
		}
		end = max(end, settled[n])
	}
	return end
}

// DeleteTime is the same for a deletion, in which a resource waits for those
// that it outlives.
func (g *Graph) DeleteTime(busy func(ID) bool) time.Duration {
	before := g.deletedBefore()
	gone := map[Resource]time.Duration{}
	var visit func(n Resource) time.Duration
	visit = func(n Resource) time.Duration {
		if end, ok := gone[n]; ok {
			return end
		}
		var end time.Duration
		for _, w := range before[n] {
			end = max(end, visit(w.resource))
		}
		if _, remove := n.Takes(); busy == nil || busy(n.ID()) {
			end += remove
		}
		gone[n] = end
		return end
	}
	var end time.Duration
	for _, n := range g.resources {
		end = max(end, visit(n))
	}
	return end
}

// deletedBefore lists, for each resource, those that are deleted before it.
func (g *Graph) deletedBefore() map[Resource][]wait {
	before := map[Resource][]wait{}
	for _, n := range g.resources {
		for _, e := range n.Needs() {
			switch {
			case e.Outlives:
				before[n] = append(before[n], wait{e.Resource, false})
			case !e.Loose:
				before[e.Resource] = append(before[e.Resource], wait{n, false})
			}
		}
	}
	return before
}

// circle returns resources of which each is deleted before the next, and the last
// before the first; nil where there are none. Only Outlives can write one.
func (g *Graph) circle() []ID {
	before := g.deletedBefore()
	var path []ID
	state := map[Resource]int{} // 1: on the path, 2: done
	var visit func(n Resource) bool
	visit = func(n Resource) bool {
		state[n], path = 1, append(path, n.ID())
		for _, w := range before[n] {
			if state[w.resource] == 1 {
				path = path[slices.Index(path, w.resource.ID()):]
				slices.Reverse(path)
				return true
			}
			if state[w.resource] == 0 && visit(w.resource) {
				return true
			}
		}
		state[n], path = 2, path[:len(path)-1]
		return false
	}
	for _, n := range g.resources {
		if state[n] == 0 && visit(n) {
			return path
		}
	}
	return nil
}

// Before lists the resources that are deleted before r, directly or by way of
// others.
func (g *Graph) Before(r Resource) map[Resource]bool {
	before, out := g.deletedBefore(), map[Resource]bool{}
	var visit func(Resource)
	visit = func(n Resource) {
		for _, w := range before[n] {
			if !out[w.resource] {
				out[w.resource] = true
				visit(w.resource)
			}
		}
	}
	visit(r)
	return out
}
