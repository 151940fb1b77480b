package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Call describes one completed call to AWS, for the log.
type Call struct {
	Service, Operation string
	Took               time.Duration
	Err                error
}

type contextKey int

const (
	readOnlyKey contextKey = iota
	unlockedKey
	recorderKey
	snapshotKey
	briefKey
	interruptKey
	sentKey
)

// Uninterrupted returns a context that is not cancelled with ctx: a call that was sent
// gets its answer. After ctx has ended, no attempt is sent any more.
func Uninterrupted(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), interruptKey, func() error { return context.Cause(ctx) })
}

// beforeSend returns an error if an attempt must not be sent, because of an interrupt.
// Otherwise it notes that the call is sent.
func beforeSend(ctx context.Context) error {
	sent, _ := ctx.Value(sentKey).(*bool) // Guard sets it for each call
	if interrupt, ok := ctx.Value(interruptKey).(func() error); ok {
		if err := interrupt(); err != nil && *sent {
			return fmt.Errorf("not repeated: %w", err)
		} else if err != nil {
			return &unsentError{err}
		}
	}
	*sent = true
	return nil
}

// unsentError is the error of a call that was interrupted before it was sent.
type unsentError struct{ error }

func (e *unsentError) Error() string { return "not sent: " + e.error.Error() }

func (e *unsentError) Unwrap() error { return e.error }

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
	err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Guard",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
			if op := awsmiddleware.GetOperationName(ctx); ctx.Value(readOnlyKey) != nil && !Reads(op) {
				return out, md, &RefusedError{op}
			}
			if ctx.Value(unlockedKey) == nil { // other calls may occupy all slots while they wait for the lock
				select {
				case c.slots <- struct{}{}:
					defer func() { <-c.slots }()
				case <-ctx.Done():
					return out, md, context.Cause(ctx)
				}
			}
			began := c.Clock.Now()
			ctx = context.WithValue(ctx, sentKey, new(bool))
			out, md, err = next.HandleInitialize(ctx, in)
			if c.log != nil {
				c.log(Call{awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), c.Clock.Since(began), err})
			}
			return out, md, err
		}), middleware.After)
	if err != nil {
		return err
	}
	// The SDK recommends Add over Insert, because Insert needs the name of another
	// middleware. TestPaceSeesEveryAttempt checks that "Retry" exists.
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Pace",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			return c.pace(ctx, in, next)
		}), "Retry", middleware.After)
}

// checkLock returns an error if the call could change something and the run no longer
// holds the lock. It runs before every attempt: the machine may have been suspended
// between two attempts.
func (c *Clients) checkLock(ctx context.Context) error {
	op := awsmiddleware.GetOperationName(ctx)
	if Reads(op) || ctx.Value(unlockedKey) != nil || c.Lock == nil {
		return nil
	}
	if err := c.Lock.check(ctx); err != nil {
		return fmt.Errorf("%s not sent: %w", op, err)
	}
	return nil
}

// pace waits until the rate limit of the operation permits another call, and lowers the
// rate when AWS throttles the call.
func (c *Clients) pace(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	service, op := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	if ctx.Value(unlockedKey) == nil { // a heartbeat that waits for other calls would expire
		if err = c.buckets.wait(ctx, service, op); err != nil {
			return out, md, err
		}
	}
	if err = c.checkLock(ctx); err != nil {
		return out, md, err
	}
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
	out, md, err = answered(ctx, in, next)
	c.compareClocks(md)
	if err == nil || Rejected(err) {
		c.reached.Store(true)
	}
	if Rejected(err) && ctx.Value(unlockedKey) == nil && !Reads(op) {
		c.stats.Writes.Add(-1) // a rejected call has written nothing
	}
	if Throttled(err) {
		c.stats.Throttled.Add(1)
		c.buckets.slow(service, op)
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
func answered(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	attempt, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	out, md, err = next.HandleFinalize(attempt, in)
	if err != nil && attempt.Err() != nil && ctx.Err() == nil {
		err = &smithyhttp.RequestSendError{Err: errNoAnswer} // the SDK repeats it, as it repeats lost connections
	}
	return out, md, err
}

// Reads reports whether an operation only reads.
func Reads(op string) bool {
	return slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Search", "Lookup", "Simulate"}, func(p string) bool {
		return strings.HasPrefix(op, p)
	})
}
