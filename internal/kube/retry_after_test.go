package kube

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// A server that asks for an hour is not waited for; one that asks for a second is.
func TestLongRetryAfterIsNotWaitedFor(t *testing.T) {
	for asked, want := range map[string]string{"3600": "", "1": "1", "": ""} {
		rt := &impatient{answering(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {asked}}, Body: http.NoBody}, nil
		})}
		answer, err := rt.RoundTrip(&http.Request{})
		require.NoError(t, err)
		require.Equal(t, want, answer.Header.Get("Retry-After"))
		require.NoError(t, answer.Body.Close())
	}
}
