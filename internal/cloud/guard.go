package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

type contextKey int

const (
	readOnlyKey contextKey = iota
	unlockedKey
	neverLateKey
	recorderKey
	snapshotKey
	interruptKey
	progressKey
	repeatsKey
	inspectKey
	optionalKey
	aheadKey
)

// answerGrace is how long a call that was sent may take after the run was interrupted.
// Without an answer, its effect is unknown, and the next run has to wait.
const answerGrace = 800 * time.Millisecond

// Uninterrupted returns a context that ends a moment after ctx: a call that was sent gets
// its answer, if AWS answers. After ctx has ended, no attempt is sent any more. The caller
// has to call the returned function in the end.
func Uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return outlive(context.WithValue(ctx, interruptKey, ctx), ctx)
}

// shared returns a context for a call that several callers wait for: it ends with none of
// them. If it changes something, it ends a moment after the run, as in Uninterrupted.
func shared(ctx context.Context) (context.Context, context.CancelFunc) {
	if run, ok := ctx.Value(interruptKey).(context.Context); ok {
		return outlive(ctx, run)
	}
	return context.WithoutCancel(ctx), func() {}
}

// outlive returns a context with the values of ctx that ends answerGrace after run.
func outlive(ctx, run context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(run, func() {
		time.AfterFunc(answerGrace, func() { cancel(context.Cause(run)) })
	})
	return out, func() {
		stop()
		cancel(nil)
	}
}

// beforeSend returns an error if an attempt must not be sent, because of an interrupt.
// Otherwise it notes that the call is sent.
func beforeSend(ctx context.Context) error {
	p, _ := ctx.Value(progressKey).(*progress) // the middleware Guard sets it for each call
	switch err := interrupted(ctx); {
	case err != nil && p.attempts > 0:
		return &interruptedError{"not repeated", err}
	case err != nil:
		return &interruptedError{notSent, err}
	}
	p.attempts++
	return nil
}

// interrupted returns why the run ends, if it does; also in a context from Uninterrupted.
func interrupted(ctx context.Context) error {
	if run, ok := ctx.Value(interruptKey).(context.Context); ok {
		return context.Cause(run) //nolint:contextcheck // of the whole run
	}
	return context.Cause(ctx)
}

// notSent says of a call that it has had no effect.
const notSent = "not sent"

// interruptedError is the error of a call that was interrupted.
type interruptedError struct {
	what string // happened to the call
	error
}

func (e *interruptedError) Error() string { return e.what + ": " + e.error.Error() }

func (e *interruptedError) Unwrap() error { return e.error }

// unanswered returns the error of a call whose context has ended. The error of the SDK does
// not contain the cause.
func unanswered(p *progress, cause error) error {
	if p.attempts > 0 {
		return &interruptedError{"no answer", cause}
	}
	return &interruptedError{notSent, cause}
}

// ReadOnly returns a context in which calls that could change something fail before they
// are sent.
func ReadOnly(ctx context.Context) context.Context { return context.WithValue(ctx, readOnlyKey, true) }

// unlocked returns a context for the calls of the lock itself: they do not check the
// lock, do not wait for a free slot or for the rate limit, and are not counted.
func unlocked(ctx context.Context) context.Context {
	return context.WithValue(ctx, unlockedKey, true)
}

// RefusedError is returned for a call that was not sent because it could have changed
// something in a read-only context.
type RefusedError struct{ Operation string }

func (e *RefusedError) Error() string { return e.Operation + " not sent: this run is read-only" }

// guard adds two middlewares to a client's stack. The first runs once per call and checks
// whether it is allowed; the second runs for every attempt and limits the rate.
func (c *Clients) guard(stack *middleware.Stack) error {
	if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Guard", c.admit), middleware.After); err != nil {
		return err
	}
	if _, sent := stack.Finalize.Get("Retry"); !sent { // it is only presigned
		return nil
	}
	// The SDK recommends Add over Insert, because Insert needs the name of another
	// middleware. TestPaceSeesEveryAttempt checks that "Retry" exists.
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Pace",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			return c.pace(ctx, in, next)
		}), "Retry", middleware.After)
}

// admit passes a call on if this context permits it and a slot is free, and logs its result.
func (c *Clients) admit(
	ctx context.Context,
	in middleware.InitializeInput,
	next middleware.InitializeHandler,
) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
	op := awsmiddleware.GetOperationName(ctx)
	if inspected(ctx, awsmiddleware.GetServiceID(ctx), op, in.Parameters) {
		return out, md, &RefusedError{op}
	}
	if ctx.Value(readOnlyKey) != nil && !Reads(op) {
		return out, md, &RefusedError{op}
	}
	if ctx.Value(unlockedKey) == nil { // other calls may occupy all slots while they wait for the lock
		select {
		case c.budget.slots <- struct{}{}:
			defer func() { <-c.budget.slots }()
		case <-ctx.Done():
			return out, md, &interruptedError{notSent, context.Cause(ctx)}
		}
	}
	began := c.Clock.Now()
	p := &progress{input: in.Parameters}
	out, md, err = c.call(context.WithValue(ctx, progressKey, p), p, in, next)
	if p.throttled > 0 {
		c.stats.late.end(c.Clock.Now())
	}
	if c.log != nil {
		c.log(plan.Call{Service: awsmiddleware.GetServiceID(ctx), Operation: op, Took: c.Clock.Since(began), Err: err, Attempts: p.attempts, Writes: !Reads(op)})
	}
	return out, md, err
}

