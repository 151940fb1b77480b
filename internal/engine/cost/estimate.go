package cost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// patience is how long a plan that is complete waits for prices.
const patience = 3 * time.Second

// errSlow says that AWS did not return a price in time.
var errSlow = fmt.Errorf("AWS has not returned the prices within %s", patience)

// Estimate computes the cost of a plan while the plan is made.
type Estimate struct {
	c      *cloud.Clients
	list   *List
	g      *graph.Graph
	ctx    context.Context //nolint:containedctx // of the calls in the background, which Finish ends
	cancel context.CancelCauseFunc
	limit  func() (stop context.CancelFunc) // ends the calls after patience
	ahead  crash.Group
}

// Begin starts to ask for the prices of the desired resources in the background. The caller has
// to call Finish or Stop.
func Begin(ctx context.Context, list *List, g *graph.Graph) *Estimate {
	ctx = cloud.Optional(ctx)
	e := &Estimate{c: list.c, list: list, g: g}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	e.limit = func() context.CancelFunc {
		limited, stop := e.c.Clock.WithTimeout(ctx, patience, errSlow)
		context.AfterFunc(limited, func() { e.cancel(context.Cause(limited)) })
		return stop
	}
	e.ahead.Go(func() {
		for _, r := range g.Resources() {
			if d, ok := r.Desired().(Desired); ok && r.Role() == graph.RoleManaged {
				_, then, _ := d.Costs(e.ctx, e.c, nil) // Finish has the error
				list.ask(e.ctx, slices.DeleteFunc(then, func(i Item) bool { return i.Assumed }))
			}
		}
	})
	return e
}

// Stop ends the calls.
func (e *Estimate) Stop() {
	e.cancel(errors.New("the plan has failed"))
	e.ahead.Wait()
	e.list.running.Wait()
}

// Finish returns what the resources of a plan cost. It waits for prices for a few seconds at
// most. The graph is that of the plan: it may have been built again since Begin.
func (e *Estimate) Finish(g *graph.Graph, p plan.Plan) Report {
	e.g = g
	stop := e.limit()
	defer func() {
		stop()
		e.cancel(nil)
	}()
	e.ahead.Wait()
	lines, errs := e.lines(p)
	for _, l := range lines {
		e.list.ask(e.ctx, []Item{l.Item})
	}
	e.list.wait()
	return e.report(lines, errs)
}

// lines lists the items of all resources of a plan.
func (e *Estimate) lines(p plan.Plan) (all []Line, errs []error) {
	for _, s := range p.Steps {
		if s.Action == plan.Existing || s.Action == plan.Leave || s.Action == plan.Await {
			continue
		}
		now, then, err := e.items(s)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, merged(s.Resource, now, then)...)
	}
	return all, errs
}

// items returns what the resource of a step costs before it and after it.
func (e *Estimate) items(s plan.Step) (now, then []Item, err error) {
	r := e.g.Resource(s.Resource)
	if existing, ok := r.Observed().(Existing); ok && s.Action == plan.Remove {
		now, err = existing.Costs(e.ctx, e.c)
		return now, nil, err
	}
	d, ok := r.Desired().(Desired)
	if !ok || r.Role() != graph.RoleManaged {
		return nil, nil, nil
	}
	return d.Costs(e.ctx, e.c, r.Observed())
}

// merged returns one line for each item that a resource has before or after.
func merged(id plan.ID, now, then []Item) (all []Line) {
	at := map[Item]int{}
	line := func(i Item) *Line {
		key := i
		key.Pieces, key.Quantity, key.Assumed = 0, 0, false
		if _, ok := at[key]; !ok {
			at[key] = len(all)
			all = append(all, Line{Resource: id, Item: key})
		}
		return &all[at[key]]
	}
	for _, i := range now {
		l := line(i)
		l.Before.add(i)
	}
	for _, i := range then {
		l := line(i)
		l.After.add(i)
	}
	return all
}
