package reconcile

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/quota"
)

// preflight finds what would stop the run half way: conflicts and exceeded quotas.
func (r *run) preflight(ctx context.Context) error {
	reasons := conflicts(r.plan)
	report, err := quota.Check(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud, r.built.Graph, r.plan, func(id graph.ID) bool {
		return AreaOf(ID(id), r.built.Graph.Resource(id).Origin()) == AreaControlPlane
	})
	if err != nil {
		return err
	}
	r.quotas = report.Lines
	for _, w := range report.Warnings {
		r.warn("%s", w)
	}
	r.warnOfKeyReaders(ctx)
	if reasons = append(reasons, report.Reasons...); len(reasons) > 0 {
		return &RefusedError{reasons}
	}
	return nil
}

// conflicts lists the differences that cannot be changed.
func conflicts(p graph.Plan) (reasons []error) {
	for _, s := range p.Conflicts() {
		for _, d := range s.Diff {
			if d.Remedy == graph.Replace {
				reasons = append(reasons, &graph.ResourceError{Resource: s.Resource, Origin: s.Origin, Err: &graph.ConflictError{Change: d}})
			}
		}
	}
	return reasons
}
