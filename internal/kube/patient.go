package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// longestRetryAfter is how long a request is put off because the server asks for it. client-go
// waits for as long as the header says, and says nothing meanwhile.
const longestRetryAfter = 30 * time.Second

// How often a read without an answer is sent, with these pauses: a server that has answered before is likely to answer again. Another one may
// not be there yet, and callers wait for it themselves.
const (
	triesOfKnown   = 4
	triesOfUnknown = 2
	pauseOfTries   = time.Second
)

// patient repeats reads that got no answer, and ends requests that take too long. client-go would do both in part, but on the system clock: in a
// simulated account, hours may pass meanwhile. It also removes headers that ask for a long wait: the answer is then the error that it is.
type patient struct {
	http.RoundTripper
	clock    *clock.Clock
	answered atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (t *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for tries := 1; ; tries++ {
		answer, err := t.timed(r)
		if err == nil && isBusy(answer) || err != nil && isOfNetwork(err) {
			if next := t.again(r, tries); next != nil {
				if err == nil {
					_ = answer.Body.Close()
				}
				r = next
				continue
			}
		}
		switch {
		case err == nil:
			t.answered.Store(true)
			if s, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && time.Duration(s)*time.Second > longestRetryAfter {
				answer.Header.Del("Retry-After")
			}
			return answer, nil
		case isLost(err):
			return nil, &lostError{err}
		default:
			return nil, err
		}
	}
}

// isLost reports whether a connection was closed before an answer came.
func isLost(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isOfNetwork reports whether an error says nothing about the request: no connection, no answer, or no address.
func isOfNetwork(err error) bool {
	return isLost(err) || errors.Is(err, errTimeout) || errors.As(err, new(*net.OpError)) || errors.As(err, new(*net.DNSError))
}

// isBusy reports whether an API server answers so when it is overloaded, or has no etcd for a moment, and does not say for how long.
func isBusy(answer *http.Response) bool {
	if answer.Header.Get("Retry-After") != "" {
		return false
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// again waits, and returns the request to send again; nil if it is not repeated.
func (t *patient) again(r *http.Request, tries int) *http.Request {
	if tries >= t.tries(r) {
		return nil
	}
	next := repeated(r)
	if next == nil || t.clock.Sleep(r.Context(), pauseOfTries) != nil {
		return nil
	}
	return next
}

// tries returns how many times a request may be sent.
func (t *patient) tries(r *http.Request) int {
	switch {
	case r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "", r.Header.Get("Upgrade") != "", r.URL.Path == "/readyz":
		return 1
	case t.answered.Load():
		return triesOfKnown
	}
	return triesOfUnknown
}

// repeated returns a copy of a request to be sent again; nil if its body cannot be read again.
func repeated(r *http.Request) *http.Request {
	next := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return next
	}
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	next.Body = body
	return next
}

// timed sends a request with a time limit on the clock, which includes reading the answer. An upgraded connection has none.
func (t *patient) timed(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.RoundTripper.RoundTrip(r)
	}
	ctx, cancel := t.clock.WithTimeout(r.Context(), requestTimeout, errTimeout)
	answer, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		late := context.Cause(ctx)
		cancel()
		if errors.Is(late, errTimeout) {
			err = errTimeout
		}
		return nil, err
	}
	answer.Body = &timedBody{answer.Body, cancel}
	return answer, nil
}

// timedBody ends a time limit when the body is closed.
type timedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *timedBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// errTimeout is the error of a request that took too long.
var errTimeout error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string   { return fmt.Sprintf("no answer in %s", requestTimeout) }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// lostError is an error that client-go does not recognize, so that it does not repeat the request.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the connection was closed before an answer came" }

// Is makes errors.Is find the error of the network.
func (e *lostError) Is(target error) bool { return errors.Is(e.err, target) }
