package cloud_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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

// Several calls wait for tokens. The next token goes to the call with the longest time ahead. If two calls have the same time ahead, it
// goes to the one that came first. A call that is cancelled leaves the queue.
func TestCallsThatMoreWorkWaitsFor(t *testing.T) {
	in(t, func(t *testing.T) {
		c := newWire(func(int, string) (any, error) { return &ec2.RunInstancesOutput{}, nil }).clients()
		together(5, func() { require.NoError(t, run(t.Context(), c)) })
		began := time.Now()
		var order []string
		var calls sync.WaitGroup
		call := func(ctx context.Context, name string, ahead time.Duration) {
			calls.Go(func() {
				err := run(cloud.WithAhead(ctx, ahead), c)
				order = append(order, fmt.Sprintf("%s %s %t", name, time.Since(began), err == nil))
			})
			time.Sleep(time.Millisecond)
		}
		stopped, stop := context.WithCancel(t.Context())
		call(t.Context(), "a", 0)
		call(t.Context(), "b", time.Minute)
		call(t.Context(), "c", 2*time.Minute)
		call(t.Context(), "d", time.Minute)
		call(stopped, "e", time.Hour)
		time.Sleep(95 * time.Millisecond)
		stop()
		calls.Wait()
		require.Equal(t, []string{"e 100ms false", "c 500ms true", "b 1s true", "d 1.5s true", "a 2s true"}, order)
	})
}

// Two programs share the limit of an account for an hour: both get a part of it, and few calls are refused.
func TestProgramsShareARate(t *testing.T) {
	in(t, func(t *testing.T) {
		tokens, at := 5.0, time.Now() // a bucket of AWS for RunInstances
		w := newWire(nil)
		w.answer = func(int, string) (any, error) {
			time.Sleep(20*time.Millisecond + rand.N(100*time.Millisecond)) // the way to AWS
			tokens, at = min(5, tokens+2*time.Since(at).Seconds()), time.Now()
			if tokens < 1 {
				return nil, refusal("RequestLimitExceeded")
			}
			tokens--
			return &ec2.RunInstancesOutput{}, nil
		}
		var done [2]int
		clients := [2]*cloud.Clients{w.clients(), w.clients()}
		limited, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var programs sync.WaitGroup
		for i, c := range clients {
			for range 4 {
				programs.Go(func() {
					for run(limited, c) == nil {
						done[i]++
					}
				})
			}
		}
		programs.Wait()
		require.Greater(t, done[0]+done[1], 7200*9/10, "the rate is used up")
		require.Greater(t, min(done[0], done[1]), 7200/20, "neither starves")
		refused := clients[0].Stats().Throttled.Load() + clients[1].Stats().Throttled.Load()
		require.Less(t, refused, int64(360), "of 7200")
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
