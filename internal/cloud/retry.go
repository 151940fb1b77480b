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

// maxAttempts is how many attempts of a call may fail. With the pauses of the SDK between them,
// the last attempt comes about a minute after the first. Throttled attempts do not count: all
// programs of the account share the limits, and with 50 clusters at once some calls are throttled
// for minutes.
const maxAttempts = 8

// throttling is for how long a call is repeated that AWS throttles. 50 clusters at once need nine
// minutes for the writes that AWS permits; a run that is throttled for an hour has little hope.
const throttling = time.Hour

// silentAttempts is the number of attempts that may fail before a repeated call is reported.
// Most calls that fail once succeed a second later.
const silentAttempts = 2

// Retry says that a call has failed and is repeated.
type Retry struct {
	Service, Operation string
	Attempt, Of        int           // the number of the next attempt, and the highest possible
	Throttled          time.Duration // for how long AWS has throttled the call; 0: the attempts count
	Err                error
}

func (r Retry) String() string {
	if r.Throttled > 0 {
		return fmt.Sprintf("%s %s: %s, throttled for %s", r.Service, r.Operation, Reason(r.Err), r.Throttled.Round(time.Second))
	}
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
// attempts are not reported, and a throttled one counts like any other.
func Optional(ctx context.Context) context.Context {
	return context.WithValue(WithRepeats(InSnapshot(ReadOnly(ctx)), func(Retry) {}), optionalKey, true)
}

// progress counts the attempts of one call.
type progress struct {
	attempts  int           // that were sent
	failed    int           // of them, without those that AWS has throttled
	throttled int           // of them
	since     time.Time     // of the first of those
	told      time.Time     // when the last report of them was sent
	pause     time.Duration // before the next one
	input     any           // of the call
}

// failed counts a failed attempt, and tells who wants to know that another one follows. It returns
// the error by which the SDK decides whether one does.
func (c *Clients) failed(ctx context.Context, err error) error {
	p, _ := ctx.Value(progressKey).(*progress) // the middleware Guard sets it for each call
	now := c.Clock.Now()
	if Throttled(err) && ctx.Value(unlockedKey) == nil && ctx.Value(optionalKey) == nil && (p.throttled == 0 || now.Sub(p.since) < throttling) {
		c.throttled(ctx, p, now, err)
		return err
	}
	p.failed++
	p.pause, _ = c.retries.RetryDelay(p.failed, err) // fails without random numbers
	switch {
	case !c.retries.IsErrorRetryable(err):
	case p.failed >= maxAttempts || Throttled(err) && p.throttled > 0:
		return &retry.MaxAttemptsError{Attempt: p.attempts, Err: err}
	case p.failed >= silentAttempts:
		tell(ctx, Retry{Attempt: p.failed + 1, Of: maxAttempts, Err: err})
	}
	return err
}

// betweenReports is the time between two reports of a throttled call.
const betweenReports = 30 * time.Second

// throttled counts a throttled attempt. The second one is reported, and then one in each half minute.
func (c *Clients) throttled(ctx context.Context, p *progress, now time.Time, err error) {
	if p.throttled++; p.throttled == 1 {
		p.since = now
		c.stats.late.begin(now)
	}
	p.pause = 0 // the bucket makes it wait
	if p.throttled >= silentAttempts && now.Sub(p.told) >= betweenReports {
		p.told = now
		tell(ctx, Retry{Throttled: max(now.Sub(p.since), time.Second), Err: err})
	}
}

// tell reports that an attempt of a call has failed, and that another one follows.
func tell(ctx context.Context, r Retry) {
	if told, _ := ctx.Value(repeatsKey).(func(Retry)); told != nil && interrupted(ctx) == nil {
		r.Service, r.Operation = awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
		told(r)
	}
}

// retryer says which failed attempts are repeated.
func (c *Clients) retryer() aws.RetryerV2 {
	return retry.NewStandard(func(r *retry.StandardOptions) {
		r.RateLimiter = ratelimit.None // with the SDK's token bucket, long runs fail
		r.Retryables = append([]retry.IsErrorRetryable{
			retry.IsErrorRetryableFunc(stopped),
			retry.RetryableError{},
			retry.IsErrorRetryableFunc(c.disconnected), retry.IsErrorRetryableFunc(cut),
			retry.RetryableErrorCode{Codes: map[string]struct{}{"TooManyUpdates": {}}}, // of Parameter Store
		}, r.Retryables...)
	})
}

// unpaused is a retryer without pauses and without a number of attempts: pace pauses, on the clock of
// the run, and counts.
type unpaused struct{ aws.RetryerV2 }

// MaxAttempts implements aws.Retryer.
func (unpaused) MaxAttempts() int { return 0 }

// IsErrorRetryable implements aws.Retryer.
func (u unpaused) IsErrorRetryable(err error) bool {
	return !errors.As(err, new(*retry.MaxAttemptsError)) && u.RetryerV2.IsErrorRetryable(err)
}

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
