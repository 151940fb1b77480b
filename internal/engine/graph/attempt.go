package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// observe finds the resource, and stores its state and the time.
func (n *resource) observe(ctx context.Context, x *Executor, deep depth) (State, error) {
	have, err := n.behaviour.find(cloud.Recording(ctx, &n.asked), x.Cloud, n.state(), deep)
	switch {
	case errors.As(err, new(*FailedError)):
		return nil, err
	case err != nil && n.role == RoleExisting && cloud.Code(err) == "":
		return nil, err // what is wrong with the existing resource, not with the read
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case have == nil && n.role == RoleExisting:
		return nil, errors.New("does not exist in this account and region: let the manifest refer to one that does, or to none")
	case have != nil:
		n.pending = time.Time{} // it is visible: from here on, its state can be read
	}
	if have = n.remaining(have, deep); have == nil && n.ending != nil {
		if !isDeleting(n.state()) { // Follow needs what Update knows about the deletion
			n.set(nil)
		}
		return nil, nil
	}
	now := x.Cloud.Clock.Now()
	if have != nil || now.Sub(n.made) > cloud.ConsistencyDelay { // otherwise AWS may not show yet what it has created
		n.set(have)
		n.seen, n.changed = now, false
	}
	return have, nil
}

// remaining returns the state of a resource, or nil if it has to exist and AWS is deleting it.
func (n *resource) remaining(have State, deep depth) State {
	n.ending = nil
	if deep == whole && n.role.creates() && isDeleting(have) {
		n.ending = have
		return nil
	}
	return have
}

func isDeleting(s State) bool {
	d, is := s.(Deleting)
	return is && d.Deleting()
}

// plan finds the resource and returns the step that Apply takes with it.
func (n *resource) plan(ctx context.Context, x *Executor, deep depth) (plan.Step, error) {
	have, err := n.observe(ctx, x, deep)
	return n.step(have), err
}

// step returns the step that Apply takes with the resource in the state have.
func (n *resource) step(have State) plan.Step {
	step := plan.Step{Resource: n.id, Origin: n.origin, Action: plan.Keep, PartOf: n.partOf, Group: n.id.Group(), Label: n.label}
	if have != nil {
		step.CloudID = have.CloudID()
	}
	if n.ending != nil {
		step.After = n.ending.CloudID()
	}
	switch {
	case n.role == RoleExisting:
		step.Action = plan.Existing
	case n.role == RoleExpected || n.role.creates():
		step.Action, step.Diff = n.requiredAction(have)
	case n.role == RoleSwept && have != nil:
		step.Action = plan.Leave
	case n.role == RoleRetired && have != nil:
		step.Action, step.Diff, step.ReplacedBy = plan.Remove, n.reasons, n.replacedBy
	}
	return step
}

// requiredAction returns the action and the differences of a resource that has to exist.
func (n *resource) requiredAction(have State) (plan.Action, plan.Diff) {
	missing, coming := plan.Create, plan.Settle
	if n.role == RoleExpected {
		missing, coming = plan.Await, plan.Await
	}
	if have == nil {
		return missing, n.Wanted()
	}
	d := n.diff(have)
	if a := d.Action(); a != plan.Settle {
		return a, d
	}
	return coming, d
}

// converge brings the resource to its desired state.
func (n *resource) converge(ctx context.Context, x *Executor) error {
	a := x.attempt(n)
	switch n.role {
	case RoleSwept, RoleExisting:
		a.done(n.CloudID())
		return nil
	case RoleRetired:
		a.stale = n.state() == nil // this run may have created it after the plan
		return a.repeat(ctx, a.convergeDeleted)
	case RoleExpected: // it follows from others: what was read before they were written is out of date
		a.stale = slices.ContainsFunc(n.needs, func(e Edge) bool { return e.Resource.wasWritten() })
	case RoleManaged, RoleInstalled:
		a.stale = slices.ContainsFunc(n.needs, func(e Edge) bool { return e.Shared && e.Resource.wasWritten() })
	}
	return a.repeat(ctx, a.converge)
}

