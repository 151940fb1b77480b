package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// run is one run on one cluster.
type run struct {
	c         *Cluster
	cloud     *cloud.Clients
	x         *graph.Executor
	began     time.Time
	inventory topology.Inventory
	built     topology.Cluster
	plan      plan.Plan
	quotas    []plan.Quota
	allowed   *plan.Permissions // nil: not in the plan
	showsCost bool              // its plan has the cost
	estimated *cost.Estimate    // nil: no prices are being asked for
	cost      *plan.Cost

	only        bool // plan, and change nothing
	takesBack   bool // controllers have worked on the cluster
	deletes     bool
	deleted     bool       // the cluster has no resources any more
	owner       kind.Owner // what tells the cluster's resources from others'
	options     cluster.Options
	asksCluster bool // a deletion first deletes Services, Ingresses and claims

	// What a deletion keeps (kept.go).
	policies map[string]string // reclaim policies by volume ID
	vpcs     map[string]bool   // the VPCs of the cluster

	absent []cluster.Absence // what a deletion has proved

	unanswered error // why the API server of a cluster that was begun did not list its Nodes

	restore *restoring // nil without Target.Restore
}

func (c *Cluster) begin(o cluster.Options) *run {
	cfg := c.target.Config
	if c.manifest != nil {
		cfg.Region = c.Region
		cfg = withIdentity(cfg, c.manifest)
	}
	r := &run{c: c, options: o}
	settings := clientOptions(c.target)
	settings.Repeating = func(retry cloud.Retry) { r.warn("%s", retry) }
	r.cloud = cloud.New(cfg, c.Name, settings)
	r.began, r.owner = r.cloud.Clock.Now(), kind.Owner{Cluster: c.Name}
	if c.manifest != nil {
		r.owner.Kubernetes, r.owner.EKS = c.manifest.KubernetesName(), c.managed()
	}
	r.x = &graph.Executor{Cloud: r.cloud, Timeout: c.target.Timeout}
	if o.Observe != nil {
		r.x.Observe = o.Observe
	}
	return r
}

// build reads the inventory and builds the graph.
func (r *run) build(ctx context.Context) (err error) {
	r.cloud.Snapshot()
	r.inventory = topology.Inventory{}
	if r.c.manifest == nil {
		r.built = topology.Cluster{Graph: graph.New()}
		return nil
	}
	if r.inventory, err = observe(cloud.InSnapshot(cloud.ReadOnly(ctx)), r.cloud, r.c.manifest); err != nil {
		return err
	}
	if err := r.openRestore(ctx); err != nil {
		return err
	}
	return r.buildFrom(ctx)
}

// buildFrom builds the graph from the inventory.
func (r *run) buildFrom(ctx context.Context) (err error) {
	if r.built, err = topology.Build(r.c.manifest, r.inventory, r.topologyOptions(ctx)); err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	return nil
}

func (r *run) topologyOptions(ctx context.Context) topology.Options {
	return topology.Options{
		Wait: r.c.target.Wait, Drain: r.c.target.Drain && !cloud.IsBrief(ctx), // a cluster that is deleted is not drained
		NetworkFirst: r.c.target.NetworkFirst, NewEtcd: r.c.target.NewEtcd != "", Adopt: r.c.adopts, TakesBack: r.takesBack,
		Restore: r.restore.options(r.inventory),
	}
}

// look builds the graph and the plan.
func (r *run) look(ctx context.Context) (err error) {
	if err := r.build(ctx); err != nil {
		return refused(err)
	}
	if err := r.awaitControlPlane(ctx); err != nil {
		return refused(err)
	}
	r.estimate(ctx)
	r.plan, err = r.x.Plan(ctx, r.built.Graph)
	if err == nil {
		err = r.checkNodes(ctx)
	}
	if err == nil {
		err = r.findLostTags(ctx)
	}
	if err == nil {
		err = r.checkControlPlane(ctx)
	}
	if err == nil {
		err = r.checkQuorum(ctx)
	}
	if err == nil {
		err = r.checkProtection(ctx)
	}
	if err == nil {
		for _, remark := range r.built.Remarks {
			r.warn("%s", remark)
		}
		r.warnOfLateMachines(ctx)
		r.warnOfUnwatchedRefreshes()
	}
	return refused(err)
}

// warnOfUnwatchedRefreshes warns about instance refreshes of which nobody sees whether the new
// machines join.
func (r *run) warnOfUnwatchedRefreshes() {
	if cmp.Or(r.c.target.Wait, plan.Infrastructure) != plan.Infrastructure {
		return
	}
	for _, s := range r.plan.Steps {
		if s.Resource.Kind() == autoscaling.GroupKind && s.Action == plan.Update && s.Diff.Has("machines") {
			r.warn("%s: AWS replaces all machines, whether or not the new ones join the cluster: with --wait=api, the run looks at their Nodes", s.Resource)
		}
	}
}

