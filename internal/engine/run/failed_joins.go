package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// replaceFailedJoins marks machines that have not joined as outdated, so that a rollout
// within the limits of their groups replaces them, and plans again. It reports whether there
// are any, and nothing else is wrong.
func (a applying) replaceFailedJoins(ctx context.Context, failure error) (bool, error) {
	failed := a.failedJoins(ctx, failure)
	if len(failed) == 0 {
		return false, nil
	}
	for _, m := range failed {
		if err := ec2.MarkFailedJoin(ctx, a.Cloud, m); err != nil {
			return false, err
		}
	}
	return true, a.Look(ctx)
}

// failedJoins returns the machines that may be replaced, if they are the only reason why
// a run has failed: their time limit is over, and their consoles say that kubeadm join has failed; on a
// machine of the control plane, after it was a member of etcd: nothing else repairs it.
func (a applying) failedJoins(ctx context.Context, err error) (machines []ec2.InstanceState) {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok || ctx.Err() != nil {
		return nil
	}
	for _, err := range all.Unwrap() {
		m, why := a.failedJoin(ctx, err)
		if why == "" {
			return nil
		}
		a.Warn("%s has not joined the cluster (%s): this run replaces it, once", m.ID, why)
		machines = append(machines, m)
	}
	return machines
}

// failedJoin returns the machine of a Node that has not joined, and what its console
// says; why is "" if the machine is not replaced.
func (a applying) failedJoin(ctx context.Context, err error) (m ec2.InstanceState, why string) {
	failed := gaveUp(err)
	if failed == nil {
		return m, ""
	}
	node, ok := a.Built.Resource(failed.Resource).(*graph.Ref[incluster.NodeState])
	if !ok {
		return m, ""
	}
	want, ok := node.Desired().(*incluster.Node)
	if _, joined := node.Found(); !ok || joined {
		return m, ""
	}
	m, _ = want.Machine.Found()
	why, err = diagnose.JoinFailed(ctx, a.Cloud, want)
	if err != nil || !want.Replaceable && !strings.Contains(why, boot.IsMember) {
		return m, "" // the run ends with the error of the Node
	}
	return m, why
}

// gaveUp returns the error of a resource that was not ready in time; nil for another error.
func gaveUp(err error) (failed *plan.ResourceError) {
	if !errors.As(err, new(*plan.TimeoutError)) || !errors.As(err, &failed) {
		return nil
	}
	return failed
}

// becameUnhealthy plans again after a run that has failed only because of Nodes. It reports whether the new
// plan replaces some of their machines.
func (a applying) becameUnhealthy(ctx context.Context, failure error) (bool, error) {
	all, ok := failure.(interface{ Unwrap() []error })
	if !ok || slices.ContainsFunc(all.Unwrap(), otherThanNodes) {
		return false, nil
	}
	if len(a.Cluster.Manifest.HealthChecks) == 0 {
		if reused, err := a.haveReusedAddresses(ctx, all.Unwrap()); !reused || err != nil {
			return false, ctx.Err() // the run ends with the errors of the Nodes
		}
	}
	if err := a.Look(ctx); err != nil {
		return false, err
	}
	return len(a.Inventory.Unhealthy) > 0, nil
}

// haveReusedAddresses reports whether a machine whose Node was not ready in time has the address of a
// lost one.
func (a applying) haveReusedAddresses(ctx context.Context, failures []error) (bool, error) {
	var machines []ec2.InstanceState
	for _, err := range failures {
		if node, ok := a.Built.Resource(gaveUp(err).Resource).(*graph.Ref[incluster.NodeState]); ok {
			if want, ok := node.Desired().(*incluster.Node); ok {
				if m, ok := want.Machine.Found(); ok {
					machines = append(machines, m)
				}
			}
		}
	}
	reading := cloud.ReadOnly(ctx)
	nodes, err := incluster.Nodes(reading, a.Cloud, a.Built.API)
	if err != nil {
		return false, err
	}
	reused, err := incluster.FindReusedAddresses(reading, a.Cloud, nodes, machines)
	return len(reused) > 0, err
}

// otherThanNodes reports whether the cause of an error is not a Node that was not ready in time.
func otherThanNodes(err error) bool {
	failed := gaveUp(err)
	return failed == nil || failed.Resource.Kind() != incluster.NodeKind
}
