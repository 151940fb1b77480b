package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Deleting is the phase that deletes: it finds what there is, by manifest and by tag, decides what
// is kept, and proves at the end that nothing is left.
type Deleting struct {
	*Looking
	options cluster.Options

	policies map[string]string // reclaim policies by volume ID
	vpcs     map[string]bool   // the VPCs of the cluster
	absent   []cluster.Absence // what the deletion has proved
	again    bool              // it has deleted what the manifest does not name
	shown    bool              // a user sees the plan: it lists also what the manifest does not name
}

// NewDeleting returns the phase for a session.
func NewDeleting(s *Session, o cluster.Options) *Deleting {
	return &Deleting{Looking: &Looking{Session: s}, options: o}
}

// PlanDelete returns what Delete would do. It changes nothing. Kept volumes are in the
// plan, with the action Keep.
func (c *Cluster) PlanDelete(ctx context.Context, o cluster.Options) (plan.Plan, error) {
	d := NewDeleting(Begin(c, o.Observe), o)
	d.shown = true
	err := d.lookToDelete(ctx, c.Target.AskCluster)
	return d.public(), err
}

// Delete deletes all resources of the cluster, and then looks for all of them again; those
// that still exist are a LeftoverError.
func (c *Cluster) Delete(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	d := NewDeleting(Begin(c, o.Observe), o)
	d.shown = o.Confirm != nil
	if err := d.Lock(ctx, cloud.DeleteCommand); err != nil {
		return d.result(err)
	}
	defer d.Unlock(ctx)
	if err := d.lookToDelete(ctx, c.Target.AskCluster); err != nil {
		return d.result(err)
	}
	if err := d.CheckManager(); err != nil {
		return d.result(err)
	}
	if err := d.confirmed(o.Confirm, d.public()); err != nil {
		return d.result(err)
	}
	if d.Plan.Empty() {
		if d.awaitRequests(ctx) {
			if err := d.findLate(ctx); err != nil {
				return d.result(err)
			}
		}
		d.deleted = true
		res, err := d.result(nil)
		res.NotFound = len(d.Plan.Steps) == 0 && d.Cloud.Lock.IsFirst()
		return res, err
	}
	d.markVolumes(ctx)
	d.executor.Stuck = d.lookForForeign
	if err := d.executor.Delete(ctx, d.Built.Graph); err != nil {
		return d.result(d.stuck(ctx, err))
	}
	prove := d.proveAbsence
	if d.awaitRequests(ctx) {
		prove = d.findLate
	}
	if err := prove(ctx); err != nil {
		return d.result(err)
	}
	d.deleted = true
	return d.result(nil)
}

// public returns the plan with the resources of the graph, and the time that it takes.
func (d *Deleting) public() plan.Plan { return d.withGraph((*graph.Graph).DeleteTime) }

// result returns what the run has done.
func (d *Deleting) result(err error) (cluster.Result, error) {
	res, err := d.Result(d.public(), err)
	res.Absent = d.absent
	return res, err
}

// awaitRequests waits until no request of a deletion, or of a killed run before it, can reach
// AWS any more. It reports whether it has waited.
func (d *Deleting) awaitRequests(ctx context.Context) (waited bool) {
	d.Cloud.Lock.AwaitRequests(ctx, func(left time.Duration) {
		waited = true
		d.Warn("everything is deleted; waiting %s before the lock is released: AWS may still carry out a request of this run, or of one that was killed",
			left.Round(time.Second))
	})
	return waited
}

// lookToDelete plans the deletion, and returns an error if the cluster must not be deleted.
func (d *Deleting) lookToDelete(ctx context.Context, ask bool) error {
	if err := d.checkDeletionProtection(ctx); err != nil {
		return Refused(err)
	}
	kept, err := d.look(ctx, ask)
	if err != nil {
		return err
	}
	d.warnOfLogs()
	if err := d.checkProtection(ctx); err != nil {
		return Refused(err)
	}
	if err := d.checkWantedProtection(); err != nil {
		return Refused(err)
	}
	return Refused(d.findForeign(ctx, kept))
}

// Look builds the graph of the existing resources, by manifest and by tag, and
// plans its deletion. If ask is true, it also asks the API server of the cluster for the Services,
// Ingresses and volume claims for which controllers have created resources in AWS.
func (d *Deleting) Look(ctx context.Context, ask bool) error {
	_, err := d.look(ctx, ask)
	return err
}

