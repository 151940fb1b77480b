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
)

// Executor carries out plans. It serves one run on one graph.
type Executor struct {
	Cloud   *cloud.Clients
	Observe func(Event)   // called for every event; never concurrently
	Timeout time.Duration // how long one resource may take; 0: 15 minutes, or more where AWS is known to be slow

	observing   sync.Mutex
	quiet       atomic.Bool // nothing to tell of nodes that are kept
	lostAnswers atomic.Bool
	diagnosed   atomic.Int32 // nodes that were asked why they may not have come
}

// LostAnswers reports whether a run that failed has made something that AWS does
// not show yet, or asked for something and lost the answer.
func (x *Executor) LostAnswers() bool { return x.lostAnswers.Load() }

// Plan says what Apply would do. It changes nothing. It is part of the current
// reading: what has been asked since the last Snapshot is not asked again.
func (x *Executor) Plan(ctx context.Context, g *Graph) (Plan, error) {
	return x.plan(ctx, g, lookToApply)
}

// PlanDelete says what Delete would do. It changes nothing.
func (x *Executor) PlanDelete(ctx context.Context, g *Graph) (Plan, error) {
	p, err := x.plan(cloud.Briefly(ctx), g, lookToDelete)
	slices.Reverse(p.Steps)
	return p, err
}

// lookToApply looks at a node, unless Apply leaves it alone anyway.
func lookToApply(n Resource, ctx context.Context, x *Executor) (Step, error) { //nolint:revive // the order of a method expression's parameters
	if n.Role() == RoleSwept {
		return Step{Resource: n.ID(), Origin: n.Origin(), Action: Leave}, nil
	}
	s, err := n.look(ctx, x)
	if n.Role() == RoleRetired && s.CloudID == "" {
		s.Action = Leave // it is gone, or was never ours
	}
	return s, err
}

func lookToDelete(n Resource, ctx context.Context, x *Executor) (Step, error) { //nolint:revive // the order of a method expression's parameters
	if n.Role().dependent() {
		return Step{Resource: n.ID(), Action: Leave}, nil
	}
	s, err := n.look(ctx, x)
	if s.Action == Existing || n.Role() == RoleExisting {
		s.Action = Existing
		return s, nil // whether it still exists is its owner's business
	}
	s.Action, s.Diff = Keep, nil
	if s.CloudID != "" {
		s.Action = Remove
	}
	return s, err
}

