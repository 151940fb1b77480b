package reconcile

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// checkHealth evaluates the MachineHealthChecks of the manifest. If machines are to be
// replaced, it plans again. The checks need the Nodes of the cluster, and how to reach its
// API server is known only after the first plan.
func (r *run) checkHealth(ctx context.Context) error {
	switch {
	case r.c.manifest == nil || len(r.c.manifest.HealthChecks) == 0:
		return nil
	case r.built.API == nil || !r.c.target.Drain:
		r.warn("MachineHealthChecks are not evaluated with --wait=infrastructure or --drain=false")
		return nil
	}
	reading := cloud.InSnapshot(cloud.ReadOnly(ctx))
	nodes, err := incluster.Nodes(reading, r.cloud, r.built.API)
	if err != nil {
		return ctx.Err() // the API server does not answer, which the plan says
	}
	health := topology.CheckHealth(r.c.manifest, r.inventory, nodes, r.topologyOptions(ctx))
	for _, remark := range health.Remarks {
		r.warn("%s", remark)
	}
	if len(health.Unhealthy) == 0 {
		return nil
	}
	r.inventory.Unhealthy = health.Unhealthy
	if err := r.buildFrom(ctx); err != nil {
		return err
	}
	r.plan, err = r.x.Plan(ctx, r.built.Graph)
	return err
}

// becameUnhealthy reports whether a run has failed only because of Nodes, and the
// MachineHealthChecks of the manifest now replace some of their machines. It plans again.
func (r *run) becameUnhealthy(ctx context.Context, failure error) (bool, error) {
	all, ok := failure.(interface{ Unwrap() []error })
	if !ok || len(r.c.manifest.HealthChecks) == 0 || slices.ContainsFunc(all.Unwrap(), otherThanNodes) {
		return false, nil
	}
	if err := r.look(ctx); err != nil {
		return false, err
	}
	return len(r.inventory.Unhealthy) > 0, nil
}

// otherThanNodes reports whether the cause of an error is not a Node that was not ready in time.
func otherThanNodes(err error) bool {
	failed := gaveUp(err)
	return failed == nil || failed.Resource.Kind() != "node"
}
