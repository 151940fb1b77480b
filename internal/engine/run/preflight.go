package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/quota"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// preflight finds what would stop the run half way: conflicts, exceeded quotas and missing
// permissions.
func (p *planning) preflight(ctx context.Context) error {
	reasons, permissions := p.conflicts(), p.checkPermissions(ctx)
	control := func(id plan.ID) bool { return AreaOf(id, p.Built.Graph.Resource(id).Origin()) == plan.AreaControlPlane }
	report, err := quota.Check(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud, p.Built.Graph, p.Plan, control)
	if err != nil {
		return err
	}
	if report.Short {
		p.launchControlPlaneFirst(control)
	}
	p.quotas = report.Lines
	for _, w := range report.Warnings {
		p.Warn("%s", w)
	}
	p.warnOfKeyReaders(ctx)
	reasons = append(reasons, p.refusals(ctx)...)
	reasons = append(reasons, p.refusedParts(ctx)...)
	p.warnOfDoubts(ctx)
	p.warnOfAbsent(reasons)
	p.warnOfLostDaemonSets(ctx)
	p.warnOfNodeClasses(ctx)
	reasons = append(reasons, quota.Addresses(p.Built.Graph, p.Plan)...)
	for _, reason := range quota.Placements(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud, p.Built.Graph, p.Plan) {
		reason.Origin = p.locate(reason.Origin, reason.Err)
		reasons = append(reasons, reason)
	}
	reasons = append(reasons, p.refusedKey(ctx)...)
	reasons = append(reasons, p.overlaps()...)
	reasons = append(reasons, p.checkRequests(ctx)...)
	reasons = append(reasons, report.Reasons...)
	if reasons = append(reasons, permissions()...); len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// launchControlPlaneFirst lets all other machines wait for those of the control plane, which could otherwise come too late for the
// last vCPUs of a quota.
func (p *planning) launchControlPlaneFirst(control func(plan.ID) bool) {
	var first, others []graph.Resource
	for _, s := range p.Plan.Steps {
		r := p.Built.Resource(s.Resource)
		if _, launches := r.Desired().(ec2.Launcher); !launches || s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		if control(s.Resource) {
			first = append(first, r)
		} else {
			others = append(others, r)
		}
	}
	for _, r := range others {
		p.Built.Postpone(r, first)
	}
}

// refusals lists the reasons for which AWS would reject resources of the plan. If a check
// fails, that is a warning; of a read that is denied, once.
func (p *planning) refusals(ctx context.Context) (reasons []error) {
	unread := map[string]bool{} // what was warned of: resources share reads
	told := map[string]bool{}   // machines of a group have the same refusals
	for _, s := range p.Plan.Steps {
		refusal, err := "", error(nil)
		for _, check := range checksOf(p.Built.Graph.Resource(s.Resource).Desired(), s.Action) {
			if refusal, err = check(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud); refusal != "" || err != nil {
				break
			}
		}
		switch {
		case refusal != "":
			at := p.locate(s.Origin, errors.New(refusal))
			if at == "" || !told[at+refusal] {
				reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: at, Err: errors.New(refusal)})
			}
			told[at+refusal] = true
		case err != nil && ctx.Err() == nil && !unread[unreadable(err)]:
			unread[unreadable(err)] = true
			p.Warn("%s: AWS cannot be asked whether it accepts this: %v", s.Resource, err)
		}
	}
	return reasons
}

// refusedParts lists the parts of resources that would be refused: objects in the cluster that its API server does not accept.
func (p *planning) refusedParts(ctx context.Context) (reasons []error) {
	for _, s := range p.Plan.Steps {
		n := p.Built.Resource(s.Resource)
		r, ok := n.Desired().(graph.CheckedParts)
		if !ok || s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		objections, err := r.CheckParts(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud, n.Observed())
		if err != nil && ctx.Err() == nil {
			p.Warn("%s: the API server cannot be asked whether it accepts this: %v", s.Resource, err)
		}
		for _, o := range objections {
			if o.Doubt {
				p.Warn("%s: %v", o.Origin, o.Err)
			} else {
				reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: o.Origin, Err: o.Err})
			}
		}
	}
	return reasons
}