// verify reads a managed resource again, unless it was read just now, and updates it if it
// is not as desired.
func (n *resource) verify(ctx context.Context, x *Executor) error {
	now := x.Cloud.Clock.Now()
	if !n.role.creates() || !n.changed && now.Sub(n.seen) < time.Second {
		return nil
	}
	a := x.attempt(n)
	a.stale, a.verifying = true, true
	return a.repeat(ctx, a.converge)
}

// visible reports whether AWS returns a resource that this run has created.
func (n *resource) visible(ctx context.Context, x *Executor) bool {
	if n.made.IsZero() || !n.changed {
		return true
	}
	have, err := n.observe(ctx, x, whole)
	return err == nil && have != nil
}

// remove deletes the resource, if it is owned, and waits until it does not exist. left is when
// others have left it behind; zero if none has.
func (n *resource) remove(ctx context.Context, x *Executor, left time.Time) error {
	if n.role == RoleExisting || n.role.dependent() {
		return nil
	}
	a := x.attempt(n)
	a.deep, a.stale, a.leftAt = ending, n.role == RoleSwept, left
	return a.repeat(ctx, a.convergeDeleted)
}

// attempt begins an attempt, whose time limit counts from now.
func (x *Executor) attempt(n *resource) *attempt {
	return &attempt{resource: n, x: x, began: x.Cloud.Clock.Now(), late: x.Cloud.Late()}
}

// attempt is the work on one resource, and what it remembers between two calls.
type attempt struct {
	*resource
	x           *Executor
	began       time.Time
	deep        depth         // how much is read
	stale       bool          // read the state before the next call
	blind       bool          // repeat the call without reading the state first
	verifying   bool          // verify: after a write, read the state instead of using the answer
	deleted     bool          // Delete was accepted
	outlives    bool          // AWS was deleting it at the last read
	announced   plan.What     // the last event about a write, until AWS has accepted it
	acted       time.Time     // time of the last write
	leftAt      time.Time     // when what it deletes was left behind by others
	stepped     time.Time     // time of the last accepted Update, from which the time limit counts
	late        time.Duration // for how long AWS had throttled calls of this run at that time
	replaced    bool          // Create was accepted since the last Update, which has deleted the resource
	finished    time.Time     // since when the last Update is known to have ended
	steps       int           // number of accepted Updates
	updated     plan.Diff     // the differences of the last accepted Update
	rounds      rounds        // what accepted Updates have achieved
	creations   int           // number of accepted calls of Create since AWS has shown the resource
	alive       bool          // this attempt has seen it in a state that is not Failing
	doubted     time.Time     // when the run began to wait, or last asked whether it waits in vain
	failed      string        // the Failure that it had before this attempt
	awaited     string        // the detail of the last Waiting event
	polls       int           // number of reads since acted
	slowed      int           // how often in a row AWS has throttled the run between two of them
	lateThen    time.Duration // Late at the last of them
	lost        int           // number of writes without an answer
	absent      time.Time     // since when AWS has answered that a dependency does not exist
	halfVisible time.Time     // since when one call of a read knows the resource and another does not
	refused     time.Time     // since when AWS has refused the call for a reason that may pass

	repeats atomic.Int32 // number of events about calls that are repeated
	shown   int32        // repeats when pause sent its last event
}

// maxUpdates is how many Updates of a resource start its time limit again: an EKS cluster is
// upgraded one minor version at a time.
const maxUpdates = 20

// repeat calls move until it returns last. After a NotYet error it pauses and calls move
// again; any other error ends the attempt.
func (a *attempt) repeat(ctx context.Context, move func(context.Context) (last bool, err error)) error {
	ctx = cloud.WithRepeats(ctx, a.repeating)
	for {
		if err := context.Cause(ctx); err != nil {
			return a.outOfTime(ctx, err)
		}
		last, err := move(ctx)
		if cloud.Unconnected(err) {
			err = NotYet(fmt.Errorf("a connection to AWS: %w", err))
		}
		var soon *notYetError
		if errors.As(err, &soon) {
			err = a.pause(ctx, soon.error)
			a.stale = !a.blind
			ctx = cloud.Live(ctx)
		}
		var failed *FailedError
		if errors.As(err, &failed) && !a.deleted {
			failed.Findings, failed.Command = a.diagnose(ctx)
		}
		if last || err != nil {
			return a.outOfTime(ctx, err)
		}
	}
}

