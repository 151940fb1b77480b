package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// see looks for the thing and remembers what it saw.
func (n *resource) see(ctx context.Context, x *Executor) (State, error) {
	have, err := n.behaviour.find(cloud.Recording(ctx, &n.asked), x.Cloud, n.state())
	switch {
	case err != nil:
		return nil, fmt.Errorf("look: %w", err)
	case have == nil && n.role == RoleExisting:
		return nil, errors.New("does not exist, and is not ours to make")
	case have != nil:
		n.pending = time.Time{} // it shows: from here on AWS can be asked
	}
	now := x.Cloud.Clock.Now()
	if have != nil || now.Sub(n.made) > cloud.ConsistencyDelay { // else AWS does not show yet what it has made
		n.set(have)
		n.seen, n.changed = now, false
	}
	return have, nil
}

// look says what there is to do about the node.
func (n *resource) look(ctx context.Context, x *Executor) (Step, error) {
	have, err := n.see(ctx, x)
	return n.step(have), err
}

// step says what there is to do about the node, having seen it.
func (n *resource) step(have State) Step {
	step := Step{Resource: n.id, Origin: n.origin, Action: Keep}
	if have != nil {
		step.CloudID = have.CloudID()
	}
	switch {
	case n.role == RoleExisting:
		step.Action = Existing
	case n.role == RoleExpected || n.role.creates():
		step.Action, step.Diff = n.due(have)
	case n.role == RoleSwept && have != nil:
		step.Action = Leave
	case n.role == RoleRetired && have != nil:
		step.Action = Remove
	}
	return step
}

// due says what there is to do about a thing that has to be there.
func (n *resource) due(have State) (Action, Diff) {
	missing, coming := Create, Settle
	if n.role == RoleExpected {
		missing, coming = Await, Await
	}
	if have == nil {
		return missing, n.Wanted()
	}
	d := n.behaviour.diff(have)
	if a := d.action(); a != Settle {
		return a, d
	}
	return coming, d
}

// converge makes the next move until there is none left to make.
func (n *resource) converge(ctx context.Context, x *Executor) error {
	a := &attempt{resource: n, x: x, began: x.Cloud.Clock.Now()}
	switch n.role {
	case RoleSwept, RoleExisting:
		a.done(n.CloudID())
		return nil
	case RoleRetired:
		return a.repeat(ctx, a.clear)
	case RoleManaged, RoleInstalled, RoleExpected:
	}
	return a.repeat(ctx, a.converge)
}

// prove looks at what is ours once more, unless it was seen just now, and
// mends what is not as wanted after all.
func (n *resource) prove(ctx context.Context, x *Executor) error {
	now := x.Cloud.Clock.Now()
	if !n.role.creates() || !n.changed && now.Sub(n.seen) < time.Second {
		return nil
	}
	a := &attempt{resource: n, x: x, began: now, stale: true, proving: true}
	return a.repeat(ctx, a.converge)
}

// shown reports whether AWS shows the thing, if this run has made it.
func (n *resource) shown(ctx context.Context, x *Executor) bool {
	if n.made.IsZero() || !n.changed {
		return true
	}
	have, err := n.see(ctx, x)
	return err == nil && have != nil
}

// remove deletes the thing, if it is ours, and waits until it is gone.
func (n *resource) remove(ctx context.Context, x *Executor) error {
	if n.role == RoleExisting || n.role.dependent() {
		return nil
	}
	a := &attempt{resource: n, x: x, began: x.Cloud.Clock.Now(), stale: n.role == RoleSwept}
	return a.repeat(ctx, a.clear)
}

// attempt is one go at a node: what has to be remembered between two looks.
type attempt struct {
	*resource
	x       *Executor
	began   time.Time
	stale   bool      // look before the next move
	blind   bool      // make the next move without a look: its answer tells
	proving bool      // answers to writes prove nothing: only a look does
	deleted bool      // Delete was accepted
	told    bool      // that it is being deleted
	acted   time.Time // something was last asked for
	mended  Diff      // what Update was last accepted for
	awaited string    // what the last Waiting event said
	polls   int       // looks since acted
	lost    int       // answers lost
	absent  time.Time // AWS has not known something we need since then
}

