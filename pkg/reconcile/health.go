package reconcile

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// checkNodes compares the machines with the Nodes of the cluster. If machines are to be replaced, or a
// member of etcd may have no machine, it plans again: how to reach the API server is known only
// after the first plan.
func (r *run) checkNodes(ctx context.Context) error {
	lost, err := r.findLostMembers(ctx)
	if err != nil {
		return err
	}
	unhealthy, err := r.checkHealth(ctx)
	if err != nil || !lost && !unhealthy {
		return err
	}
	if err := r.buildFrom(ctx); err != nil {
		return err
	}
	r.plan, err = r.x.Plan(ctx, r.built.Graph)
	return err
}

// findLostMembers reports whether there are signs that a member of etcd has no machine.
func (r *run) findLostMembers(ctx context.Context) (bool, error) {
	if r.c.manifest == nil || r.c.managed() || r.built.API == nil || !r.c.target.Drain || r.c.target.Wait == plan.Infrastructure {
		return false, nil
	}
	var machines []ec2.InstanceState
	for _, m := range r.inventory.Machines {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane {
			machines = append(machines, m)
		}
	}
	signs, err := incluster.FindLostMembers(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud, r.built.API, machines)
	if err != nil {
		r.unanswered = err
		return false, ctx.Err() // checkQuorum says what that means, or the plan
	}
	r.inventory.LostMembers = signs
	return len(signs) > 0, nil
}

// checkHealth evaluates the MachineHealthChecks of the manifest, looks for machines that have the address of
// a lost one, and reports whether machines are to be replaced.
func (r *run) checkHealth(ctx context.Context) (bool, error) {
	switch {
	case r.c.manifest == nil:
		return false, nil
	case r.built.API == nil || !r.c.target.Drain:
		if len(r.c.manifest.HealthChecks) > 0 {
			r.warn("MachineHealthChecks are not evaluated with --wait=infrastructure or --drain=false")
		}
		return false, nil
	}
	reading := cloud.InSnapshot(cloud.ReadOnly(ctx))
	nodes, err := incluster.Nodes(reading, r.cloud, r.built.API)
	if err != nil {
		return false, ctx.Err() // the API server does not answer, which the plan says
	}
	health := topology.CheckHealth(r.c.manifest, r.inventory, nodes, r.topologyOptions(ctx))
	reused, err := incluster.FindReusedAddresses(reading, r.cloud, nodes, r.inventory.Machines)
	if err != nil {
		return false, err
	}
	health.AddReused(r.c.manifest, r.inventory, nodes, reused, r.topologyOptions(ctx))
	for _, remark := range health.Remarks {
		r.warn("%s", remark)
	}
	r.inventory.Unhealthy = health.Unhealthy
	return len(health.Unhealthy) > 0, nil
}

// becameUnhealthy plans again after a run that has failed only because of Nodes. It reports whether the new
// plan replaces some of their machines.
func (r *run) becameUnhealthy(ctx context.Context, failure error) (bool, error) {
	all, ok := failure.(interface{ Unwrap() []error })
	if !ok || slices.ContainsFunc(all.Unwrap(), otherThanNodes) {
		return false, nil
	}
	if len(r.c.manifest.HealthChecks) == 0 {
		if reused, err := r.haveReusedAddresses(ctx, all.Unwrap()); !reused || err != nil {
			return false, ctx.Err() // the run ends with the errors of the Nodes
		}
	}
	if err := r.look(ctx); err != nil {
		return false, err
	}
	return len(r.inventory.Unhealthy) > 0, nil
}

// haveReusedAddresses reports whether a machine whose Node was not ready in time has the address of a
// lost one.
func (r *run) haveReusedAddresses(ctx context.Context, failures []error) (bool, error) {
	var machines []ec2.InstanceState
	for _, err := range failures {
		if node, ok := r.built.Resource(gaveUp(err).Resource).(*graph.Ref[incluster.NodeState]); ok {
			if want, ok := node.Desired().(*incluster.Node); ok {
				if m, ok := want.Machine.Found(); ok {
					machines = append(machines, m)
				}
			}
		}
	}
	reading := cloud.ReadOnly(ctx)
	nodes, err := incluster.Nodes(reading, r.cloud, r.built.API)
	if err != nil {
		return false, err
	}
	reused, err := incluster.FindReusedAddresses(reading, r.cloud, nodes, machines)
	return len(reused) > 0, err
}

// otherThanNodes reports whether the cause of an error is not a Node that was not ready in time.
func otherThanNodes(err error) bool {
	failed := gaveUp(err)
	return failed == nil || failed.Resource.Kind() != incluster.NodeKind
}