// current returns the known state, and reads it first if it is stale.
func (a *attempt) current(ctx context.Context) (State, error) {
	if !a.stale {
		return a.state(), nil
	}
	a.stale = false
	return a.observe(ctx, a.x, a.deep)
}

// consistent returns the known state like current. A new resource may be returned by one
// call of a read, and not be known to the next one yet.
func (a *attempt) consistent(ctx context.Context) (State, error) {
	have, err := a.current(ctx)
	if !cloud.NotFound(err) {
		a.halfVisible = time.Time{}
		return have, err
	}
	if within(&a.halfVisible, a.x.Cloud.Clock.Now(), cloud.ConsistencyDelay) {
		err = NotYet(err)
	}
	return nil, err
}

// converge takes one step towards the desired state.
func (a *attempt) converge(ctx context.Context) (last bool, err error) {
	have, err := a.consistent(ctx)
	if err != nil {
		return false, err
	}
	if have != nil && a.polls > 0 {
		a.creations = 0 // AWS has shown it: what deletes it then may pass, as the end of a spot instance
	}
	if a.awaitsDeletion(have) {
		return false, NotYet(fmt.Errorf("the deletion of %s", a.ending.CloudID()))
	}
	step := a.step(have)
	if step.Action != plan.Keep {
		if err := a.failure(have); err != nil {
			return false, err
		}
	}
	switch step.Action {
	case plan.Keep, plan.Existing, plan.Remove, plan.Leave:
		a.done(step.CloudID)
		return true, nil
	case plan.Create:
		return false, a.create(ctx)
	case plan.Conflict:
		return false, &plan.ConflictError{Change: step.Diff.Only(plan.Replace)[0]}
	case plan.Settle, plan.Update, plan.Await:
		if err := a.busy(ctx, have, step.Diff); err != nil {
			return false, err
		}
	}
	if unknown := slices.IndexFunc(step.Diff, func(c plan.Change) bool { return c.Want == plan.Unknown }); unknown >= 0 {
		return false, NotYet(fmt.Errorf("the value of %s", step.Diff[unknown].Field))
	}
	return false, a.update(ctx, have, step.Diff)
}

// busy returns the error for a resource that does not exist yet, or that AWS is changing: the run waits until it has finished.
func (a *attempt) busy(ctx context.Context, have State, d plan.Diff) error {
	if have == nil {
		return NotYet(errors.New("the resource to exist"))
	}
	changing := d.Only(plan.ByItself)
	switch {
	case len(changing) == 0:
		return nil
	case a.failed != "" && a.acted.IsZero(): // nothing in the differences repairs it
		return &FailedError{Reason: a.failed}
	case a.waitsInVain(ctx):
		return &FailedError{Reason: changing[0].Have}
	}
	return NotYet(fmt.Errorf("%s to become %s, is %s", changing[0].Field, changing[0].Want, orUnknown(changing[0].Have)))
}

// waitsInVain reports whether the wait cannot end (Hopeless).
func (a *attempt) waitsInVain(ctx context.Context) bool {
	now := a.x.Cloud.Clock.Now()
	if a.hopeless == nil || within(&a.doubted, now, cloud.ConsistencyDelay) {
		return false
	}
	a.doubted = now
	return a.hopeless(cloud.Live(cloud.ReadOnly(ctx)), a.x.Cloud)
}

// awaitsDeletion reports whether AWS is deleting the resource. The time limit begins again when the deletion has ended.
func (a *attempt) awaitsDeletion(have State) bool {
	if a.ending == nil {
		a.remaining(have, a.deep) // the answer to an update that deletes
	}
	before := a.outlives
	a.outlives = a.ending != nil
	if before && !a.outlives {
		a.stepped, a.late = a.x.Cloud.Clock.Now(), a.x.Cloud.Late()
	}
	return a.outlives
}

