package run

import (
	"context"
	"errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/quota"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// preflight finds what would stop the run half way: conflicts, exceeded quotas and missing
// permissions.
func (p *planning) preflight(ctx context.Context) error {
	reasons, permissions := conflicts(p.Plan), p.checkPermissions(ctx)
	report, err := quota.Check(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud, p.Built.Graph, p.Plan, func(id plan.ID) bool {
		return AreaOf(id, p.Built.Graph.Resource(id).Origin()) == plan.AreaControlPlane
	})
	if err != nil {
		return err
	}
	p.quotas = report.Lines
	for _, w := range report.Warnings {
		p.Warn("%s", w)
	}
	p.warnOfKeyReaders(ctx)
	reasons = append(reasons, p.refusals(ctx)...)
	reasons = append(reasons, report.Reasons...)
	if reasons = append(reasons, permissions()...); len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// refusals lists the reasons for which AWS would reject resources of the plan. If a check
// fails, that is a warning.
func (p *planning) refusals(ctx context.Context) (reasons []error) {
	for _, s := range p.Plan.Steps {
		if s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		checked, ok := p.Built.Graph.Resource(s.Resource).Desired().(graph.Checked)
		if !ok {
			continue
		}
		refusal, err := checked.Check(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud)
		switch {
		case refusal != "":
			reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: s.Origin, Err: errors.New(refusal)})
		case err != nil && ctx.Err() == nil:
			p.Warn("%s: AWS cannot be asked whether it accepts this: %v", s.Resource, err)
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
