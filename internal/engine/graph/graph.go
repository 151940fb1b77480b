// Package graph brings a set of resources in the cloud to their desired state.
//
// A graph is built once, from values, without a call to the cloud. Plan reads the state
// of all resources; Apply reads and writes until no difference is left; Delete deletes in
// reverse order.
package graph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// State is the observed state of a resource that exists.
type State interface {
	// CloudID is the ID, ARN or name that AWS gives to it.
	CloudID() string
}

// Desired is the desired state of one resource, as plain data, with the methods to find
// it and to compare it. The other operations are separate interfaces: Creator, Updater
// and Deleter. No method waits, retries or logs: the executor does. Find and Diff change
// nothing, not even the Desired itself.
type Desired[S State] interface {
	// Needs lists the edges: the resources whose state this one reads, and those that
	// have to exist as long as it does.
	Needs() []Edge
	// Find returns the state of the resource, or nil if it does not exist.
	Find(ctx context.Context, c *cloud.Clients) (*S, error)
	// Diff lists the differences between the state and the desired state.
	Diff(have *S) plan.Diff
}

// Creator is implemented by a resource that a run creates. Without it the
// executor waits until the resource exists.
type Creator[S State] interface {
	// Create creates the resource and returns its state from AWS's answer. Update adds
	// what Create leaves out and Diff shows. A nil state means that Find has to read it.
	Create(ctx context.Context, c *cloud.Clients) (*S, error)
}

// Updater is implemented by a resource that can be changed: one whose Diff uses Set, Tags
// or Lines.
type Updater[S State] interface {
	// Update closes the differences in d, and returns the new state if AWS's answers
	// contain it; nil means that Find has to read it.
	Update(ctx context.Context, c *cloud.Clients, have *S, d plan.Diff) (*S, error)
}

// Deleter is implemented by a resource that is deleted by itself, and not only together
// with the one that it is a part of, as a listener with its load balancer.
type Deleter[S State] interface {
	// Delete starts to delete the resource.
	Delete(ctx context.Context, c *cloud.Clients, have *S) error
}

// Managed is a resource with all three interfaces, as most are.
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

// Timed is implemented by a resource that AWS takes some time to create or to delete. If
// the deletion takes no time, the resource is deleted as soon as Delete is accepted;
// otherwise Find is called until it returns nil.
type Timed interface {
	// Takes returns how long AWS usually takes.
	Takes() (create, remove time.Duration)
}

// Lingering is implemented by a resource that is gone when its deletion is accepted, and leaves
// something that keeps others from being deleted for some time.
type Lingering interface {
	// Lingers returns how long what it leaves usually exists.
	Lingers() time.Duration
}

// Checked is implemented by a resource that can be validated with read-only calls before the
// first write.
type Checked interface {
	// Check returns the reason if AWS would reject the resource, otherwise "".
	Check(ctx context.Context, c *cloud.Clients) (refusal string, err error)
}

// CheckedParts is implemented by a resource with parts that have positions of their own in the manifest, such as the objects of a
// ClusterResourceSet.
type CheckedParts interface {
	// CheckParts asks with read-only calls whether the parts that would be written are accepted. have is the last observed state, nil if none
	// exists. What cannot be asked before the first write is no objection.
	CheckParts(ctx context.Context, c *cloud.Clients, have State) ([]Objection, error)
}

// Objection is what is said against one part of a resource.
type Objection struct {
	Origin string // the position of the part
	Err    error
	Doubt  bool // the part may be accepted all the same
}

// CheckedCreation is implemented by a resource of which AWS validates more when it is created than when it is changed.
type CheckedCreation interface {
	// CheckCreation returns the reason if AWS would reject the creation of the resource, otherwise "".
	CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error)
}

// Doubted is implemented by a resource that AWS may create although it will not work as intended.
type Doubted interface {
	// Doubts returns warnings for the plan, from read-only calls before the first write.
	Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error)
}

// CheckedDeletion is implemented by a retired resource whose deletion can be validated with read-only calls before
// the first write.
type CheckedDeletion interface {
	// CheckDeletion returns the reason why the resource cannot be deleted, otherwise "".
	CheckDeletion(ctx context.Context, c *cloud.Clients) (refusal string, err error)
}

