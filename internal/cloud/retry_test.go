package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// repeats calls AWS once, with answers that all have the error, and returns what was said of
// the attempts.
func repeats(t *testing.T, err error, contexts ...func(context.Context) context.Context) (told []string, attempts int) {
	t.Helper()
	in(t, func(t *testing.T) { told, attempts = repeatsIn(t, err, contexts...) })
	return told, attempts
}

// repeatsIn is repeats in a bubble of synctest.
func repeatsIn(t *testing.T, err error, contexts ...func(context.Context) context.Context) (told []string, attempts int) {
	t.Helper()
	w := newWire(func(int, string) (any, error) { return nil, err })
	c := cloud.New(w.config(), "demo", cloud.Options{Repeating: func(r cloud.Retry) { told = append(told, r.String()) }})
	ctx := t.Context()
	for _, wrap := range contexts {
		ctx = wrap(ctx)
	}
	_, got := c.EC2.CreateVpc(ctx, &ec2.CreateVpcInput{})
	require.Error(t, got)
	attempts = w.attempts()
	return told, attempts
}

// Each failure from the second one on is reported, with the number of the next attempt.
func TestRepeatsAreTold(t *testing.T) {
	internal := &smithy.GenericAPIError{Code: "InternalError", Message: "An internal error has occurred", Fault: smithy.FaultServer}
	told, attempts := repeats(
		t,
		&smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusInternalServerError}}, Err: internal},
	)
	require.Equal(t, 8, attempts)
	require.Equal(t, []string{
		"EC2 CreateVpc: InternalError, attempt 3 of 8", "EC2 CreateVpc: InternalError, attempt 4 of 8", "EC2 CreateVpc: InternalError, attempt 5 of 8",
		"EC2 CreateVpc: InternalError, attempt 6 of 8", "EC2 CreateVpc: InternalError, attempt 7 of 8", "EC2 CreateVpc: InternalError, attempt 8 of 8",
	}, told)
	for reason, err := range map[string]error{
		"RequestTimeout": refusal("RequestTimeout"),
		"read tcp 192.0.2.1: read: connection reset by peer": &smithyhttp.RequestSendError{Err: errors.New("read tcp 192.0.2.1: read: " + syscall.ECONNRESET.Error())},
	} {
		told, _ := repeats(t, err)
		require.Len(t, told, 6)
		assert.Equal(t, "EC2 CreateVpc: "+reason+", attempt 3 of 8", told[0])
	}
}

// A call with a final answer is not repeated, and nothing is reported.
func TestRefusalsAreNotRepeated(t *testing.T) {
	told, attempts := repeats(t, refusal("VpcLimitExceeded"))
	require.Equal(t, 1, attempts)
	require.Empty(t, told)
}

// WithRepeats replaces the function that receives the reports.
func TestWithRepeats(t *testing.T) {
	var own []cloud.Retry
	told, _ := repeats(t, lost(), func(ctx context.Context) context.Context {
		return cloud.WithRepeats(ctx, func(r cloud.Retry) { own = append(own, r) })
	})
	require.Empty(t, told)
	require.Len(t, own, 6)
	require.Equal(t, 8, own[5].Attempt)
}

// A throttled attempt does not count: other programs of the account use the same limit. It is
// repeated for an hour, and reported every half minute.
func TestThrottledAttemptsDoNotCount(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(nil)
		w.answer = func(int, string) (any, error) {
			if time.Since(w.began) < 20*time.Minute {
				return nil, refusal("RequestLimitExceeded")
			}
			return &ec2.DescribeVpcsOutput{}, nil
		}
		var told []cloud.Retry
		c := cloud.New(w.config(), "demo", cloud.Options{Repeating: func(r cloud.Retry) { told = append(told, r) }})
		_, err := c.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		require.NoError(t, err)
		require.InDelta(t, 20, c.Late().Minutes(), 0.5)
		require.Equal(t, []string{"EC2"}, c.Stats().ThrottledBy())
		require.InDelta(t, 40, len(told), 12)
		require.Equal(t, "EC2 DescribeVpcs: RequestLimitExceeded, throttled for 1s", told[0].String())
		require.InDelta(t, 20, told[len(told)-1].Throttled.Minutes(), 1)
		time.Sleep(time.Hour)
		require.InDelta(t, 20, c.Late().Minutes(), 0.5, "only while a call is throttled")
	})
	in(t, func(t *testing.T) {
		began := time.Now()
		_, attempts := repeatsIn(t, refusal("RequestLimitExceeded"))
		require.Greater(t, attempts, 100)
		require.InDelta(t, 60, time.Since(began).Minutes(), 1)
	})
}

// A read that a run can do without is given up sooner.
func TestOptionalReadsAreGivenUp(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(func(int, string) (any, error) { return nil, refusal("TooManyRequestsException") })
		_, err := w.clients().EC2.DescribeVpcs(cloud.Optional(t.Context()), &ec2.DescribeVpcsInput{})
		require.Error(t, err)
		require.Equal(t, 8, w.attempts())
	})
}

// steps is a clock that shows the sum of what it was told to wait for.
type steps struct{ now time.Time }

func (s *steps) Now() time.Time { return s.now }

func (s *steps) Sleep(ctx context.Context, d time.Duration) error {
	if d == time.Minute { // the time limit of an attempt, which never passes
		<-ctx.Done()
		return context.Cause(ctx)
	}
	s.now = s.now.Add(d)
	return context.Cause(ctx)
}

// The pauses before repeated attempts are on the clock of the run, and grow up to 20 seconds.
func TestPausesOnTheClockOfTheRun(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(func(int, string) (any, error) { return nil, lost() })
		began, own := time.Now(), &steps{now: time.Now()}
		c := cloud.New(w.config(), "demo", cloud.Options{Clock: clock.Of(own)})
		_, err := c.EC2.CreateVpc(t.Context(), &ec2.CreateVpcInput{})
		require.Error(t, err)
		require.Equal(t, 8, w.attempts())
		require.Equal(t, began, time.Now())
		paused := own.now.Sub(began)
		require.Positive(t, paused)
		require.LessOrEqual(t, paused, 90*time.Second, "2, 4, 8, 16 and three times 20 seconds at most")
	})
}
