package kube

import (
	"context"
	"net/http"
)

// Helm is the program helm (cluster.Helm).
type Helm interface {
	// Version returns the version, such as "v3.19.0"; an error says that there is none that can be used.
	Version(ctx context.Context) (string, error)
	// Run runs a command with text on its standard input. It reaches the API server by a transport that
	// has the credentials, at an address such as "https://host:port".
	Run(ctx context.Context, args []string, stdin []byte, server string, api http.RoundTripper) error
}

// Via returns the address of the API server, and a transport for requests to it that has the credentials, checks the
// lock, and has no time limit.
func (c *Client) Via() (server string, api http.RoundTripper) { return c.server, c.upgrades.Transport }
