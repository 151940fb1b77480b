package kube

import (
	"net/http"
	"strconv"
	"time"
)

// longestRetryAfter is how long a request is put off because the server asks for it. client-go
// waits for as long as the header says, and says nothing meanwhile.
const longestRetryAfter = 30 * time.Second

// impatient removes headers that ask for a longer wait: the answer is then the error that it is.
type impatient struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		if s, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && time.Duration(s)*time.Second > longestRetryAfter {
			answer.Header.Del("Retry-After")
		}
	}
	return answer, err
}
