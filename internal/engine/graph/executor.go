package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Executor executes plans: one run on one graph.
type Executor struct {
	Cloud   *cloud.Clients
	Observe func(plan.Event) // called for every event; never concurrently
	// Locate returns the origin that an error of a resource is about; nil: the origin of the resource.
	Locate  func(origin string, err error) string
	Timeout time.Duration // how long one resource may take; 0: 15 minutes, or more where AWS is known to be slow

	// Stuck is called when the deletion of a resource has been refused, or has waited for what
	// uses it, for stuckAfter: it looks for what the run does not delete, and its error ends the
	// wait. Nil: nothing is looked for.
	Stuck func(ctx context.Context) error

	looking     sync.Mutex
	looked      time.Time // when Stuck was called last
	observing   sync.Mutex
	quiet       atomic.Bool // send no Kept events
	lostAnswers atomic.Bool
	diagnosed   atomic.Int32 // number of resources that were diagnosed
}

// LostAnswers reports whether a run that failed has created a resource that AWS does not
// show yet, or has lost the answer to a call that may still have its effect.
func (x *Executor) LostAnswers() bool { return x.lostAnswers.Load() }

// Plan returns what Apply would do. It changes nothing. It is part of the current
// snapshot: a query that has been sent since the last Snapshot is not repeated.
func (x *Executor) Plan(ctx context.Context, g *Graph) (plan.Plan, error) {
	return x.planAll(ctx, g, planApply)
}

// PlanDelete returns what Delete would do. It changes nothing.
func (x *Executor) PlanDelete(ctx context.Context, g *Graph) (plan.Plan, error) {
	p, err := x.planAll(ctx, g, planDelete)
	slices.Reverse(p.Steps)
	return p, err
}

// LookUp looks up the existing resources of a graph, which may be incomplete: those that need no resource of the cluster.
func (x *Executor) LookUp(ctx context.Context, g *Graph) error {
	var existing []Resource
	for _, n := range g.resources {
		if n.Role() == RoleExisting && !slices.ContainsFunc(n.Needs(), func(e Edge) bool { return !slices.Contains(existing, e.Resource) }) {
			existing = append(existing, n)
		}
	}
	return x.walk(cloud.InSnapshot(cloud.ReadOnly(ctx)), existing, settledFirst, func(ctx context.Context, n Resource) error {
		_, err := n.plan(ctx, x, whole)
		return err
	})
}

// planApply plans one resource for Apply.
func planApply(n Resource, ctx context.Context, x *Executor) (plan.Step, error) { //nolint:revive // the order of a method expression's parameters
	if n.Role() == RoleSwept {
		return plan.Step{Resource: n.ID(), Origin: n.Origin(), Action: plan.Leave}, nil
	}
	s, err := n.plan(ctx, x, whole)
	if n.Role() == RoleRetired && s.CloudID == "" {
		s.Action = plan.Leave // it is deleted already, or does not belong to the cluster
	}
	return s, err
}

// planDelete plans one resource for Delete.
func planDelete(n Resource, ctx context.Context, x *Executor) (plan.Step, error) { //nolint:revive // the order of a method expression's parameters
	if n.Role().dependent() {
		return plan.Step{Resource: n.ID(), Action: plan.Leave}, nil
	}
	s, err := n.plan(ctx, x, identity)
	if s.Action == plan.Existing || n.Role() == RoleExisting {
		s.Action = plan.Existing
		return s, nil // an existing resource is not changed, so its state does not matter
	}
	s.Action, s.Diff = plan.Keep, nil
	if s.CloudID != "" {
		s.Action = plan.Remove
	}
	return s, err
}

