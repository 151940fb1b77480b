package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// longestRetryAfter is how long a request is put off because the server asks for it. client-go
// waits for as long as the header says, and says nothing meanwhile.
const longestRetryAfter = 30 * time.Second

// A read whose connection ends without an answer is repeated this often, with these pauses. All fit into requestTimeout.
const (
	lostReads     = 5
	pauseOfLost   = time.Second
	whatLostReads = "the connection was closed before an answer came"
)

// patient repeats reads that got no answer, and ends requests that take too long. client-go would do both, too, but on the system clock: in a
// simulated account, hours may pass meanwhile. It also removes headers that ask for a long wait: the answer is then the error that it is.
type patient struct {
	http.RoundTripper
	clock *clock.Clock
}

// RoundTrip implements http.RoundTripper.
func (t *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for tries := 1; ; tries++ {
		answer, err := t.timed(r)
		if err == nil {
			if s, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && time.Duration(s)*time.Second > longestRetryAfter {
				answer.Header.Del("Retry-After")
			}
			return answer, nil
		}
		if !utilnet.IsConnectionReset(err) && !utilnet.IsProbableEOF(err) && !utilnet.IsHTTP2ConnectionLost(err) {
			return nil, err
		}
		if r.Method != http.MethodGet || r.Body != nil && r.Body != http.NoBody || tries == lostReads || t.clock.Sleep(r.Context(), pauseOfLost) != nil {
			return nil, &lostError{err}
		}
	}
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

func (e *lostError) Error() string { return whatLostReads }

// Is makes errors.Is find the error of the network.
func (e *lostError) Is(target error) bool { return errors.Is(e.err, target) }