// warnOfDoubts warns of resources that AWS accepts although they will not work as intended. It warns of nothing if AWS does
// not answer.
func (p *planning) warnOfDoubts(ctx context.Context) {
	told := map[string]bool{} // machines of a group have the same
	for _, s := range p.Plan.Steps {
		r, ok := p.Built.Graph.Resource(s.Resource).Desired().(graph.Doubted)
		if !ok || s.Action != plan.Create && s.Action != plan.Update && s.Action != plan.Await {
			continue
		}
		warnings, err := r.Doubts(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud)
		if err != nil {
			continue
		}
		for _, w := range warnings {
			at := s.Origin
			if s.Action != plan.Await { // the warning names the object that is awaited
				at = p.locate(s.Origin, errors.New(w))
			}
			if !told[at+w] {
				p.Warn("%s: %s", at, w)
			}
			told[at+w] = true
		}
	}
}

// warnOfAbsent names what machines of pools do not start with any more, unless the plan is refused because of it: a pool also launches machines
// by itself.
func (p *planning) warnOfAbsent(reasons []error) {
	for _, r := range p.Built.Resources() {
		s, is := r.Observed().(ec2.Absentee)
		if !is || s.Absent() == "" || slices.ContainsFunc(reasons, func(err error) bool { return strings.Contains(err.Error(), s.Absent()) }) {
			continue
		}
		p.Warn("%s: %s: machines run on without it, and no other one starts, also if the pool replaces or adds one by itself", r.Origin(), s.Absent())
	}
}

// checksOf returns the checks of a resource before an action.
func checksOf(desired any, action plan.Action) (checks []func(context.Context, *cloud.Clients) (refusal string, err error)) {
	if r, ok := desired.(graph.CheckedCreation); ok && action == plan.Create {
		checks = append(checks, r.CheckCreation)
	}
	if r, ok := desired.(graph.Checked); ok && (action == plan.Create || action == plan.Update) {
		checks = append(checks, r.Check)
	}
	if r, ok := desired.(graph.CheckedDeletion); ok && action == plan.Remove {
		checks = append(checks, r.CheckDeletion)
	}
	return checks
}

// unreadable is what the warning about a failed check is about: the action that is denied, or the error.
func unreadable(err error) string {
	if cloud.Denied(err) {
		return DeniedActions(err)
	}
	return err.Error()
}

// refusedKey says why AWS cannot encrypt the keys of the cluster with --kms-key. It warns if the run stores no secret
// that would be encrypted with it.
func (p *planning) refusedKey(ctx context.Context) []error {
	key := p.Cloud.KMSKey
	refusal, err := kms.Refusal(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud, key)
	stores := func(s plan.Step) bool { return s.Resource.Kind() == secrets.PKIKind && s.Action == plan.Create }
	switch {
	case key == "":
	case refusal != "":
		return []error{errors.New("--kms-key: " + refusal)}
	case err != nil && ctx.Err() == nil:
		p.Warn("--kms-key: AWS cannot be asked whether the key can be used: %v", err)
	case p.Cluster.IsEKS():
		p.Warn("--kms-key has no effect: it is for the keys of clusters with kubeadm; EKS has spec.encryptionConfig")
	case !slices.ContainsFunc(p.Plan.Steps, stores):
		p.warnOfOtherKey(ctx, key)
	}
	return nil
}

// warnOfOtherKey warns if the keys of the cluster are stored with another KMS key than --kms-key. Without the permission
// to ask for it, nothing is said.
func (p *planning) warnOfOtherKey(ctx context.Context, key string) {
	other, err := secrets.OtherKey(cloud.InSnapshot(cloud.ReadOnly(ctx)), p.Cloud, key)
	if other != "" && err == nil {
		p.Warn(
			"--kms-key has no effect on the keys of the cluster, which are stored already, encrypted with %s: only join tokens that runs create are encrypted with it",
			other,
		)
	}
}

// conflicts lists the differences that cannot be changed.
func (p *planning) conflicts() (reasons []error) {
	for _, s := range p.Plan.Conflicts() {
		for _, d := range s.Diff {
			if d.Remedy == plan.Replace {
				err, at := &plan.ConflictError{Change: d}, s.Origin
				if d.Field != "status" && d.Field != "owner" { // of which the manifest has no field
					bare := d
					bare.Advice = ""
					at = p.locate(s.Origin, errors.New(bare.String())) // the advice names other fields
				}
				reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: at, Err: err})
			}
		}
	}
	return reasons
}
