// Package adopt moves clusters between this program and others: it makes manifests of clusters that exist
// in AWS, gives clusters to management clusters of Cluster API, and takes them back.
package adopt

import (
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// looking is a look at a cluster that comes from another tool, or goes to one.
type looking struct{ *run.Looking }

func begin(c *run.Cluster, observe func(plan.Event)) *looking {
	return &looking{&run.Looking{Session: run.Begin(c, observe)}}
}

// result returns what the run has done.
func (l *looking) result(err error) (cluster.Result, error) { return l.Result(l.PublicPlan(), err) }