// warnOfLateMachines warns about new machines whose join token has expired.
func (r *run) warnOfLateMachines(ctx context.Context) {
	late := r.lateMachines()
	if late == "" || r.built.Joinable {
		return
	}
	made, err := secrets.TokenCreated(cloud.ReadOnly(ctx), r.cloud)
	if age := r.cloud.Clock.Since(made); err == nil && !made.IsZero() && age > topology.TokenTTL {
		r.warn("%s will be added, but the join token was created %s ago and is valid for %s: the machines will boot but not join; --wait=api creates a new token", late, age.Round(time.Minute), topology.TokenTTL)
	}
}

// lateMachines says which machines the plan adds: "2 machines"; "" for none.
func (r *run) lateMachines() string {
	machines, pools := r.plan.CountKind(ec2.MachineKind, plan.Create), r.plan.CountKind(autoscaling.GroupKind, plan.Create)
	for _, s := range r.plan.Steps {
		if s.Resource.Kind() == autoscaling.GroupKind && s.Action == plan.Update && s.Diff.Has("replicas", "machines") {
			pools++
		}
	}
	switch {
	case pools > 0 && machines > 0:
		return text.Count(machines, "machine") + " and those of " + text.Count(pools, "pool")
	case pools > 0:
		return "machines of " + text.Count(pools, "pool")
	case machines > 0:
		return text.Count(machines, "machine")
	}
	return ""
}

// refused makes a RefusedError of what a plan has found. Network errors and errors of
// AWS itself are returned unchanged.
func refused(err error) error {
	if err = refuseIdentity(err); err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		cloud.Unanswered(err) || cloud.Code(err) != "" && !refusesCaller(err) && !cloud.NotFound(err) {
		return err
	}
	return &plan.RefusedError{Reasons: []error{err}}
}

