package cli

import (
	"net"
	"net/http"
)

// brief is an HTTP client with a short timeout. It has its own transport: the
// metadata service is never behind a proxy.
type brief struct{}

// Do sends one request.
func (*brief) Do(r *http.Request) (*http.Response, error) {
	client := http.Client{
		Timeout: metadataTimeout,
		Transport: &http.Transport{
			DialContext:       (&net.Dialer{Timeout: metadataTimeout}).DialContext,
			DisableKeepAlives: true,
		},
	}
	return client.Do(r) //nolint:gosec // the SDK sets the address, that of the metadata service
}
