package run

import (
	"context"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// checkStopped returns an error if "cluster stop" has stopped the cluster: the plan would replace its machines and enlarge its pools. A
// run knows this from its lock. A plan takes no lock, so it reads the record if a machine is stopped or a pool is empty.
func (l *Looking) checkStopped(ctx context.Context) error {
	var stopped *cloud.Stopped
	switch {
	case l.Stopped != nil:
	case l.Cloud.Lock != nil:
		stopped = l.Cloud.Lock.Stopped()
	case l.looksStopped():
		last, err := l.lastRun(ctx)
		if err != nil {
			return err
		}
		stopped = last.Stopped
	}
	if stopped != nil && l.Stopped == nil && !l.Shows && l.runsAgain(stopped) {
		if planned := len(l.Plan.Steps) > 0; planned { // before, the sizes of pools are not known
			l.startedByHand = true
			l.Warn("the machines of cluster %s, which was stopped at %s, run again: it counts as started", l.Cluster.Name, stopped.Since.UTC().Format(time.RFC3339))
		}
		return nil
	}
	if stopped != nil {
		l.Stopped = &stopped.Since
	}
	if l.Stopped == nil || l.Shows {
		return nil
	}
	return &plan.RefusedError{Reasons: []error{&plan.StoppedError{Cluster: l.Cluster.Name, Region: l.Cluster.Region, Since: *l.Stopped}}}
}

// lastRun reads the record of the last run, for a plan, which takes no lock. It is empty if there is none, or if the caller may not read it.
func (l *Looking) lastRun(ctx context.Context) (cloud.Holder, error) {
	last, err := l.Cloud.LastRun(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	switch {
	case err != nil && !cloud.Denied(err):
		return cloud.Holder{}, err
	case last == nil:
		return cloud.Holder{}, nil
	}
	return *last, nil
}

// runsAgain reports whether the machines of a cluster that was stopped run: somebody has started them, or "cluster start" has, and then failed
// because of what happened to the cluster meanwhile. A run can then repair it. Pools get the sizes of the manifest if "cluster start" has not come
// to them.
func (l *Looking) runsAgain(stopped *cloud.Stopped) bool {
	isControlPlane := func(m ec2.InstanceState) bool { return m.Tags[cloud.RoleTag] == topology.RoleControlPlane }
	return slices.ContainsFunc(l.Inventory.Machines, isControlPlane) && !l.hasStoppedMachine() && (stopped.Starting || !l.looksStopped())
}

func (l *Looking) hasStoppedMachine() bool {
	return slices.ContainsFunc(l.Inventory.Machines, func(m ec2.InstanceState) bool { return m.Stopped })
}

// looksStopped reports whether a machine is stopped, or a pool is empty. Machines of pools are not in the graph.
func (l *Looking) looksStopped() bool {
	return l.hasStoppedMachine() ||
		slices.ContainsFunc(l.Built.Resources(), func(n graph.Resource) bool { return IsStopped(n.Observed()) })
}

// IsStopped reports whether a resource is a machine that is stopped, or an empty pool.
func IsStopped(state graph.State) bool {
	switch have := state.(type) {
	case *ec2.InstanceState:
		return have.Stopped
	case *autoscaling.GroupState:
		return have.Max == 0
	case *eks.NodeGroupState:
		return have.MinSize == 0 && have.Desired == 0
	}
	return false
}

// unlessStopped returns a step that needs the API server, and that is skipped while the cluster is stopped.
func (l *Looking) unlessStopped(step func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if l.Stopped != nil {
			return nil
		}
		return step(ctx)
	}
}
