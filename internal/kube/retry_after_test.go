package kube

import (
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// A server that asks for an hour is not waited for; one that asks for a second is.
func TestLongRetryAfterIsNotWaitedFor(t *testing.T) {
	for asked, want := range map[string]string{"3600": "", "1": "1", "": ""} {
		rt := &patient{RoundTripper: answering(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {asked}}, Body: http.NoBody}, nil
		})}
		answer, err := rt.RoundTrip(&http.Request{})
		require.NoError(t, err)
		require.Equal(t, want, answer.Header.Get("Retry-After"))
		require.NoError(t, answer.Body.Close())
	}
}

// A read without an answer is repeated on the clock of the run, and a write is not. client-go repeats neither on the system clock.
func TestLostAnswers(t *testing.T) {
	for method, want := range map[string]int{http.MethodGet: 5, http.MethodDelete: 1} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c, began := client(t, func(*http.Request) (*http.Response, error) {
				tries++
				return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
			}), time.Now()
			err := c.raw.Verb(method).AbsPath("/api/v1/nodes/a").Do(t.Context()).Error()
			require.ErrorContains(t, err, "the connection was closed before an answer came")
			require.ErrorIs(t, err, syscall.ECONNRESET)
			why, unavailable := Unavailable(err)
			require.True(t, unavailable)
			require.Equal(t, "the connection was closed before an answer came", why)
			require.Equal(t, want, tries, method)
			require.Equal(t, time.Duration(want-1)*time.Second, time.Since(began))
		})
	}
}

// A server that does not answer is left after the time limit.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := client(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), time.Now()
		why, unavailable := Unavailable(c.Ready(t.Context()))
		require.True(t, unavailable)
		require.Equal(t, "no answer", why)
		require.Equal(t, requestTimeout, time.Since(began))
	})
}

func client(t *testing.T, answer answering) *Client {
	t.Helper()
	c, err := New(Access{Server: "https://example.com"}, func(Access) http.RoundTripper { return answer }, func(rt http.RoundTripper) http.RoundTripper { return rt }, nil)
	require.NoError(t, err)
	return c
}
