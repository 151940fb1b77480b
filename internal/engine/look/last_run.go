package look

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// LastRun returns the last run on the cluster, if it works on it or has not finished; nil otherwise, and if
// the caller may not read the lock. It is for a cluster that has resources.
func LastRun(ctx context.Context, c *run.Cluster) *cluster.LastRun {
	return lastRun(ctx, run.Begin(c, nil).Cloud)
}

func lastRun(ctx context.Context, c *cloud.Clients) *cluster.LastRun {
	last, err := c.LastRun(cloud.ReadOnly(ctx))
	if err != nil || last == nil {
		return nil
	}
	return unfinished(last)
}

// unfinished returns the run of a record, if it works on the cluster or has not finished.
func unfinished(last *cloud.Holder) *cluster.LastRun {
	out := &cluster.LastRun{Command: last.Command, Who: last.Who, Since: last.Since}
	switch {
	case last.Alive():
		out.State = cluster.RunActive
	case !last.Released:
		out.State = cluster.RunInterrupted
	case last.Command == cloud.DeleteCommand: // it removes its record when nothing is left
		out.State = cluster.RunUnfinished
	default:
		return nil
	}
	return out
}

// readRecord adds to the status of a cluster that has resources what the record of the last run says.
func (v *view) readRecord(ctx context.Context, s *cluster.Status) {
	if len(v.Plan.Steps) == 0 {
		return
	}
	last, err := v.Cloud.LastRun(cloud.ReadOnly(ctx))
	if err != nil || last == nil {
		return
	}
	if s.LastRun = unfinished(last); last.Stopped != nil {
		s.Stopped = &last.Stopped.Since
	}
}
