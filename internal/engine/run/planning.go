package run

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// planning is the phase between the look and the first write: it finds what would stop the run
// half way, and adds to the plan what the user wants to know before he confirms it.
type planning struct {
	*Looking
	only    bool // nothing is applied
	quotas  []plan.Quota
	allowed *plan.Permissions // nil: not in the plan
}

// Plan returns what Apply would do. It changes nothing. If Apply would be refused, the
// error is a RefusedError, and the plan is returned with it.
func (c *Cluster) Plan(ctx context.Context) (plan.Plan, error) {
	p := &planning{Looking: &Looking{Session: Begin(c, nil), pricing: newPricing(c.Target.Cost)}, only: true}
	defer p.pricing.stop()
	err := p.Look(ctx)
	if err == nil {
		err = p.preflight(ctx)
		p.pricing.finish(p.Looking)
	}
	if err == nil {
		_, err = p.prepareBackup(ctx)
	}
	return p.public(), err
}

// public returns the plan with all that is known about it.
func (p *planning) public() plan.Plan {
	out := p.PublicPlan()
	out.Quotas, out.Permissions, out.Cost = p.quotas, p.allowed, p.pricing.found()
	return out
}

// result returns what the run has done.
func (p *planning) result(err error) (cluster.Result, error) {
	if err == nil && (p.Cluster.Target.Wait == plan.NodesReady || p.Cluster.IsEKS()) {
		p.worked = p.Cloud.Now()
	}
	p.done = err == nil
	return p.Result(p.public(), err)
}