// Requested is implemented by a resource whose Create shares its call with others, or makes other calls before.
type Requested interface {
	// Request returns the input of the call that creates it, with what is known now; nil if too little is known. If plans
	// rehearse the kind (kind.Kind), what an update sends is a part of it.
	Request() (service, operation string, input any)
}

// Rehearse calls Create of a resource that is missing, or Update of one with these differences, in a context in which
// nothing is sent (cloud.Inspecting).
func Rehearse(ctx context.Context, c *cloud.Clients, n Resource, d plan.Diff) error {
	return n.rehearse(ctx, c, d)
}

// TimeLimited is implemented by a resource, or by its state, if some of its changes take
// much longer than its creation.
type TimeLimited interface {
	// TimeLimit returns how long a run waits before it fails; 0 means the default. A negative
	// limit has passed: what is waited for began before the run.
	TimeLimit() time.Duration
}

// Lasting is implemented by a state if some of its changes take much longer than its creation.
type Lasting interface {
	// Lasts returns how long AWS usually takes for all changes to the desired state, in a plan;
	// 0 if that is as long as a creation.
	Lasts() time.Duration
}

// UpdateTimed is implemented by a resource whose updates take another time than its creation.
type UpdateTimed interface {
	// UpdateTakes returns how long AWS usually takes for the update that is made first for
	// these differences.
	UpdateTakes(d plan.Diff) time.Duration
	// UpdatesTake returns how long AWS usually takes for all updates that close these differences, one after the other. The resource exists.
	UpdatesTake(have State, d plan.Diff) time.Duration
}

// Finishing is implemented by a state in which AWS tells how the last Update has ended.
type Finishing interface {
	// Updated reports whether AWS has finished the Update. What differs then, AWS does not change any more.
	Updated() bool
}

// Failing is implemented by a state that AWS does not leave by itself, for example because a
// creation has failed. A run that waits for the resource ends the wait at once.
type Failing interface {
	// Failure returns the status and AWS's reason, as in "CREATE_FAILED: AccessDenied: …"; "" if
	// the state is not one of these.
	Failure() string
}

// Deleting is implemented by the state of a resource that AWS still shows while it deletes it. If the resource has to exist, the graph treats it as
// missing: a plan creates it, and a run waits for the end of the deletion before it does.
type Deleting interface {
	// Deleting reports whether AWS is deleting the resource, whoever has asked for it.
	Deleting() bool
}

// Follower is implemented by a resource whose Find depends on the last known state, or on
// what the last call started.
type Follower[S State] interface {
	// Follow is called instead of Find; last is the last known state.
	Follow(ctx context.Context, c *cloud.Clients, last *S) (*S, error)
}

// Identified is implemented by a resource whose Find reads more than a deletion needs.
type Identified[S State] interface {
	// Identify is called instead of Find and Follow where only the existence and the identity of
	// the resource count: to plan a deletion, and to look again after it. last is the last known
	// state; nil for none.
	Identify(ctx context.Context, c *cloud.Clients, last *S) (*S, error)
}

// Explained is implemented by a resource that can report what prevents its deletion, for
// messages.
type Explained[S State] interface {
	// Blockers names what still uses the resource; "" if that is unknown.
	Blockers(ctx context.Context, c *cloud.Clients, have *S) string
}

// Diagnosis looks for the reasons why an expected resource did not become ready. It
// changes nothing. Each finding says what was observed and how to fix it, the most likely
// cause first; hint is a command line that shows more, "" for none.
type Diagnosis func(ctx context.Context, c *cloud.Clients) (findings []string, hint string)

// Lookup finds an existing resource.
type Lookup[S State] func(ctx context.Context, c *cloud.Clients) (*S, error)

// Edge is a dependency of one resource on another.
type Edge struct {
	Resource Resource
	// Existing edges are satisfied as soon as the other resource exists; others wait
	// until it is settled.
	Existing bool
	// Loose edges have no effect on deletion. With any other edge, the other resource is
	// deleted after this one.
	Loose bool
	// Outlives is the reverse: this resource is deleted after the other one.
	Outlives bool
	// With says that the deletion of the other resource also deletes this one. Once the other
	// resource is gone, nobody has to wait for the deletion of this one.
	With bool
	// Shared says that both resources change the same object of AWS. If the other one was written, this one is read again before it is compared.
	Shared bool
}

