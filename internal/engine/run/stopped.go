package run

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// checkStopped refuses to work on a cluster that "cluster stop" has stopped: the plan would replace its machines and raise its pools. A
// run knows it from its lock. A plan, which takes none, reads the record if a machine is stopped or a pool is empty.
func (l *Looking) checkStopped(ctx context.Context) error {
	var stopped *cloud.Stopped
	switch {
	case l.Stopped != nil:
	case l.Cloud.Lock != nil:
		stopped = l.Cloud.Lock.Stopped()
	case l.looksStopped():
		last, err := l.Cloud.LastRun(cloud.InSnapshot(cloud.ReadOnly(ctx)))
		if err != nil && !cloud.Denied(err) {
			return err
		}
		if last != nil {
			stopped = last.Stopped
		}
	}
	if stopped != nil {
		l.Stopped = &stopped.Since
	}
	if l.Stopped == nil || l.Shows {
		return nil
	}
	return &plan.RefusedError{Reasons: []error{&plan.StoppedError{Cluster: l.Cluster.Name, Since: *l.Stopped}}}
}

// looksStopped reports whether a machine is stopped, or a pool is empty.
func (l *Looking) looksStopped() bool {
	if slices.ContainsFunc(l.Inventory.Machines, func(m ec2.InstanceState) bool { return m.Stopped }) {
		return true
	}
	for _, n := range l.Built.Resources() {
		switch have := n.Observed().(type) {
		case *autoscaling.GroupState:
			if have.Max == 0 {
				return true
			}
		case *eks.NodeGroupState:
			if have.MinSize == 0 && have.Desired == 0 {
				return true
			}
		}
	}
	return false
}

// unlessStopped returns a step that asks the API server, which does not answer while the cluster is stopped.
func (l *Looking) unlessStopped(step func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if l.Stopped != nil {
			return nil
		}
		return step(ctx)
	}
}