// planAll plans all resources in the order of their edges, so that each finds the state that
// it reads.
func (x *Executor) planAll(ctx context.Context, g *Graph, planned func(Resource, context.Context, *Executor) (plan.Step, error)) (plan.Plan, error) {
	steps := make([]plan.Step, len(g.resources))
	at := map[Resource]int{}
	for i, n := range g.resources {
		at[n] = i
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	err := x.walk(ctx, g.resources, settledFirst, func(ctx context.Context, n Resource) error {
		s, err := planned(n, ctx, x)
		steps[at[n]] = s
		return err
	})
	if err == nil {
		g.read = x.Cloud.Clock.Now()
	}
	joinReplacements(steps)
	return plan.Plan{Steps: slices.DeleteFunc(steps, func(s plan.Step) bool { return s.Action == plan.Leave && s.CloudID == "" })}, err
}

// joinReplacements makes the creation of a resource that takes the place of another one a part of the
// deletion of that one.
func joinReplacements(steps []plan.Step) {
	of := map[plan.ID]plan.ID{}
	for _, s := range steps {
		if s.Action == plan.Remove && s.ReplacedBy != "" {
			of[s.ReplacedBy] = s.Resource
		}
	}
	for i, s := range steps {
		if s.Action == plan.Create && of[s.Resource] != "" {
			steps[i].PartOf = of[s.Resource]
		}
	}
}

// planValidity is how old a plan may be for Apply and Delete to start from it.
const planValidity = 30 * time.Second

// Apply brings all resources to their desired state. It starts from the last Plan of the
// graph if that is recent. At the end, it reads everything once more: when it returns
// nil, Plan is empty.
func (x *Executor) Apply(ctx context.Context, g *Graph) error {
	if g.read.IsZero() || x.Cloud.Clock.Since(g.read) > planValidity {
		x.Cloud.Snapshot()
		if _, err := x.Plan(ctx, g); err != nil {
			return err
		}
	}
	ahead := timesAhead(g.resources, needsOf, lasts)
	converge := func(ctx context.Context, n Resource) error { return n.converge(cloud.WithAhead(ctx, ahead[n]), x) }
	if err := x.walk(ctx, g.resources, needsOf, converge); err != nil {
		x.checkVisible(ctx, g)
		return err
	}
	x.quiet.Store(true)
	x.Cloud.Snapshot()
	return x.walk(cloud.InSnapshot(ctx), g.resources, inAnyOrder, func(ctx context.Context, n Resource) error { return n.verify(ctx, x) })
}

// The time limits of checkVisible: in general, and after an interrupt, when the user waits
// for the end of the run.
const (
	checking            = 30 * time.Second
	checkingInterrupted = 500 * time.Millisecond
)

// checkVisible checks, after a run that failed, whether AWS shows everything that the run has
// created. A run that starts before that would create it again.
func (x *Executor) checkVisible(ctx context.Context, g *Graph) {
	x.Cloud.Snapshot()
	limit := checking
	if ctx.Err() != nil {
		limit = checkingInterrupted
	}
	ctx, cancel := x.Cloud.Clock.WithTimeout(context.WithoutCancel(ctx), limit, nil)
	defer cancel()
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	_ = x.walk(ctx, g.resources, inAnyOrder, func(ctx context.Context, n Resource) error {
		if !n.visible(ctx, x) {
			x.lostAnswers.Store(true)
		}
		return nil
	})
}

// Delete deletes all owned resources, in the reverse order of creation.
func (x *Executor) Delete(ctx context.Context, g *Graph) error {
	if ids := g.circle(); ids != nil {
		return fmt.Errorf("each of these would be deleted before the next, and the last before the first: %v", ids)
	}
	if g.read.IsZero() || x.Cloud.Clock.Since(g.read) > planValidity {
		// Deleting a resource may need the IDs of others: read them first.
		x.Cloud.Snapshot()
		if _, err := x.PlanDelete(ctx, g); err != nil {
			return err
		}
	}
	before := g.deletedBefore()
	backwards := slices.Clone(g.resources)
	slices.Reverse(backwards)
	waits := func(n Resource) []wait { return before[n] }
	ahead := timesAhead(backwards, waits, removes(nil))
	return x.walk(ctx, backwards, waits, func(ctx context.Context, n Resource) error {
		var left time.Time // when the last of those deleted before it has left something behind
		for _, w := range before[n] {
			left = latest(left, w.resource.lingersSince())
		}
		return n.remove(cloud.WithAhead(ctx, ahead[n]), x, left)
	})
}

// wait is a resource to wait for; existing means only until it exists, leaving only until AWS has
// accepted its deletion.
type wait struct {
	resource          Resource
	existing, leaving bool
}

func needsOf(n Resource) (out []wait) {
	for _, e := range n.Needs() {
		out = append(out, wait{resource: e.Resource, existing: e.Existing})
	}
	return out
}

// settledFirst waits until all resources of the edges are settled, also for Existing
// edges: for walks that create nothing.
func settledFirst(n Resource) (out []wait) {
	for _, e := range n.Needs() {
		out = append(out, wait{resource: e.Resource})
	}
	return out
}

// inAnyOrder waits for nothing: for walks over resources that exist.
func inAnyOrder(Resource) []wait { return nil }

// outcome is the result of the visit of one resource.
type outcome struct {
	done chan struct{}
	err  error
}

// walk visits each resource when those in before(resource) are ready. It does not visit a
// resource if one before it failed, and continues with the others. When the credentials have
// expired, it stops and returns only that.
func (x *Executor) walk(ctx context.Context, resources []Resource, before func(Resource) []wait, visit func(context.Context, Resource) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	outcomes := make(map[Resource]*outcome, len(resources))
	for _, n := range resources {
		outcomes[n] = &outcome{done: make(chan struct{})}
	}
	for _, n := range resources {
		go func() {
			o := outcomes[n]
			defer close(o.done)
			if o.err = x.ready(ctx, n, before(n), outcomes); o.err != nil {
				return
			}
			err := crash.Catch(func() error { return visit(ctx, n) })
			if cloud.Expired(err) {
				login := &cloud.LoginError{Err: err}
				stop(login)
				err = login
			}
			o.err = x.visited(ctx, n, err)
		}()
	}
	var errs []error
	for _, n := range resources {
		<-outcomes[n].done
		if err := outcomes[n].err; err != nil && !errors.Is(err, errNotVisited) {
			errs = append(errs, err)
		}
	}
	if cause := context.Cause(ctx); cause != nil && (len(errs) == 0 || errors.As(cause, new(*cloud.LoginError))) {
		return cause
	}
	return errors.Join(errs...)
}

// visited sends the event for a failed visit, and returns its error for the walk.
func (x *Executor) visited(ctx context.Context, n Resource, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())): // stopped, not failed
		x.emit(plan.Event{Resource: n.ID(), What: plan.Blocked, Detail: "the run was stopped"})
		return errNotVisited
	}
	x.emit(plan.Event{Resource: n.ID(), What: plan.Failed, Err: err})
	return &plan.ResourceError{Resource: n.ID(), Origin: x.originOf(n.Origin(), err), Err: err}
}

// originOf returns the origin that an error of a resource is about.
func (x *Executor) originOf(origin string, err error) string {
	if x.Locate == nil {
		return origin
	}
	return x.Locate(origin, err)
}

// ready waits for the resources before n.
func (x *Executor) ready(ctx context.Context, n Resource, before []wait, outcomes map[Resource]*outcome) error {
	for _, w := range before {
		o := outcomes[w.resource]
		var enough <-chan struct{}
		switch {
		case w.existing:
			enough = w.resource.existing()
		case w.leaving:
			enough = w.resource.leaving()
		}
		select {
		case <-enough:
			continue
		case <-o.done:
		}
		if o.err != nil {
			x.emit(plan.Event{Resource: n.ID(), What: plan.Blocked, Detail: string(w.resource.ID())})
			return errNotVisited
		}
	}
	if ctx.Err() != nil {
		x.emit(plan.Event{Resource: n.ID(), What: plan.Blocked})
		return errNotVisited
	}
	return nil
}

var errNotVisited = errors.New("not begun")

func (x *Executor) emit(e plan.Event) {
	if x.Observe == nil {
		return
	}
	x.observing.Lock()
	defer x.observing.Unlock()
	e.At = x.Cloud.Clock.Now()
	x.Observe(e)
}
