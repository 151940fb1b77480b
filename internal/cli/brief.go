package cli

import (
	"net"
	"net/http"
)

// brief is an HTTP client that gives up soon. It makes its own transport: the
// metadata service is never behind a proxy.
type brief struct{}

// Do sends one request.
func (*brief) Do(r *http.Request) (*http.Response, error) {
	client := http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			DialContext:       (&net.Dialer{Timeout: patience}).DialContext,
			DisableKeepAlives: true,
		},
	}
	return client.Do(r) //nolint:gosec // the address is the metadata service's, as the SDK asks for it
}