// convergeDeleted takes one step towards the deletion.
func (a *attempt) convergeDeleted(ctx context.Context) (last bool, err error) {
	have, err := a.current(ctx)
	switch {
	case err != nil:
		return false, err
	case have == nil:
		a.done("")
		return true, nil
	case a.deleted && a.role != RoleSwept: // swept resources may become deletable one by one: call Delete again
		if f, is := have.(Failing); is && f.Failure() != "" && a.x.Cloud.Clock.Since(a.acted) > cloud.ConsistencyDelay {
			return false, fmt.Errorf("delete: %w", &FailedError{Reason: f.Failure()})
		}
		return false, NotYet(errors.New("its deletion"))
	}
	a.announce(plan.Deleting, have.CloudID())
	return a.delete(ctx, have)
}

func (a *attempt) delete(ctx context.Context, have State) (last bool, err error) {
	a.removed = have
	err = a.writing(ctx, func(ctx context.Context) error { return a.behaviour.remove(ctx, a.x.Cloud, have) })
	a.x.Cloud.Forget(&a.asked)
	if err == nil {
		a.left.Do(func() {
			a.gone = a.x.Cloud.Clock.Now()
			close(a.leaves)
		})
	}
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
			if a.role == RoleSwept && !a.leftAt.IsZero() { // AWS began to delete it then
				a.acted = a.leftAt
			}
		}
		a.deleted, a.stale = true, true
		return false, NotYet(errors.New("its deletion"))
	case cloud.InUse(err):
		return false, NotYet(fmt.Errorf("the deletion of what uses it%s: %w", a.blockers(ctx, have), err))
	case a.mayChange(err, a.x.Cloud.Clock.Now()):
		return false, NotYet(err)
	case !cloud.NoEffect(err) && a.retryLost(ctx):
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

// create creates the resource, unless an earlier create call may still succeed.
func (a *attempt) create(ctx context.Context) error {
	now := a.x.Cloud.Clock.Now()
	if asked := latest(a.made, a.pending); !asked.IsZero() && now.Sub(asked) < cloud.ConsistencyDelay {
		return NotYet(errors.New("the resource to appear"))
	}
	if a.creations >= mostCreations {
		return fmt.Errorf("create: AWS has accepted it %d times, and does not show it", a.creations)
	}
	a.announce(plan.Creating, "")
	a.acted, a.polls = now, 0
	var have State
	err := a.writing(ctx, func(ctx context.Context) (err error) {
		have, err = a.behaviour.create(ctx, a.x.Cloud)
		return err
	})
	a.changed = true
	a.x.Cloud.Forget(&a.asked)
	a.acted = a.x.Cloud.Clock.Now()
	switch {
	case err == nil:
		a.written.Store(true)
		a.creations++
		a.replaced, a.announced = true, ""
		a.made, a.pending = now, time.Time{}
		if have == nil {
			return NotYet(errors.New("the resource to appear"))
		}
		a.set(have)
		a.stale = a.verifying
		return nil
	case cloud.Exists(err) && a.mayAppear(now):
		return NotYet(fmt.Errorf("the resource to appear: %w", err)) // created a moment ago, and not visible yet
	case a.mayChange(err, now):
		a.polls++
		return NotYet(err)
	case cloud.NotFound(err) && a.mayAppear(now):
		a.polls++ // no creation is in progress: do not wait for as long as one takes
		return NotYet(fmt.Errorf("a resource that it needs: %w", err))
	case errors.As(err, new(*notYetError)):
		a.polls++
		return NotYet(err)
	case cloud.NoEffect(err):
		return fmt.Errorf("create: %w", err)
	}
	a.pending = now
	if !a.retryLost(ctx) {
		a.x.lostAnswers.Store(true)
		return fmt.Errorf("create: %w", err)
	}
	return NotYet(fmt.Errorf("the resource to appear, because the answer was lost: %w", err))
}

