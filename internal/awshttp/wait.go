package awshttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

const (
	// reportAfter is for how long a call may wait before that is reported.
	reportAfter = 4 * time.Second
	// reportEvery is the time between two reports about the same host, at least.
	reportEvery = 10 * time.Second
)

type contextKey int

const (
	quietKey contextKey = iota
	callKey
	mostKey
)

// Quiet returns a context for calls that Reporting does not report: the caller does, or the
// answer is optional.
func Quiet(ctx context.Context) context.Context { return context.WithValue(ctx, quietKey, true) }

// Reporting returns a configuration whose clients report calls that wait for more than a few
// seconds: for an answer, or to be repeated. tell may be called from any goroutine.
func Reporting(cfg aws.Config, tell func(string)) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), Reporter(tell))
	return cfg
}

// Reporter returns the middleware of Reporting.
func Reporter(tell func(string)) func(*middleware.Stack) error {
	r := &reporter{tell: tell, last: map[string]time.Time{}}
	return r.add
}

// reporter reports calls that wait.
type reporter struct {
	tell  func(string)
	clock *clock.Clock // nil, the system clock

	mu   sync.Mutex
	last map[string]time.Time // host -> time of the last report
}

// call is what a reporter knows of one call.
type call struct {
	began   time.Time
	attempt int
	last    error
}

func (r *reporter) add(stack *middleware.Stack) error {
	const name = "ReportWaiting"
	_, sent := stack.Finalize.Get("Retry")
	if _, added := stack.Initialize.Get(name); added || !sent {
		return nil
	}
	err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc(name,
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(context.WithValue(ctx, callKey, &call{began: r.clock.Now()}), in)
		}), middleware.Before)
	if err != nil {
		return err
	}
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc(name, r.attempt), middleware.After) // the request is complete
}

// attempt sends a request, and reports that it waits.
func (r *reporter) attempt(
	ctx context.Context,
	in middleware.FinalizeInput,
	next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	c, ok := ctx.Value(callKey).(*call)
	if !ok || ctx.Value(quietKey) != nil {
		return next.HandleFinalize(ctx, in)
	}
	c.attempt++
	if c.attempt > 1 && r.clock.Since(c.began) >= reportAfter {
		r.report(host(ctx, in.Request), "%s, attempt %d", reason(c.last), c.attempt)
	}
	stop := r.clock.AfterFunc(ctx, reportAfter, func() {
		r.report(host(ctx, in.Request), "no answer yet")
	})
	out, md, err := next.HandleFinalize(ctx, in)
	stop()
	c.last = err
	return out, md, err
}

// report reports one line, unless it has just reported another one of the same host.
func (r *reporter) report(host, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); now.Sub(r.last[host]) >= reportEvery {
		r.last[host] = now
		r.tell("waiting for " + host + ": " + fmt.Sprintf(format, args...))
	}
}

// host is the name of the server of a request.
func host(ctx context.Context, request any) string {
	name := ""
	if r, ok := request.(*smithyhttp.Request); ok && r.URL != nil {
		name = r.URL.Host
	}
	return cmp.Or(name, awsmiddleware.GetServiceID(ctx))
}

// reason describes the error of an attempt in a few words.
func reason(err error) string {
	var request *url.Error // its text has the whole address
	var answer interface {
		error
		HTTPStatusCode() int
	}
	var cut *smithy.DeserializationError
	switch {
	case err == nil:
		return "repeated"
	case errors.As(err, &request):
		return request.Err.Error()
	case errors.As(err, &cut): // the status may be 200
		return "the answer is not complete: " + cut.Err.Error()
	case errors.As(err, &answer) && answer.HTTPStatusCode() != 0:
		return fmt.Sprintf("HTTP status %d", answer.HTTPStatusCode())
	}
	return err.Error()
}