// repeat makes moves until one says that it was the last. A move that returns
// NotYet is followed by a pause, and any other error ends the attempt.
func (a *attempt) repeat(ctx context.Context, move func(context.Context) (last bool, err error)) error {
	for {
		last, err := move(ctx)
		var soon *notYetError
		if errors.As(err, &soon) {
			err = a.pause(ctx, soon.error)
			a.stale = !a.blind
			ctx = cloud.Live(ctx)
		}
		if last || err != nil {
			return a.outOfTime(ctx, err)
		}
	}
}

// current returns the thing as it is known, and looks where it is not.
func (a *attempt) current(ctx context.Context) (State, error) {
	if !a.stale {
		return a.state(), nil
	}
	a.stale = false
	return a.see(ctx, a.x)
}

// converge makes one move towards what is wanted.
func (a *attempt) converge(ctx context.Context) (last bool, err error) {
	have, err := a.current(ctx)
	if err != nil {
		return false, err
	}
	step := a.step(have)
	switch step.Action {
	case Keep, Existing, Remove, Leave:
		a.done(step.CloudID)
		return true, nil
	case Create:
		return false, a.create(ctx)
	case Conflict:
		return false, &ConflictError{step.Diff.only(Replace)[0]}
	case Settle, Update, Await:
		if have == nil {
			return false, NotYet(errors.New("it to come"))
		}
		if busy := step.Diff.only(Wait); len(busy) > 0 {
			return false, NotYet(fmt.Errorf("%s to become %s, is %s", busy[0].Field, busy[0].Want, orNothing(busy[0].Have))) // do not interfere
		}
	}
	if unknown := slices.IndexFunc(step.Diff, func(c Change) bool { return c.Want == Unknown }); unknown >= 0 {
		return false, NotYet(fmt.Errorf("what %s is to be", step.Diff[unknown].Field))
	}
	return false, a.update(ctx, have, step.Diff)
}

// clear makes one move towards nothing.
func (a *attempt) clear(ctx context.Context) (last bool, err error) {
	have, err := a.current(ctx)
	switch {
	case err != nil:
		return false, err
	case have == nil:
		a.done("")
		return true, nil
	case a.deleted && a.role != RoleSwept: // more of what is swept may have come to be removable
		return false, NotYet(errors.New("it to go"))
	}
	if !a.told {
		a.told = true
		a.emit(Deleting, have.CloudID())
	}
	return a.delete(ctx, have)
}

func (a *attempt) delete(ctx context.Context, have State) (last bool, err error) {
	err = a.behaviour.remove(a.lasting(ctx), a.x.Cloud, have)
	a.x.Cloud.Forget(&a.asked)
	_, takes := a.Takes()
	a.blind = cloud.InUse(err) && !errors.As(err, new(*notYetError))
	switch {
	case errors.As(err, new(*notYetError)):
		return false, err
	case cloud.NotFound(err), err == nil && takes == 0:
		a.set(nil)
		a.made, a.acted = time.Time{}, a.x.Cloud.Clock.Now()
		a.done("")
		return true, nil
	case err == nil:
		if !a.deleted {
			a.acted, a.polls = a.x.Cloud.Clock.Now(), 0
		}
		a.deleted, a.stale = true, true
		return false, NotYet(errors.New("it to go"))
	case cloud.InUse(err):
		return false, NotYet(fmt.Errorf("what still uses it%s: %w", a.blockers(ctx, have), err))
	case !cloud.Rejected(err) && !cloud.NotSent(err) && a.again(ctx):
		return false, NotYet(fmt.Errorf("the answer to the deletion: %w", err))
	}
	return false, fmt.Errorf("delete: %w", err)
}

func (a *attempt) blockers(ctx context.Context, have State) string {
	if names := a.behaviour.blockers(ctx, a.x.Cloud, have); names != "" {
		return ", " + names
	}
	return ""
}