// On returns edges to resources that have to be settled first, and are deleted later.
func On(resources ...Resource) []Edge { return edges(resources, Edge{}) }

// Exists returns edges to resources that only have to exist first (an ID or a name is
// enough), and are deleted later.
func Exists(resources ...Resource) []Edge { return edges(resources, Edge{Existing: true}) }

// Reads returns edges to resources of which a value is read once they exist. They have no
// effect on the order of deletion.
func Reads(resources ...Resource) []Edge { return edges(resources, Edge{Existing: true, Loose: true}) }

// Awaits returns edges to resources that have to be settled first. They have no effect on
// the order of deletion.
func Awaits(resources ...Resource) []Edge { return edges(resources, Edge{Loose: true}) }

// SharedWith returns edges to resources that have to be settled first, and that change the same object of AWS as this resource. They have no
// effect on the order of deletion.
func SharedWith(resources ...Resource) []Edge {
	return edges(resources, Edge{Loose: true, Shared: true})
}

// Outlives returns edges to resources of which a value is read once they exist, and which
// are deleted earlier.
func Outlives(resources ...Resource) []Edge {
	return edges(resources, Edge{Existing: true, Loose: true, Outlives: true})
}

// DeletedWith returns edges to resources that have to be settled first, and whose
// deletion also deletes this resource.
func DeletedWith(resources ...Resource) []Edge {
	return edges(resources, Edge{Loose: true, Outlives: true, With: true})
}

func edges(resources []Resource, like Edge) (out []Edge) {
	for _, n := range resources {
		if n != nil && !n.isNil() {
			like.Resource = n
			out = append(out, like)
		}
	}
	return out
}

// Graph is a set of resources. A node can only need resources added before it, so the
// order of adding is an order of creation and a cycle cannot be written.
type Graph struct {
	resources []Resource
	byID      map[plan.ID]Resource
	read      time.Time // time of the last plan
}

// New returns an empty graph.
func New() *Graph { return &Graph{byID: map[plan.ID]Resource{}} }

// Add adds a managed resource: Apply creates it and Delete deletes it, after the
// resources that it needs.
func Add[S State](g *Graph, id plan.ID, r Desired[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleManaged, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Use adds an existing resource, which belongs to somebody else: it is looked up, and
// never created, changed or deleted.
func Use[S State](g *Graph, id plan.ID, find Lookup[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleExisting, behaviour: lookup[S]{look: find}}}, opts)
}

// UseAs is Use for a resource that a deletion does not read: it has that state there.
func UseAs[S State](g *Graph, id plan.ID, find Lookup[S], deleted S, opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleExisting, behaviour: lookup[S]{look: find, deleted: &deleted}}}, opts)
}

// Untag adds to the desired state of a resource that it has no tags with these keys.
func Untag(r Resource, keys []string) { r.untag(keys) }

