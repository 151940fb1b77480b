package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// lookToDelete builds the graph of the existing resources, by manifest and by tag, and
// plans its deletion.
func (r *run) lookToDelete(ctx context.Context) error {
	if err := CheckName(r.c.Name); err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	if err := r.graphOfManifest(ctx); err != nil {
		return refused(err)
	}
	all, err := r.searchByTag(ctx)
	if err != nil {
		return refused(err)
	}
	if r.vpcs, err = r.clusterVPCs(all); err != nil {
		return refused(err)
	}
	api, err := r.connect(ctx)
	if err == nil && api != nil {
		err = r.readPolicies(ctx, api, all)
	}
	if err != nil {
		return err
	}
	all, kept := r.split(all)
	teardown.Add(r.built.Graph, all)
	r.askCluster(api)
	if r.plan, err = r.x.PlanDelete(ctx, r.built.Graph); err != nil {
		return refused(err)
	}
	r.plan.Steps = slices.DeleteFunc(r.plan.Steps, func(s plan.Step) bool { return s.Action == plan.Keep })
	for _, v := range kept {
		r.plan.Steps = append(r.plan.Steps, plan.Step{Resource: plan.ID(v.Kind.Name + "/" + v.ID), Action: plan.Keep, CloudID: v.ID, Origin: v.Origin})
	}
	r.warnOfLogs()
	if err := r.checkProtection(ctx); err != nil {
		return refused(err)
	}
	return refused(r.findForeign(ctx, kept))
}

// warnOfLogs warns about the logs of an EKS cluster, which EKS keeps.
func (r *run) warnOfLogs() {
	for _, n := range r.built.Resources() {
		if s, ok := n.Observed().(*eks.ClusterState); ok && len(s.Logging) > 0 {
			r.warn("EKS keeps the logs of the control plane: aws logs delete-log-group --region %s --log-group-name /aws/eks/%s/cluster deletes them", r.c.Region, s.Name)
		}
	}
}

// graphOfManifest finds the resources of the manifest. If it cannot, because the manifest
// or the account is damaged, all resources are found by their tags.
func (r *run) graphOfManifest(ctx context.Context) error {
	err := r.build(cloud.Briefly(ctx))
	hopeless := errors.As(err, new(*topology.NamespaceError)) || errors.As(err, new(*topology.UnsupportedError))
	if errors.As(err, new(*plan.RefusedError)) && !hopeless {
		r.warn("the manifest does not match the account (%v); its resources are found by their tags", err)
		r.built = topology.Cluster{Graph: graph.New()}
	} else if err != nil {
		return err
	}
	_, err = r.x.PlanDelete(ctx, r.built.Graph)
	if err = refused(err); errors.As(err, new(*plan.RefusedError)) && !cloud.Denied(err) {
		r.warn("resources of the manifest cannot be told apart (%v); all are found by their tags", err)
		r.built = topology.Cluster{Graph: graph.New()}
		return nil
	}
	return err
}

// searchByTag finds the resources with the tags of the cluster that are not in the graph.
func (r *run) searchByTag(ctx context.Context) (teardown.Leftovers, error) {
	all, owner, err := teardown.Search(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud, r.owner, teardown.Claimed(r.built.Graph))
	if err != nil {
		return nil, err
	}
	if r.owner = owner; owner.Shared {
		r.warn("resources that controllers of a cluster named %s created are not deleted: another cluster uses that name in its tags", r.c.Name)
	}
	return all, nil
}

// findForeign returns a ForeignError if there are resources of other owners that prevent
// the deletion.
func (r *run) findForeign(ctx context.Context, kept teardown.Leftovers) error {
	all, err := teardown.FindForeign(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud, r.built.Graph, r.owner, kept)
	if err != nil || len(all) == 0 {
		return err
	}
	return &plan.ForeignError{Resources: all}
}

// lookForForeign returns a ForeignError if resources of other owners have appeared since the
// plan: only the user can end what the deletion waits for.
func (r *run) lookForForeign(ctx context.Context) error {
	r.cloud.Snapshot()
	var foreign *plan.ForeignError
	if errors.As(r.findForeign(cloud.Briefly(ctx), nil), &foreign) {
		return foreign
	}
	return nil
}

// stuck returns the error of a deletion that has failed. If resources of other owners
// have appeared since the plan, it is a LeftoverError that names them.
func (r *run) stuck(ctx context.Context, err error) error {
	var foreign *plan.ForeignError
	if !errors.As(err, &foreign) {
		if !errors.As(err, new(*plan.TimeoutError)) {
			return err
		}
		r.cloud.Snapshot()
		if !errors.As(r.findForeign(cloud.Briefly(ctx), nil), &foreign) {
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
