package cloud_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// RunInstances has a bucket of five, refilled at two per second.
func TestRateOfRunInstances(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(func(int, string) (any, error) { return &ec2.RunInstancesOutput{}, nil })
		c := w.clients()
		together(15, func() { require.NoError(t, run(t.Context(), c)) })
		slices.Sort(w.at)
		for i, at := range w.at {
			want := time.Duration(max(0, i-4)) * 500 * time.Millisecond
			require.InDelta(t, want.Seconds(), at.Seconds(), 0.01, "call %d", i)
		}
		time.Sleep(time.Hour) // the bucket holds five at most
		began := len(w.at)
		start := time.Since(w.began)
		together(7, func() { require.NoError(t, run(t.Context(), c)) })
		slices.Sort(w.at)
		require.Equal(t, start, w.at[began+4])
		require.Equal(t, start+500*time.Millisecond, w.at[began+5])
	})
}

// The rate limit of one class does not delay another class.
func TestClassesHaveSeparateBuckets(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(func(_ int, op string) (any, error) {
			if op == "DescribeVpcs" {
				return &ec2.DescribeVpcsOutput{}, nil
			}
			return &ec2.RunInstancesOutput{}, nil
		})
		c := w.clients()
		together(5, func() { require.NoError(t, run(t.Context(), c)) })
		_, err := c.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		require.NoError(t, err)
		require.Zero(t, w.at[5])
	})
}

// A throttled client slows down and then recovers: other callers in the account use the
// same limit.
func TestThrottledClientRecovers(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(nil)
		w.answer = func(int, string) (any, error) {
			if time.Since(w.began) < 5*time.Second {
				return nil, refusal("RequestLimitExceeded")
			}
			return &ec2.DescribeVpcsOutput{}, nil
		}
		c := w.clients()
		together(20, func() {
			_, err := c.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
			require.NoError(t, err)
		})
		require.Less(t, c.Stats().Throttled.Load(), int64(100))
		require.Less(t, time.Since(w.began), 30*time.Second)
		time.Sleep(time.Minute)
		start := time.Since(w.began)
		before := w.attempts()
		together(100, func() { _, _ = c.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}) })
		require.Equal(t, start, w.at[before+99], "recovered: a hundred at once")
	})
}

// A call whose answer is lost is repeated, except with SendOnce. A throttled call is
// always repeated.
func TestSendOnce(t *testing.T) {
	for _, c := range []struct {
		err      error
		once     bool
		attempts int
	}{{lost(), false, 3}, {lost(), true, 1}, {refusal("RequestLimitExceeded"), false, 3}, {refusal("RequestLimitExceeded"), true, 3}, {refusal("InternalError"), true, 1}, {refusal("InvalidParameterValue"), false, 1}} {
		in(t, func(t *testing.T) {
			w := newWire(func(n int, _ string) (any, error) {
				if n < 3 {
					return nil, c.err
				}
				return &ec2.CreateVpcOutput{}, nil
			})
			var opts []func(*ec2.Options)
			if c.once {
				opts = append(opts, cloud.SendOnce)
			}
			_, err := w.clients().EC2.CreateVpc(t.Context(), &ec2.CreateVpcInput{}, opts...)
			require.Equal(t, c.attempts, w.attempts(), "%v %v", c.err, c.once)
			require.Equal(t, c.attempts < 3, err != nil)
		})
	}
}

// run launches a machine.
func run(ctx context.Context, c *cloud.Clients) error {
	_, err := c.EC2.RunInstances(ctx, &ec2.RunInstancesInput{MinCount: new(int32(1)), MaxCount: new(int32(1))})
	return err
}