// Retire adds an owned resource that is not desired any more: Apply and Delete delete it.
func Retire[S State](g *Graph, id plan.ID, r deletable[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleRetired, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Sweep adds owned resources that appear and disappear while the cluster exists: Apply
// leaves them alone, Delete deletes them.
func Sweep[S State](g *Graph, id plan.ID, r deletable[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleSwept, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Expect adds a resource that something else creates: Apply waits until it is as desired,
// Delete ignores it.
func Expect[S State](g *Graph, id plan.ID, r Desired[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleExpected, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Install adds a resource inside the Kubernetes cluster: Apply creates and updates
// it, and Delete leaves it alone, because it is deleted together with the cluster.
func Install[S State](g *Graph, id plan.ID, r Desired[S], opts ...Option) *Ref[S] {
	return add(g, &Ref[S]{resource{id: id, role: RoleInstalled, behaviour: desired[S]{r}, needs: r.Needs()}}, opts)
}

// Option sets a property of a resource.
type Option func(*options)

type options struct {
	needs     []Edge
	origin    string
	diagnosis Diagnosis
	hopeless  func(ctx context.Context, c *cloud.Clients) bool

	replacedBy plan.ID
	partOf     plan.ID
	label      plan.ID
	reasons    plan.Diff
	after      func(plan.ID) bool
	behind     func(plan.ID) bool
}

// With adds edges to resources whose state the resource itself does not read.
func With(needs ...[]Edge) Option {
	return func(o *options) { o.needs = append(o.needs, slices.Concat(needs...)...) }
}

// From sets the origin, the part of the manifest that a resource comes from, for
// messages: "cluster.yaml:31 AWSCluster/prod spec.network.vpc".
func From(origin string) Option {
	return func(o *options) { o.origin = origin }
}

// Because sets why a resource is deleted: its settings that have changed, and the resource
// that takes its place; "" for none. Both are shown in plans, and have no other effect.
func Because(replacedBy plan.ID, changes []plan.Change) Option {
	return func(o *options) { o.replacedBy, o.reasons = replacedBy, changes }
}

// PartOf sets the resource whose deletion this one is a step of. It is shown in plans, and has no other
// effect.
func PartOf(deleted plan.ID) Option {
	return func(o *options) { o.partOf = deleted }
}

// Label sets the ID that a retired resource had before. It is shown in plans, and has no other effect.
func Label(id plan.ID) Option {
	return func(o *options) { o.label = id }
}

// DeletedAfter sets which other resources are deleted before this one, also those that are
// added later. It has no effect on Apply. Where another edge says the opposite, that edge
// has precedence.
func DeletedAfter(others func(plan.ID) bool) Option {
	return func(o *options) { o.after = others }
}

// DeletedBehind sets which other resources have to be leaving before this one is deleted, also those that
// are added later: AWS has accepted their deletion, and may still be at it. It has no effect on Apply.
// Where another edge says the opposite, that edge has precedence.
func DeletedBehind(others func(plan.ID) bool) Option {
	return func(o *options) { o.behind = others }
}

// Diagnosed sets how to find out why a resource did not become ready in time.
func Diagnosed(d Diagnosis) Option {
	return func(o *options) { o.diagnosis = d }
}

// Hopeless sets how to find out that a wait for a change of the resource cannot end, because of something that nothing in the run changes. The run asks
// after a minute of waiting, and each minute from then on.
func Hopeless(asks func(ctx context.Context, c *cloud.Clients) bool) Option {
	return func(o *options) { o.hopeless = asks }
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
	n.partOf, n.label = o.partOf, o.label
	n.replacedBy, n.reasons, n.after, n.behind, n.leaves = o.replacedBy, o.reasons, o.after, o.behind, make(chan struct{})
	n.hopeless = o.hopeless
	n.origin, n.diagnosis, n.needs, n.exists = o.origin, o.diagnosis, append(n.needs, o.needs...), make(chan struct{})
	if _, dup := g.byID[n.id]; dup {
		panic(fmt.Sprintf("graph: resource %s added twice", n.id))
	}
	for _, e := range n.needs {
		if g.byID[e.Resource.ID()] != e.Resource {
			panic(fmt.Sprintf("graph: resource %s needs %s, which is not in the graph", n.id, e.Resource.ID()))
		}
	}
	g.resources = append(g.resources, ref)
	g.byID[n.id] = ref
}

// Postpone lets a resource wait until others exist, which may have been added later and do not need it. It has no effect on the order
// of deletion.
func (g *Graph) Postpone(n Resource, until []Resource) { n.postpone(Reads(until...)) }

// Resources lists the resources in the order in which they were added.
func (g *Graph) Resources() []Resource { return g.resources }

// Resource returns the resource with that ID, or nil.
func (g *Graph) Resource(id plan.ID) Resource { return g.byID[id] }

// CreateTime returns how long AWS is expected to take to create the resources that busy
// selects: the longest path through their Takes times. Nil selects all resources.
func (g *Graph) CreateTime(busy func(plan.ID) bool) time.Duration {
	return longest(timesAhead(g.resources, needsOf, of(busy, lasts)))
}

// DeleteTime is the same for a deletion.
func (g *Graph) DeleteTime(busy func(plan.ID) bool) time.Duration {
	before := g.deletedBefore()
	return longest(timesAhead(g.resources, func(n Resource) []wait { return before[n] }, of(busy, removes(busy))))
}

func longest(times map[Resource]time.Duration) time.Duration {
	return slices.Max(append(slices.Collect(maps.Values(times)), 0))
}

// of returns the times of the resources that busy selects; the others take none.
func of(busy func(plan.ID) bool, takes func(Resource) time.Duration) func(Resource) time.Duration {
	if busy == nil {
		return takes
	}
	return func(n Resource) time.Duration {
		if !busy(n.ID()) {
			return 0
		}
		return takes(n)
	}
}

// lasts returns how long AWS is expected to take to bring a resource to its desired state.
func lasts(n Resource) time.Duration {
	if s, is := n.Observed().(Lasting); is && s.Lasts() > 0 {
		return s.Lasts()
	}
	create, remove := n.Takes()
	if n.deletion() != nil {
		return remove + create
	}
	if have := n.Observed(); have != nil && n.Role().creates() {
		d := n.differences()
		if u, is := n.Desired().(UpdateTimed); is {
			return u.UpdatesTake(have, d)
		}
		if d.OnlyTags() {
			return 0
		}
	}
	return create
}

// removes returns how long AWS is expected to take to delete a resource and what it leaves behind, if the resources that busy
// selects are deleted; nil selects all.
func removes(busy func(plan.ID) bool) func(Resource) time.Duration {
	return func(n Resource) time.Duration {
		if goesWith(n.Needs(), func(owner Resource) bool { return busy == nil || busy(owner.ID()) }) {
			return 0
		}
		_, remove := n.Takes()
		if l, is := n.Desired().(Lingering); is {
			remove += l.Lingers()
		}
		return remove
	}
}

// goesWith reports whether the deletion of one of the owners that gone selects deletes a resource with these edges.
func goesWith(edges []Edge, gone func(owner Resource) bool) bool {
	return slices.ContainsFunc(edges, func(e Edge) bool { return e.With && gone(e.Resource) })
}

// timesAhead returns, for each resource, how long AWS is expected to take from the beginning of the work on it to the end
// of the walk: the longest path that begins with the resource.
func timesAhead(resources []Resource, before func(Resource) []wait, takes func(Resource) time.Duration) map[Resource]time.Duration {
	after := map[Resource][]wait{} // those that wait for it
	for _, n := range resources {
		for _, w := range before(n) {
			after[w.resource] = append(after[w.resource], wait{resource: n, existing: w.existing, leaving: w.leaving})
		}
	}
	ahead := make(map[Resource]time.Duration, len(resources))
	var visit func(n Resource) time.Duration
	visit = func(n Resource) time.Duration {
		if d, known := ahead[n]; known {
			return d
		}
		own := takes(n)
		end := own
		for _, w := range after[n] {
			d := visit(w.resource)
			if !w.existing && !w.leaving {
				d += own
			}
			end = max(end, d)
		}
		ahead[n] = end
		return end
	}
	for _, n := range resources {
		visit(n)
	}
	return ahead
}

// deletedBefore lists, for each resource, those that are deleted before it.
func (g *Graph) deletedBefore() map[Resource][]wait {
	before := map[Resource][]wait{}
	for _, n := range g.resources {
		for _, e := range n.Needs() {
			switch {
			case e.Outlives:
				before[n] = append(before[n], wait{resource: e.Resource})
			case !e.Loose:
				before[e.Resource] = append(before[e.Resource], wait{resource: n})
			}
		}
	}
	for _, n := range g.resources {
		if others := n.deletedAfter(); others != nil {
			before[n] = append(before[n], g.others(n, others, before)...)
		}
		if others := n.deletedBehind(); others != nil {
			for _, w := range g.others(n, others, before) {
				before[n] = append(before[n], wait{resource: w.resource, leaving: true})
			}
		}
	}
	return before
}

// others lists the resources that are deleted before n because of DeletedAfter: not those
// that are deleted after n because of an edge.
func (g *Graph) others(n Resource, selects func(plan.ID) bool, before map[Resource][]wait) (out []wait) {
	later := map[Resource]bool{n: true}
	for grew := true; grew; {
		grew = false
		for r, first := range before {
			if !later[r] && slices.ContainsFunc(first, func(w wait) bool { return later[w.resource] }) {
				later[r], grew = true, true
			}
		}
	}
	for _, r := range g.resources {
		if !later[r] && selects(r.ID()) {
			out = append(out, wait{resource: r})
		}
	}
	return out
}

// circle returns resources of which each is deleted before the next, and the last before
// the first; nil if there are none. Only Outlives edges can form one.
func (g *Graph) circle() []plan.ID {
	before := g.deletedBefore()
	var path []plan.ID
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

// Before lists the resources that are deleted before r, directly or indirectly.
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
