package reconcile

import (
	"context"
	"errors"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/quota"
)

// preflight finds what would stop the run half way: conflicts, exceeded quotas and missing
// permissions.
func (r *run) preflight(ctx context.Context) error {
	reasons, permissions := conflicts(r.plan), r.checkPermissions(ctx)
	report, err := quota.Check(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud, r.built.Graph, r.plan, func(id plan.ID) bool {
		return AreaOf(id, r.built.Graph.Resource(id).Origin()) == plan.AreaControlPlane
	})
	if err != nil {
		return err
	}
	r.quotas = report.Lines
	for _, w := range report.Warnings {
		r.warn("%s", w)
	}
	r.warnOfKeyReaders(ctx)
	reasons = append(reasons, r.refusals(ctx)...)
	reasons = append(reasons, report.Reasons...)
	if reasons = append(reasons, permissions()...); len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// refusals lists the reasons for which AWS would reject resources of the plan. If a check
// fails, that is a warning.
func (r *run) refusals(ctx context.Context) (reasons []error) {
	for _, s := range r.plan.Steps {
		if s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		checked, ok := r.built.Graph.Resource(s.Resource).Desired().(graph.Checked)
		if !ok {
			continue
		}
		refusal, err := checked.Check(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud)
		switch {
		case refusal != "":
			reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: s.Origin, Err: errors.New(refusal)})
		case err != nil && ctx.Err() == nil:
			r.warn("%s: AWS cannot be asked whether it accepts this: %v", s.Resource, err)
		}
	}
	return reasons
}

// conflicts lists the differences that cannot be changed.
func conflicts(p plan.Plan) (reasons []error) {
	for _, s := range p.Conflicts() {
		for _, d := range s.Diff {
			if d.Remedy == plan.Replace {
				reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: s.Origin, Err: &plan.ConflictError{Change: d}})
			}
		}
	}
	return reasons
}