// lock takes the lock of the cluster: in SSM Parameter Store, or in a file of this
// machine if SSM is denied.
func (r *run) lock(ctx context.Context, command string) error {
	if err := CheckName(r.c.Name); err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	t := r.c.target
	o := cloud.LockOptions{Who: t.Owner, Command: command, ConsistencyDelay: t.LockTTL, Waiting: func(h cloud.Holder, left time.Duration) {
		if h.Late > 0 {
			r.warn("waiting %s: %s (%s, since %s) has stopped while it deleted something, and AWS may still carry out a request of it until then",
				left.Round(time.Second), h.Who, h.Command, h.Since.UTC().Format(time.TimeOnly))
			return
		}
		r.warn("%s holds the lock (%s, since %s) but may be dead; this run takes over in %s unless the other one renews the lock", h.Who, h.Command, h.Since.UTC().Format(time.TimeOnly), left.Round(time.Second))
	}}
	err := refuseIdentity(r.cloud.AcquireLock(ctx, o))
	if cloud.Denied(err) && !errors.As(err, new(*plan.RefusedError)) && t.StateDir != "" {
		r.warn("access to SSM Parameter Store is denied (%v): the lock is stored on this machine only, and runs on other machines do not see it", cloud.Code(err))
		err = r.cloud.AcquireFileLock(ctx, filepath.Join(t.StateDir, r.c.Region, r.c.Name), o)
	}
	if errors.As(err, new(*plan.LockedError)) || errors.As(err, new(*cloud.DamagedLockError)) || errors.Is(err, cloud.ErrLockLost) || refusesCaller(err) {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	return err
}

// The time limits of unlock: in general, and after an interrupt.
const (
	unlocking            = 30 * time.Second
	unlockingInterrupted = 600 * time.Millisecond
)

// unlock releases the lock, also after an interrupt.
func (r *run) unlock(ctx context.Context) {
	limit := unlocking
	if ctx.Err() != nil {
		limit = unlockingInterrupted
	}
	ctx, cancel := r.cloud.Clock.WithTimeout(context.WithoutCancel(ctx), limit, nil)
	defer cancel()
	nothing := r.deleted || r.cloud.Lock.IsFirst() && r.cloud.Stats().Writes.Load() == 0 && r.cloud.Lock.Manager() == nil
	if err := r.cloud.Lock.Release(ctx, cloud.Ending{Unknown: r.x.LostAnswers(), Nothing: nothing}); err != nil && !errors.Is(err, cloud.ErrLockLost) {
		r.warn("the lock could not be released (%v); the next run takes it over after one minute", err)
	}
}

// awaitRequests waits until no request of a deletion, or of a killed run before it, can reach
// AWS any more. It reports whether it has waited.
func (r *run) awaitRequests(ctx context.Context) (waited bool) {
	r.cloud.Lock.AwaitRequests(ctx, func(left time.Duration) {
		waited = true
		r.warn("everything is deleted; waiting %s before the lock is released: AWS may still carry out a request of this run, or of one that was killed",
			left.Round(time.Second))
	})
	return waited
}

func (r *run) warn(format string, args ...any) {
	if r.c.target.Warn != nil {
		r.c.target.Warn(fmt.Sprintf(format, args...))
	}
}

// result returns what the run has done. An error after the first write becomes a
// HalfwayError.
func (r *run) result(err error) (cluster.Result, error) {
	s := r.cloud.Stats()
	res := cluster.Result{
		Plan: r.publicPlan(), Reads: s.Reads.Load(), Writes: s.Writes.Load(), Took: r.cloud.Clock.Since(r.began),
		Endpoint: known(r.built.Endpoint.String()), Absent: r.absent, Nodes: r.nodes(),
	}
	if err != nil && res.Writes+s.KubeWrites.Load() > 0 && !errors.As(err, new(*plan.LeftoverError)) {
		err = &plan.HalfwayError{Err: err}
	}
	return res, err
}

// publicPlan returns the plan in its public form.
func (r *run) publicPlan() plan.Plan {
	g := r.built.Graph
	if g == nil {
		return r.plan
	}
	busy := map[plan.ID]bool{}
	for _, s := range r.plan.Steps {
		busy[s.Resource] = s.Does()
	}
	time := g.CreateTime
	if r.deletes {
		time = g.DeleteTime
	}
	out := r.plan
	out.Expected, out.Quotas = time(func(id plan.ID) bool { return busy[id] }), r.quotas
	out.Permissions, out.Cost = r.allowed, r.cost
	out.Graph, out.ReplacesControlPlane = graphOf(g), !r.deletes && len(r.leavingControlPlane()) > 0
	return out
}

// confirmed calls Options.Confirm. The time for that does not count as time of the
// run.
func (r *run) confirmed(o cluster.Options) error {
	if o.Confirm == nil || r.plan.Empty() {
		return nil
	}
	r.addCost()
	asked := r.cloud.Clock.Now()
	yes, err := o.Confirm(r.publicPlan())
	r.began = r.began.Add(r.cloud.Clock.Since(asked))
	if err == nil && !yes {
		err = plan.ErrDeclined
	}
	return err
}

// Plan returns what Apply would do. It changes nothing. If Apply would be refused, the
// error is a RefusedError, and the plan is returned with it.
func (c *Cluster) Plan(ctx context.Context) (plan.Plan, error) {
	r := c.begin(cluster.Options{})
	r.only, r.showsCost = true, c.target.Cost
	defer r.stopPricing()
	err := r.look(ctx)
	if err == nil {
		err = r.preflight(ctx)
		r.addCost()
	}
	if err == nil {
		_, err = r.prepareBackup(ctx)
	}
	return r.publicPlan(), err
}

// PlanDelete returns what Delete would do. It changes nothing. Kept volumes are in the
// plan, with the action Keep.
func (c *Cluster) PlanDelete(ctx context.Context, o cluster.Options) (plan.Plan, error) {
	r := c.begin(o)
	r.deletes, r.asksCluster = true, c.target.AskCluster
	err := r.lookToDelete(ctx)
	return r.publicPlan(), err
}

// Apply creates the cluster of the manifest, or updates it. It can be stopped at any
// time, and run again.
func (c *Cluster) Apply(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	r := c.begin(o)
	if err := r.lock(ctx, "create"); err != nil {
		return r.result(err)
	}
	defer r.unlock(ctx)
	r.showsCost = c.target.Cost && o.Confirm != nil
	defer r.stopPricing()
	if err := r.look(ctx); err != nil {
		return r.result(err)
	}
	if err := r.checkManager(); err != nil {
		return r.result(err)
	}
	if err := r.preflight(ctx); err != nil {
		return r.result(err)
	}
	recipients, err := r.prepareBackup(ctx)
	if err != nil {
		return r.result(err)
	}
	if err := r.confirmed(o); err != nil {
		return r.result(err)
	}
	if r.plan.Empty() {
		return r.result(nil)
	}
	if err := r.backUpFirst(ctx, recipients); err != nil {
		return r.result(err)
	}
	return r.result(r.apply(ctx))
}

// Delete deletes all resources of the cluster, and then looks for all of them again; those
// that still exist are a LeftoverError.
func (c *Cluster) Delete(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	r := c.begin(o)
	r.deletes, r.asksCluster = true, c.target.AskCluster
	if err := r.lock(ctx, cloud.DeleteCommand); err != nil {
		return r.result(err)
	}
	defer r.unlock(ctx)
	if err := r.lookToDelete(ctx); err != nil {
		return r.result(err)
	}
	if err := r.checkManager(); err != nil {
		return r.result(err)
	}
	if err := r.confirmed(o); err != nil {
		return r.result(err)
	}
	if r.plan.Empty() {
		if r.awaitRequests(ctx) {
			if err := r.findLate(ctx); err != nil {
				return r.result(err)
			}
		}
		r.deleted = true
		res, err := r.result(nil)
		res.NotFound = len(r.plan.Steps) == 0 && r.cloud.Lock.IsFirst()
		return res, err
	}
	r.markVolumes(ctx)
	r.x.Stuck = r.lookForForeign
	if err := r.x.Delete(ctx, r.built.Graph); err != nil {
		return r.result(r.stuck(ctx, err))
	}
	prove := r.proveAbsence
	if r.awaitRequests(ctx) {
		prove = r.findLate
	}
	if err := prove(ctx); err != nil {
		return r.result(err)
	}
	r.deleted = true
	return r.result(nil)
}
