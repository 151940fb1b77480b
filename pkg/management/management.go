// Package management takes clusters back from management clusters of Cluster API: from their
// controllers to runs of package reconcile. Handovers are in package reconcile.
//
// The exported names of this package change only with the major version of the module.
package management

import (
	"github.com/clusterawsadm/clusterawsadm/internal/management"
)

// Options say how to reach a management cluster.
type Options struct {
	Kubeconfig string // file; "" for that of the environment
	Context    string // in the kubeconfig; "" for the current one
	UserAgent  string // of requests; "" for that of client-go
}

// Cluster is a management cluster.
type Cluster struct{ c *management.Cluster }

// Connect reads a kubeconfig. It makes no request.
func Connect(o Options) (*Cluster, error) {
	c, err := management.Connect(management.Options{Kubeconfig: o.Kubeconfig, Context: o.Context, UserAgent: o.UserAgent})
	if err != nil {
		return nil, err
	}
	return &Cluster{c}, nil
}

// Name names the management cluster: its address and the context.
func (c *Cluster) Name() string { return c.c.Name() }