// create asks for the thing, unless it may be on its way already.
func (a *attempt) create(ctx context.Context) error {
	now := a.x.Cloud.Clock.Now()
	if asked := latest(a.made, a.pending); !asked.IsZero() && now.Sub(asked) < cloud.ConsistencyDelay {
		return NotYet(errors.New("it to appear"))
	}
	a.emit(Creating, "")
	a.acted, a.polls = now, 0
	have, err := a.behaviour.create(a.lasting(ctx), a.x.Cloud)
	a.changed = true
	a.x.Cloud.Forget(&a.asked)
	a.acted = a.x.Cloud.Clock.Now()
	switch {
	case err == nil:
		a.made, a.pending = now, time.Time{}
		if have == nil {
			return NotYet(errors.New("it to appear"))
		}
		a.set(have)
		a.stale = a.proving
		return nil
	case cloud.Exists(err) && a.patientWith(now):
		return NotYet(fmt.Errorf("it to appear: %w", err)) // made a moment ago, and not shown yet
	case unknown(err) && a.patientWith(now):
		a.polls++ // nothing is on its way that would take its time
		return NotYet(fmt.Errorf("what it needs to appear: %w", err))
	case errors.As(err, new(*notYetError)):
		a.polls++
		return NotYet(err)
	case cloud.Rejected(err), cloud.NotSent(err):
		return fmt.Errorf("create: %w", err)
	}
	a.pending = now
	if !a.again(ctx) {
		a.x.lostAnswers.Store(true)
		return fmt.Errorf("create: %w", err)
	}
	return NotYet(fmt.Errorf("it to appear, for the answer got lost: %w", err))
}

func (a *attempt) update(ctx context.Context, have State, d Diff) error {
	if slices.Equal(d, a.mended) {
		return NotYet(fmt.Errorf("%s to become %q", d[0].Field, d[0].Want)) // we have asked for just that: it must show
	}
	a.emit(Updating, have.CloudID())
	now := a.x.Cloud.Clock.Now()
	a.acted, a.polls = now, 0
	after, err := a.behaviour.update(a.lasting(ctx), a.x.Cloud, have, d)
	a.changed = true
	a.x.Cloud.Forget(&a.asked)
	switch {
	case err == nil:
		a.mended, a.absent = d, time.Time{}
		if after != nil {
			a.set(after)
		}
		a.stale = after == nil || a.proving
		return nil
	case cloud.NotFound(err) && a.patientWith(now):
		return NotYet(fmt.Errorf("what it needs to appear: %w", err))
	case cloud.InUse(err), errors.As(err, new(*notYetError)):
		return NotYet(err)
	case !cloud.Rejected(err) && !cloud.NotSent(err) && a.again(ctx):
		return NotYet(fmt.Errorf("the answer to the update: %w", err))
	}
	return fmt.Errorf("update: %w", err)
}

// patientWith reports whether AWS may still come to show something that has
// been made, for it has been missing for less than a minute.
func (a *attempt) patientWith(now time.Time) bool {
	if a.absent.IsZero() {
		a.absent = now
	}
	return now.Sub(a.absent) < cloud.ConsistencyDelay
}

// unknown reports whether AWS does not know something that we need.
func unknown(err error) bool { return cloud.NotFound(err) || errors.As(err, new(*notShownError)) }

// again reports whether to go on after a lost answer.
func (a *attempt) again(ctx context.Context) bool {
	a.lost++
	return a.lost < 3 && ctx.Err() == nil
}

// lasting returns a context in which a call that changes something is carried
// through: an interrupt ends the run between two calls, not within one.
func (a *attempt) lasting(ctx context.Context) context.Context {
	return cloud.Recording(context.WithoutCancel(ctx), &cloud.Questions{})
}

// done reports the end of an attempt.
func (a *attempt) done(cloudID string) {
	if !a.acted.IsZero() || a.awaited != "" {
		a.x.emit(Event{Resource: a.id, What: Done, CloudID: cloudID, Took: a.x.Cloud.Clock.Since(a.began)})
	} else if !a.x.quiet.Load() {
		a.x.emit(Event{Resource: a.id, What: Kept, CloudID: cloudID})
	}
}

func (a *attempt) emit(what What, cloudID string) {
	create, remove := a.Takes()
	if what == Deleting {
		create = remove
	}
	a.x.emit(Event{Resource: a.id, What: what, CloudID: cloudID, Took: a.x.Cloud.Clock.Since(a.began), Expected: create})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func orNothing(s string) string {
	if s == "" {
		return "not known yet"
	}
	return s
}