func (a *attempt) update(ctx context.Context, have State, d plan.Diff) error {
	if slices.Equal(d, a.updated) {
		return a.unchanged(have, d)
	}
	a.rounds.progress(have)
	if again, err := a.round(ctx, d); again || err != nil {
		return err
	}
	a.announce(plan.Updating, have.CloudID())
	now := a.x.Cloud.Clock.Now()
	a.acted, a.polls = now, 0
	var after State
	err := a.writing(ctx, func(ctx context.Context) (err error) {
		after, err = a.behaviour.update(ctx, a.x.Cloud, have, d)
		return err
	})
	a.changed = true
	a.x.Cloud.Forget(&a.asked)
	switch {
	case err == nil:
		a.written.Store(true)
		a.updated, a.replaced, a.finished, a.absent, a.refused = d, false, time.Time{}, time.Time{}, time.Time{}
		a.rounds.note(d)
		a.announced = ""
		if a.steps++; a.steps <= maxUpdates {
			a.stepped, a.late = now, a.x.Cloud.Late()
		}
		if after != nil {
			a.set(after)
		}
		a.stale = after == nil || a.verifying
		return nil
	case a.mayChange(err, now):
		return NotYet(err)
	case cloud.NotFound(err) && a.mayAppear(now):
		return NotYet(fmt.Errorf("a resource that it needs: %w", err))
	case cloud.InUse(err), errors.As(err, new(*notYetError)):
		return NotYet(err)
	case !cloud.NoEffect(err) && a.retryLost(ctx):
		return NotYet(fmt.Errorf("the answer to the update: %w", err))
	}
	return fmt.Errorf("update: %w", err)
}

// mayChange reports whether AWS is likely to accept later what it has refused.
func (a *attempt) mayChange(err error, now time.Time) bool {
	patience := cloud.Patience(err)
	return patience > 0 && within(&a.refused, now, patience)
}

// mayAppear reports whether a dependency that AWS does not know may still become
// visible: it has been missing for less than ConsistencyDelay.
func (a *attempt) mayAppear(now time.Time) bool {
	return within(&a.absent, now, cloud.ConsistencyDelay)
}

// within reports whether less than limit has passed since the time in since. If that is
// zero, the time starts now.
func within(since *time.Time, now time.Time, limit time.Duration) bool {
	if since.IsZero() {
		*since = now
	}
	return now.Sub(*since) < limit
}

// retryLost counts a lost answer, and reports whether to call again.
func (a *attempt) retryLost(ctx context.Context) bool {
	a.lost++
	return a.lost < 3 && ctx.Err() == nil
}

// writing calls a function that changes something in AWS. If the run is interrupted during
// the call, the function has a short time to finish.
func (a *attempt) writing(ctx context.Context, call func(context.Context) error) error {
	ctx, done := cloud.Uninterrupted(ctx)
	defer done()
	err := call(cloud.Recording(ctx, &cloud.Questions{}))
	if err != nil && ctx.Err() != nil && !cloud.NoEffect(err) {
		a.x.lostAnswers.Store(true) // it may still have its effect
	}
	return err
}

// repeating sends an event that reports a repeated call. A call that several resources share
// runs in another goroutine than the attempt.
func (a *attempt) repeating(r cloud.Retry) {
	a.repeats.Add(1)
	a.x.emit(plan.Event{Resource: a.id, What: plan.Waiting, Detail: "AWS: " + r.String(), Took: a.x.Cloud.Clock.Since(a.began)})
}

// done sends the last event of an attempt.
func (a *attempt) done(cloudID string) {
	if !a.acted.IsZero() || a.awaited != "" || a.repeats.Load() > 0 {
		a.x.emit(plan.Event{Resource: a.id, What: plan.Done, CloudID: cloudID, Took: a.x.Cloud.Clock.Since(a.began)})
	} else if !a.x.quiet.Load() {
		a.x.emit(plan.Event{Resource: a.id, What: plan.Kept, CloudID: cloudID})
	}
}

// announce emits the event about a write, but not again for each repeat of it.
func (a *attempt) announce(what plan.What, cloudID string) {
	if a.announced != what {
		a.announced = what
		a.emit(what, cloudID)
	}
}

func (a *attempt) emit(what plan.What, cloudID string) {
	create, remove := a.Takes()
	if what == plan.Deleting {
		create = remove
	}
	a.x.emit(plan.Event{Resource: a.id, What: what, CloudID: cloudID, Took: a.x.Cloud.Clock.Since(a.began), Expected: create})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func orUnknown(s string) string {
	if s == "" {
		return "not known yet"
	}
	return s
}
