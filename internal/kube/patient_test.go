package kube

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
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
		answer, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api", http.NoBody))
		require.NoError(t, err)
		require.Equal(t, want, answer.Header.Get("Retry-After"))
		require.NoError(t, answer.Body.Close())
	}
}

// A read or a dry run without an answer is repeated on the clock of the run, and a write is not. client-go repeats nothing on the system clock.
func TestLostAnswers(t *testing.T) {
	reset, refused, unknown := &net.OpError{
		Op:  "read",
		Err: syscall.ECONNRESET,
	}, &net.OpError{
		Op:  "dial",
		Err: syscall.ECONNREFUSED,
	}, &net.DNSError{
		Err: "no such host",
	}
	for _, x := range []struct {
		name, method, path string
		answered           bool
		err                error
		tries              int
	}{
		{"lost", http.MethodGet, "/api/v1/nodes/a", true, reset, 4},
		{"refused", http.MethodGet, "/api/v1/nodes/a", true, refused, 4},
		{"unknown name", http.MethodGet, "/api/v1/nodes/a", true, unknown, 4},
		{"not there yet", http.MethodGet, "/api/v1/nodes/a", false, refused, 2},
		{"asked whether it is ready", http.MethodGet, "/readyz", true, refused, 1},
		{"write", http.MethodPatch, "/api/v1/nodes/a", true, reset, 1},
		{"dry run", http.MethodPatch, "/api/v1/nodes/a?dryRun=All", true, reset, 4},
		{"busy", http.MethodGet, "/api/v1/nodes/a", true, nil, 4},
		{"busy and unknown", http.MethodGet, "/api/v1/nodes/a", false, nil, 2},
		{"another error", http.MethodGet, "/api/v1/nodes/a", true, x509.UnknownAuthorityError{}, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				p := &patient{RoundTripper: answering(func(r *http.Request) (*http.Response, error) {
					tries++
					body, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					require.Equal(t, "{}", string(body), "each request has the body")
					if x.err == nil {
						return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody}, nil
					}
					return nil, x.err
				})}
				p.answered.Store(x.answered)
				r, err := http.NewRequestWithContext(t.Context(), x.method, "https://example.com"+x.path, strings.NewReader("{}"))
				require.NoError(t, err)
				began := time.Now()
				_, err = p.RoundTrip(r) //nolint:bodyclose // there is none
				require.Equal(t, x.err == nil, err == nil)
				require.Equal(t, x.tries, tries)
				require.Equal(t, time.Duration(x.tries-1)*time.Second, time.Since(began))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		c := client(t, func(*http.Request) (*http.Response, error) {
			tries++
			return nil, reset
		})
		err := c.Ready(t.Context())
		why, unavailable := Unavailable(err)
		require.True(t, unavailable)
		require.Equal(t, "the connection was closed before an answer came", why)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, 1, tries, "client-go does not repeat it")
	})
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
	c, err := New(
		Access{Server: "https://example.com"},
		func(Access) http.RoundTripper { return answer },
		func(rt http.RoundTripper) http.RoundTripper { return rt },
		nil,
	)
	require.NoError(t, err)
	return c
}