// call passes a call on. Its error says whether AWS may have received it, and why it was denied.
func (c *Clients) call(
	ctx context.Context,
	p *progress,
	in middleware.InitializeInput,
	next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if _, told := ctx.Value(repeatsKey).(func(Retry)); !told && c.repeats != nil {
		ctx = WithRepeats(ctx, c.repeats)
	}
	out, md, err := next.HandleInitialize(ctx, in)
	if err != nil && ctx.Err() != nil && !Rejected(err) && !errors.As(err, new(*interruptedError)) {
		err = unanswered(p, context.Cause(ctx))
	}
	if Denied(err) {
		c.readDetails(ctx, err)
	}
	return out, md, err
}

// checkLock returns an error if the call could change something and the run no longer
// holds the lock. It runs before every attempt: the machine may have been suspended
// between two attempts. Afterwards, the caller calls the returned function.
func (c *Clients) checkLock(ctx context.Context, service, op string) (done func(sent time.Time, answered bool), err error) {
	done = func(time.Time, bool) {}
	if Reads(op) || ctx.Value(unlockedKey) != nil || c.Lock == nil {
		return done, nil
	}
	p, _ := ctx.Value(progressKey).(*progress) // the middleware Guard sets it for each call
	if d := c.validity(ctx, service, op, p.input); d > 0 {
		done = c.Lock.expect(d)
	}
	if err := c.Lock.check(ctx); err != nil {
		done(time.Time{}, true)
		return nil, fmt.Errorf("%s not sent: %w", op, err)
	}
	return done, nil
}

// hesitate pauses before a repeated attempt, and waits until the rate limit of the operation
// permits another call.
func (c *Clients) hesitate(ctx context.Context, service, op string) error {
	if p, _ := ctx.Value(progressKey).(*progress); p.failed > 0 { // the middleware Guard sets it for each call
		if err := c.Clock.Sleep(ctx, p.pause); err != nil {
			return err
		}
	}
	if ctx.Value(unlockedKey) != nil { // a heartbeat that waits for other calls would expire: they wait for it
		c.budget.buckets.take(service, op)
		return nil
	}
	return c.budget.buckets.wait(ctx, service, op)
}

// pace waits until an attempt may be sent, and lowers the rate when AWS throttles it.
func (c *Clients) pace(
	ctx context.Context,
	in middleware.FinalizeInput,
	next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	service, op := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	if err = c.hesitate(ctx, service, op); err != nil {
		return out, md, err
	}
	done, err := c.checkLock(ctx, service, op)
	if err != nil {
		return out, md, err
	}
	sent := c.Clock.Now()
	defer func() { done(sent, arrived(err)) }()
	if err = beforeSend(ctx); err != nil {
		return out, md, err
	}
	if ctx.Value(unlockedKey) == nil {
		if Reads(op) {
			c.stats.Reads.Add(1)
		} else {
			c.stats.Writes.Add(1)
		}
	}
	out, md, err = c.answered(ctx, in, next)
	c.compareClocks(md)
	if err == nil || Rejected(err) {
		c.reached.Store(true)
	}
	if Rejected(err) && ctx.Value(unlockedKey) == nil && !Reads(op) {
		c.stats.Writes.Add(-1) // a rejected call has written nothing
	}
	if Throttled(err) {
		c.stats.throttle(service)
		c.budget.buckets.slow(service, op, sent)
	} else {
		c.budget.buckets.quicken(service, op)
	}
	if err != nil {
		err = c.failed(ctx, err)
	}
	return out, md, err
}

// answerTimeout is how long an attempt waits for its answer. A connection that a suspended
// laptop or a changed network left half open never has one, and the kernel takes up to 15
// minutes to close it.
const answerTimeout = time.Minute

// errNoAnswer says that AWS did not answer within answerTimeout. The call may have had its
// effect.
var errNoAnswer = errors.New("no answer within a minute")

// answered sends an attempt, and waits for its answer.
func (c *Clients) answered(
	ctx context.Context,
	in middleware.FinalizeInput,
	next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	if transfers(awsmiddleware.GetOperationName(ctx)) {
		return c.transferred(ctx, in, next)
	}
	attempt, cancel := c.Clock.WithTimeout(ctx, answerTimeout, nil)
	out, md, err = next.HandleFinalize(attempt, in)
	if err != nil && attempt.Err() != nil && ctx.Err() == nil {
		err = &smithyhttp.RequestSendError{Err: errNoAnswer} // the SDK repeats it, as it repeats lost connections
	}
	cancel()
	return out, md, err
}

// Reads reports whether an operation only reads. SendCommand counts as one: the commands of a run only read on machines
// (package runcommand), and the command of "cluster exec" belongs to no run and is never repeated. Encrypt and Decrypt
// change nothing, either.
func Reads(op string) bool {
	return op == "SendCommand" ||
		slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Search", "Lookup", "Simulate", "Decode", "Encrypt", "Decrypt"}, func(p string) bool {
			return strings.HasPrefix(op, p)
		})
}