// look is Look, and returns the resources that the deletion leaves.
func (d *Deleting) look(ctx context.Context, ask bool) (kept teardown.Leftovers, err error) {
	if err := CheckName(d.Cluster.Name); err != nil {
		return nil, &plan.RefusedError{Reasons: []error{err}}
	}
	if err := d.graphOfManifest(ctx); err != nil {
		return nil, Refused(err)
	}
	all, err := d.searchByTag(ctx)
	if err != nil {
		return nil, Refused(err)
	}
	if d.vpcs, err = d.clusterVPCs(all); err != nil {
		return nil, Refused(err)
	}
	api, err := d.connect(ctx, ask)
	if err == nil && api != nil {
		err = d.readPolicies(ctx, api, all)
	}
	if err != nil {
		return nil, err
	}
	all, kept = d.split(all)
	teardown.Add(d.Built.Graph, all)
	d.askCluster(ctx, api)
	if d.Plan, err = d.executor.PlanDelete(ctx, d.Built.Graph); err != nil {
		return nil, Refused(err)
	}
	d.Plan.Steps = slices.DeleteFunc(d.Plan.Steps, func(s plan.Step) bool { return s.Action == plan.Keep })
	for _, v := range kept {
		d.Plan.Steps = append(d.Plan.Steps, plan.Step{Resource: plan.ID(v.Kind.Name + "/" + v.ID), Action: plan.Keep, CloudID: v.ID, Origin: v.Origin})
	}
	setAreas(d.Plan.Steps)
	return kept, nil
}

// warnOfLogs warns about the logs of an EKS cluster, which EKS keeps.
func (d *Deleting) warnOfLogs() {
	for _, n := range d.Built.Resources() {
		if s, ok := n.Observed().(*eks.ClusterState); ok && len(s.Logging) > 0 {
			d.Warn(
				"EKS keeps the logs of the control plane: aws logs delete-log-group --region %s --log-group-name /aws/eks/%s/cluster deletes them",
				d.Cluster.Region,
				s.Name,
			)
		}
	}
}

// graphOfManifest finds the resources of the manifest. If it cannot, because the manifest
// or the account is damaged, all resources are found by their tags.
func (d *Deleting) graphOfManifest(ctx context.Context) error {
	err := d.build(ctx, identity)
	hopeless := errors.As(err, new(*topology.NamespaceError))
	if errors.As(err, new(*plan.RefusedError)) && !hopeless {
		d.Warn("the manifest does not match the account (%v); its resources are found by their tags", err)
		d.Built = topology.Cluster{Graph: graph.New()}
	} else if err != nil {
		return err
	}
	_, err = d.executor.PlanDelete(ctx, d.Built.Graph)
	if err = Refused(err); errors.As(err, new(*plan.RefusedError)) && !cloud.Denied(err) {
		d.Warn("resources of the manifest cannot be told apart (%v); all are found by their tags", err)
		d.Built = topology.Cluster{Graph: graph.New()}
		return nil
	}
	return err
}

// searchByTag finds the resources with the tags of the cluster that are not in the graph.
func (d *Deleting) searchByTag(ctx context.Context) (teardown.Leftovers, error) {
	all, owner, err := teardown.Search(cloud.InSnapshot(cloud.ReadOnly(ctx)), d.Cloud, d.Owner, teardown.Claimed(d.Built.Graph), d.shown)
	if err != nil {
		return nil, err
	}
	if d.Owner = owner; owner.Shared {
		d.Warn("resources that controllers of a cluster named %s created are not deleted: another cluster uses that name in its tags", d.Cluster.Name)
	}
	return all, nil
}

// findForeign returns a ForeignError if there are resources of other owners that prevent
// the deletion.
func (d *Deleting) findForeign(ctx context.Context, kept teardown.Leftovers) error {
	all, err := teardown.FindForeign(cloud.InSnapshot(cloud.ReadOnly(ctx)), d.Cloud, d.Built.Graph, d.Owner, kept)
	if err != nil || len(all) == 0 {
		return err
	}
	return &plan.ForeignError{Resources: all}
}

// lookForForeign returns a ForeignError if resources of other owners have appeared since the
// plan: only the user can end what the deletion waits for.
func (d *Deleting) lookForForeign(ctx context.Context) error {
	d.Cloud.Snapshot()
	var foreign *plan.ForeignError
	if errors.As(d.findForeign(ctx, nil), &foreign) {
		return foreign
	}
	return nil
}

// stuck returns the error of a deletion that has failed. If resources of other owners
// have appeared since the plan, it is a LeftoverError that names them.
func (d *Deleting) stuck(ctx context.Context, err error) error {
	var foreign *plan.ForeignError
	if !errors.As(err, &foreign) {
		if !errors.As(err, new(*plan.TimeoutError)) {
			return err
		}
		d.Cloud.Snapshot()
		if !errors.As(d.findForeign(ctx, nil), &foreign) {
			return err
		}
		err = errors.Join(err, foreign)
	}
	left := &plan.LeftoverError{Err: err}
	for _, f := range foreign.Resources {
		left.Left = append(left.Left, f.ID)
	}
	return left
}
