package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// Call is one call to AWS that has ended, for the log.
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
)

// ReadOnly returns a context in which every call that could change something
// in AWS fails before it is sent.
func ReadOnly(ctx context.Context) context.Context { return context.WithValue(ctx, readOnlyKey, true) }

// unlocked returns a context whose calls are the lock's own: they need none,
// and do not count.
func unlocked(ctx context.Context) context.Context {
	return context.WithValue(ctx, unlockedKey, true)
}

// RefusedError says that a call was stopped before it was sent, since it
// could have changed something in a plan.
type RefusedError struct{ Operation string }

func (e *RefusedError) Error() string { return e.Operation + " refused: this run may only look" }

// guard puts the two middlewares into a client's stack: one that sees a call
// once and decides, one that sees every attempt and keeps the pace.
func (c *Clients) guard(stack *middleware.Stack) error {
	err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Guard",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
			if op := awsmiddleware.GetOperationName(ctx); ctx.Value(readOnlyKey) != nil && !Reads(op) {
				return out, md, &RefusedError{op}
			}
			if ctx.Value(unlockedKey) == nil { // the lock's own calls are made while others hold all slots and wait for it
				select {
				case c.slots <- struct{}{}:
					defer func() { <-c.slots }()
				case <-ctx.Done():
					return out, md, context.Cause(ctx)
				}
			}
			began := c.Clock.Now()
			out, md, err = next.HandleInitialize(ctx, in)
			if c.log != nil {
				c.log(Call{awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), c.Clock.Since(began), err})
			}
			return out, md, err
		}), middleware.After)
	if err != nil {
		return err
	}
	// SDK documentation prefers Add to Insert, which names another middleware;
	// TestPaceSeesEveryAttempt pins that "Retry" is there.
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Pace",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			return c.pace(ctx, in, next)
		}), "Retry", middleware.After)
}

// locked makes sure that a call which can change something is covered by the
// lock. Every attempt is: between two of them a machine may have slept.
func (c *Clients) locked(ctx context.Context) error {
	op := awsmiddleware.GetOperationName(ctx)
	if Reads(op) || ctx.Value(unlockedKey) != nil || c.Lock == nil {
		return nil
	}
	if err := c.Lock.check(ctx); err != nil {
		return fmt.Errorf("%s not sent: %w", op, err)
	}
	return nil
}

// pace waits until the service can be expected to take another call of this
// class, and slows down when it says that it cannot.
func (c *Clients) pace(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	service, op := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	if err = c.buckets.wait(ctx, service, op); err != nil {
		return out, md, err
	}
	if err = c.locked(ctx); err != nil {
		return out, md, err
	}
	if ctx.Value(unlockedKey) == nil {
		if Reads(op) {
			c.stats.Reads.Add(1)
		} else {
			c.stats.Writes.Add(1)
		}
	}
	out, md, err = next.HandleFinalize(ctx, in)
	if Refused(err) && ctx.Value(unlockedKey) == nil && !Reads(op) {
		c.stats.Writes.Add(-1) // nothing was written
	}
	if Throttled(err) {
		c.stats.Throttled.Add(1)
		c.buckets.slow(service, op)
	}
	return out, md, err
}

// Reads reports whether an operation only looks.
func Reads(op string) bool {
	return slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Search", "Lookup", "Simulate"}, func(p string) bool {
		return strings.HasPrefix(op, p)
	})
}