// plan looks at every node, in an order in which each finds what it reads.
func (x *Executor) plan(ctx context.Context, g *Graph, look func(Resource, context.Context, *Executor) (Step, error)) (Plan, error) {
	steps := make([]Step, len(g.resources))
	at := map[Resource]int{}
	for i, n := range g.resources {
		at[n] = i
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	err := x.walk(ctx, g.resources, settledFirst, func(ctx context.Context, n Resource) error {
		s, err := look(n, ctx, x)
		steps[at[n]] = s
		return err
	})
	if err == nil {
		g.read = x.Cloud.Clock.Now()
	}
	return Plan{slices.DeleteFunc(steps, func(s Step) bool { return s.Action == Leave && s.CloudID == "" })}, err
}

// lookedRecently is how long a plan is good enough to start from.
const lookedRecently = 30 * time.Second

// Apply makes every node as wanted. It starts from a Plan of the same graph
// when that is recent. When it returns nil, Plan is empty: the last thing it
// does is to look at everything once more.
func (x *Executor) Apply(ctx context.Context, g *Graph) error {
	if g.read.IsZero() || x.Cloud.Clock.Since(g.read) > lookedRecently {
		x.Cloud.Snapshot()
		if _, err := x.Plan(ctx, g); err != nil {
			return err
		}
	}
	if err := x.walk(ctx, g.resources, needsOf, func(ctx context.Context, n Resource) error { return n.converge(ctx, x) }); err != nil {
		x.lookBack(ctx, g)
		return err
	}
	x.quiet.Store(true)
	x.Cloud.Snapshot()
	return x.walk(cloud.InSnapshot(ctx), g.resources, inAnyOrder, func(ctx context.Context, n Resource) error { return n.prove(ctx, x) })
}

// lookBack finds out, at the end of a run that failed, whether AWS shows all
// that it has made. What does not show yet would be made twice by a run that
// came right after.
func (x *Executor) lookBack(ctx context.Context, g *Graph) {
	x.Cloud.Snapshot()
	ctx = cloud.InSnapshot(cloud.ReadOnly(context.WithoutCancel(ctx)))
	_ = x.walk(ctx, g.resources, inAnyOrder, func(ctx context.Context, n Resource) error {
		if !n.shown(ctx, x) {
			x.lostAnswers.Store(true)
		}
		return nil
	})
}

// Delete removes every node that is not somebody else's, in the reverse order.
func (x *Executor) Delete(ctx context.Context, g *Graph) error {
	if ids := g.circle(); ids != nil {
		return fmt.Errorf("each of these would be deleted before the next, and the last before the first: %v", ids)
	}
	if g.read.IsZero() || x.Cloud.Clock.Since(g.read) > lookedRecently {
		// Deleting a thing may need the IDs of what it hangs on: look first.
		x.Cloud.Snapshot()
		if _, err := x.PlanDelete(ctx, g); err != nil {
			return err
		}
	}
	before := g.deletedBefore()
	backwards := slices.Clone(g.resources)
	slices.Reverse(backwards)
	return x.walk(ctx, backwards, func(n Resource) []wait { return before[n] }, func(ctx context.Context, n Resource) error {
		return n.remove(ctx, x)
	})
}

// wait is a node to wait for, and whether it is enough that it exists.
type wait struct {
	resource Resource
	existing bool
}

func needsOf(n Resource) (out []wait) {
	for _, e := range n.Needs() {
		out = append(out, wait{e.Resource, e.Existing})
	}
	return out
}

// settledFirst waits for all of every need: for walks in which nothing is made.
func settledFirst(n Resource) (out []wait) {
	for _, e := range n.Needs() {
		out = append(out, wait{e.Resource, false})
	}
	return out
}

// inAnyOrder waits for nothing: for a walk over what is known to exist.
func inAnyOrder(Resource) []wait { return nil }

// outcome is how the visit of one node ended.
type outcome struct {
	done chan struct{}
	err  error
}

// walk visits every node once those in before(node) are ready. A node is not
// visited when one before it failed; the others go on.
func (x *Executor) walk(ctx context.Context, nodes []Resource, before func(Resource) []wait, visit func(context.Context, Resource) error) error {
	outcomes := make(map[Resource]*outcome, len(nodes))
	for _, n := range nodes {
		outcomes[n] = &outcome{done: make(chan struct{})}
	}
	for _, n := range nodes {
		go func() {
			o := outcomes[n]
			defer close(o.done)
			if o.err = x.ready(ctx, n, before(n), outcomes); o.err != nil {
				return
			}
			o.err = x.visited(ctx, n, visit(ctx, n))
		}()
	}
	var errs []error
	for _, n := range nodes {
		<-outcomes[n].done
		if err := outcomes[n].err; err != nil && !errors.Is(err, errNotVisited) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// visited tells how a visit ended, and returns what that means for the walk.
func (x *Executor) visited(ctx context.Context, n Resource, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())): // nothing is wrong with the node
		x.emit(Event{Resource: n.ID(), What: Blocked, Detail: "the run was stopped"})
		return errNotVisited
	}
	x.emit(Event{Resource: n.ID(), What: Failed, Err: err})
	return &ResourceError{n.ID(), n.Origin(), err}
}

// ready waits for what comes before a node.
func (x *Executor) ready(ctx context.Context, n Resource, before []wait, outcomes map[Resource]*outcome) error {
	for _, w := range before {
		o := outcomes[w.resource]
		var exists <-chan struct{}
		if w.existing {
			exists = w.resource.existing()
		}
		select {
		case <-exists:
			continue
		case <-o.done:
		}
		if o.err != nil {
			x.emit(Event{Resource: n.ID(), What: Blocked, Detail: string(w.resource.ID())})
			return errNotVisited
		}
	}
	if ctx.Err() != nil {
		x.emit(Event{Resource: n.ID(), What: Blocked})
		return errNotVisited
	}
	return nil
}

var errNotVisited = errors.New("not begun")

func (x *Executor) emit(e Event) {
	if x.Observe == nil {
		return
	}
	x.observing.Lock()
	defer x.observing.Unlock()
	e.At = x.Cloud.Clock.Now()
	x.Observe(e)
}
