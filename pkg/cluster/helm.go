package cluster

import (
	"context"
	"net/http"
)

// Helm runs the program helm, version 3.14 or newer, for the HelmChartProxies of a manifest.
type Helm interface {
	// Version returns the version, such as "v3.19.0"; an error says that there is none that can be used.
	Version(ctx context.Context) (string, error)
	// Run runs a command with text on its standard input, which may contain secrets. helm reaches the API
	// server of the cluster, at server ("https://host:port"), only by api, which has the credentials. An
	// error has what helm has written to standard error.
	Run(ctx context.Context, args []string, stdin []byte, server string, api http.RoundTripper) error
}
