package reconcile

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Stop stops the machines of the cluster and empties its pools. Until Start has ended, Apply and Plan are refused with a
// StoppedError. It can be interrupted at any time, and run again.
func (c *Cluster) Stop(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return c.run.Stop(ctx, o)
}

// Start starts the machines that Stop has stopped, and restores the sizes of the pools. It can be interrupted at any time, and run
// again.
func (c *Cluster) Start(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return c.run.Start(ctx, o)
}

// PlanStop returns what Stop would do. It changes nothing. If Stop would be refused, the error is a RefusedError, and the plan is
// returned with it.
func (c *Cluster) PlanStop(ctx context.Context) (plan.Plan, error) { return c.run.PlanStop(ctx) }

// PlanStart returns what Start would do. It changes nothing.
func (c *Cluster) PlanStart(ctx context.Context) (plan.Plan, error) { return c.run.PlanStart(ctx) }
