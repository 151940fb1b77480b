package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

// maxAttempts is how often a call is sent at most. With the pauses of the SDK between them,
// the last attempt comes about a minute after the first.
const maxAttempts = 8

// silentAttempts is the number of attempts that may fail before a repeated call is reported.
// Most calls that fail once succeed a second later.
const silentAttempts = 2

// Retry says that a call has failed and is repeated.
type Retry struct {
	Service, Operation string
	Attempt, Of        int // the number of the next attempt, and the highest possible
	Err                error
}

func (r Retry) String() string {
	return fmt.Sprintf("%s %s: %s, attempt %d of %d", r.Service, r.Operation, Reason(r.Err), r.Attempt, r.Of)
}

// Reason describes an error in a few words: the error code of AWS, or what happened to the
// connection.
func Reason(err error) string {
	if code := Code(err); code != "" && code != "UnknownError" {
		return code
	}
	var answer interface{ HTTPStatusCode() int }
	var send *smithyhttp.RequestSendError
	var request *url.Error // its text has the whole address
	if errors.As(err, &answer) && answer.HTTPStatusCode() != 0 {
		return fmt.Sprintf("HTTP status %d", answer.HTTPStatusCode())
	}
	if errors.As(err, &send) {
		err = send.Err
	}
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}

// WithRepeats returns a context in which told, instead of Options.Repeating, is called
// before an attempt that repeats a call. It may be called from any goroutine.
func WithRepeats(ctx context.Context, told func(Retry)) context.Context {
	return context.WithValue(awshttp.Quiet(ctx), repeatsKey, told)
}

// Optional returns a context for reads whose answers a run can do without: their repeated
// attempts are not reported.
func Optional(ctx context.Context) context.Context {
	return WithRepeats(InSnapshot(ReadOnly(ctx)), func(Retry) {})
}

// progress counts the attempts of one call.
type progress struct {
	attempts int           // that were sent
	failed   int           // of them
	pause    time.Duration // before the next one
	input    any           // of the call
}

// failed counts a failed attempt, and tells who wants to know that another one follows. The SDK
// decides whether one does.
func (c *Clients) failed(ctx context.Context, err error) {
	p, _ := ctx.Value(progressKey).(*progress) // the middleware Guard sets it for each call
	p.failed++
	p.pause, _ = c.retries.RetryDelay(p.failed, err) // fails without random numbers
	told, _ := ctx.Value(repeatsKey).(func(Retry))
	if told != nil && p.failed >= silentAttempts && p.failed < maxAttempts && interrupted(ctx) == nil && c.retries.IsErrorRetryable(err) {
		told(Retry{awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), p.failed + 1, maxAttempts, err})
	}
}

// retryer says which failed attempts are repeated.
func (c *Clients) retryer() aws.RetryerV2 {
	return retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts = maxAttempts
		r.RateLimiter = ratelimit.None // with the SDK's token bucket, long runs fail
		r.Retryables = append([]retry.IsErrorRetryable{
			retry.IsErrorRetryableFunc(stopped),
			retry.RetryableError{},
			retry.IsErrorRetryableFunc(c.disconnected), retry.IsErrorRetryableFunc(cut),
			retry.RetryableErrorCode{Codes: map[string]struct{}{"TooManyUpdates": {}}}, // of Parameter Store
		}, r.Retryables...)
	})
}

// unpaused is a retryer without pauses: pace pauses, on the clock of the run.
type unpaused struct{ aws.RetryerV2 }

// RetryDelay implements aws.Retryer.
func (unpaused) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

// stopped keeps the SDK from repeating calls of an interrupted run. By default, the SDK
// treats the deadline of a context like a lost connection.
func stopped(err error) aws.Ternary {
	if errors.As(err, new(*interruptedError)) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

// disconnected makes the SDK repeat a call if the host name cannot be resolved or the host
// does not accept connections, for example after a laptop has resumed. By default, the SDK
// does not repeat such a call, because the name may be wrong. If AWS has answered before, the
// name is right.
func (c *Clients) disconnected(err error) aws.Ternary {
	if c.reached.Load() && Unconnected(err) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// cut makes the SDK repeat a call whose answer is incomplete. By default, the SDK does not
// repeat a call whose answer it cannot decode.
func cut(err error) aws.Ternary {
	if Cut(err) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}
