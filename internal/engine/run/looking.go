package run

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Looking is the first phase of a run. It reads what there is, builds the graph of what the
// manifest wants, and compares them.
type Looking struct {
	*Session
	Inventory topology.Inventory
	Built     topology.Cluster
	Plan      plan.Plan

	// TakesBack says that the controllers of a management cluster have worked on the cluster.
	TakesBack bool

	// Stopped is when the cluster was stopped; nil if it is not stopped, or if its record was not read. With Shows, a
	// stopped cluster is not an error.
	Stopped *time.Time
	Shows   bool
	// startedByHand: the record says that the cluster is stopped, and its machines run.
	startedByHand bool

	pricing    *pricing   // nil: the plan shows no cost
	restore    *restoring // nil without Target.Restore
	unanswered error      // why the API server of a cluster that was begun did not list its Nodes
}

// depth is how much of each resource a phase reads.
type depth int

const (
	whole    depth = iota // all that a plan compares
	identity              // what a deletion needs to find it
)

// Look reads, builds the graph, and plans. What would stop the run half way is an error.
func (l *Looking) Look(ctx context.Context) error {
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return l.build(ctx, whole) },
		l.checkStopped,
		l.unlessStopped(l.awaitControlPlane),
		l.plan,
		l.checkStopped,
		l.unlessStopped(l.checkNodes),
		l.findLostParts,
		l.findLostTags,
		l.unlessStopped(l.checkControlPlane),
		l.unlessStopped(l.checkQuorum),
		l.checkProtection,
		l.checkAPIName,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Refused(err)
		}
	}
	for _, remark := range l.Built.Remarks {
		l.Warn("%s", remark)
	}
	l.warnOfLateMachines(ctx)
	l.warnOfUnwatchedRefreshes()
	l.warnOfUninstalled()
	if err := cmp.Or(l.warnOfKey(ctx), l.warnOfNodeAccess(ctx)); err != nil {
		return Refused(err)
	}
	return l.warnOfLostObjects(ctx)
}

// build reads the inventory and builds the graph.
func (l *Looking) build(ctx context.Context, deep depth) (err error) {
	l.Cloud.Snapshot()
	l.Inventory = topology.Inventory{}
	if l.Cluster.Manifest == nil {
		l.Built = topology.Cluster{Graph: graph.New()}
		return nil
	}
	if l.Inventory, err = observe(ctx, l.Cloud, l.Cluster.Manifest, deep); err != nil {
		return err
	}
	if deep == whole {
		if err := l.openRestore(ctx); err != nil {
			return err
		}
	}
	err = l.buildFrom(l.topologyOptions(deep))
	if err != nil && deep == whole {
		return l.orMissing(ctx, err)
	}
	return err
}

// orMissing returns what is missing of the existing resources of the manifest, if something is, instead of an error of the graph. What the
// inventory does not have is no subnet of any kind or zone for the graph: without a VPC, it misses a public subnet.
func (l *Looking) orMissing(ctx context.Context, failed error) error {
	missing := l.executor.LookUp(ctx, l.Built.Graph)
	if missing == nil || cloud.Code(missing) != "" || cloud.Unanswered(missing) || ctx.Err() != nil {
		return failed
	}
	return &plan.RefusedError{Reasons: []error{missing}}
}

// buildFrom builds the graph from the inventory.
func (l *Looking) buildFrom(o topology.Options) (err error) {
	if l.Built, err = topology.Build(l.Cluster.Manifest, l.Inventory, o); err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	return nil
}

func (l *Looking) topologyOptions(deep depth) topology.Options {
	t := l.Cluster.Target
	return topology.Options{
		Wait: t.Wait, Drain: t.Drain && deep == whole, // a cluster that is deleted is not drained
		NetworkFirst: t.NetworkFirst, NewEtcd: t.NewEtcd != "", Adopt: l.Cluster.Adopts, TakesBack: l.TakesBack,
		Restore: l.restore.options(l.Inventory),
	}
}

// plan compares the graph with the account.
func (l *Looking) plan(ctx context.Context) (err error) {
	l.pricing.begin(ctx, l)
	l.Plan, err = l.executor.Plan(ctx, l.Built.Graph)
	setAreas(l.Plan.Steps)
	if refused := l.unofferedVersion(ctx, err); refused != nil {
		return refused
	}
	return err
}

// unofferedVersion returns the refusal of a Kubernetes version that EKS does not offer, if a plan has failed
// only because images were not found: there are no images for such a version. Otherwise it returns nil.
func (l *Looking) unofferedVersion(ctx context.Context, failed error) error {
	images, others := 0, 0
	visit(failed, func(err error) {
		if of, is := err.(*plan.ResourceError); is && of.Resource.Kind() == "image" { //nolint:errorlint // visit calls it with every error of the tree
			images++
		} else if is {
			others++
		}
	})
	if images == 0 || others > 0 {
		return nil
	}
	for _, s := range l.Plan.Steps {
		r := l.Built.Resource(s.Resource)
		if r == nil {
			continue // an image that was looked up
		}
		k, is := r.Desired().(*eks.Cluster)
		if !is || s.Action != plan.Create && !s.Diff.Has("version") {
			continue
		}
		if refusal, err := k.CheckVersion(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud); refusal != "" && err == nil {
			reason := errors.New(refusal)
			return &plan.RefusedError{Reasons: []error{&plan.ResourceError{Resource: s.Resource, Origin: l.locate(s.Origin, reason), Err: reason}}}
		}
	}
	return nil
}

// warnOfUnwatchedRefreshes warns about instance refreshes of which nobody sees whether the new
// machines join.
func (l *Looking) warnOfUnwatchedRefreshes() {
	if cmp.Or(l.Cluster.Target.Wait, plan.Infrastructure) != plan.Infrastructure {
		return
	}
	for _, s := range l.Plan.Steps {
		if s.Resource.Kind() == autoscaling.GroupKind && s.Action == plan.Update && s.Diff.Has("machines") {
			l.Warn("%s: AWS replaces all machines, whether or not the new ones join the cluster: with --wait=api, the run looks at their Nodes", s.Resource)
		}
	}
}

// warnOfLateMachines warns about new machines whose join token has expired.
func (l *Looking) warnOfLateMachines(ctx context.Context) {
	late := l.lateMachines()
	if late == "" || l.Built.Joinable {
		return
	}
	keys, err := secrets.PKIParameters(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud)
	if err != nil || keys.TokenCreated.IsZero() {
		return
	}
	if age := l.Cloud.Clock.Since(keys.TokenCreated); age > topology.TokenTTL {
		l.Warn("%s will be added, but the join token was created %s ago and is valid for %s: the machines will boot but not join; --wait=api creates a new token",
			late, age.Round(time.Minute), topology.TokenTTL)
	}
}

// lateMachines says which machines the plan adds: "2 machines"; "" for none.
func (l *Looking) lateMachines() string {
	machines, pools := l.Plan.CountKind(ec2.MachineKind, plan.Create), l.Plan.CountKind(autoscaling.GroupKind, plan.Create)
	for _, s := range l.Plan.Steps {
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

// CheckManager refuses to work on a cluster that a management cluster manages. After that
// one has deleted the cluster, only records of this program are left, and nobody manages
// anything.
func (l *Looking) CheckManager() error {
	m := l.Cloud.Lock.Manager()
	if m == nil || !l.hasResources() {
		return nil
	}
	return l.IsManaged(m)
}

// hasResources reports whether the cluster has resources in AWS besides the records and
// secrets of this program.
func (l *Looking) hasResources() bool {
	for _, s := range l.Plan.Steps {
		own := s.Action == plan.Keep || s.Action == plan.Update || s.Action == plan.Remove || s.Action == plan.Settle || s.Action == plan.Conflict
		if own && s.CloudID != "" && !strings.HasPrefix(s.CloudID, l.Cloud.ParameterPath()) {
			return true
		}
	}
	return false
}

// PublicPlan returns the plan with the resources of the graph, and the time that it takes.
func (l *Looking) PublicPlan() plan.Plan {
	out := l.withGraph((*graph.Graph).CreateTime)
	out.ReplacesControlPlane = len(l.leavingControlPlane()) > 0
	return out
}

// withGraph adds to the plan the resources of the graph, and the time that its steps take.
func (l *Looking) withGraph(expected func(*graph.Graph, func(plan.ID) bool) time.Duration) plan.Plan {
	out, g := l.Plan, l.Built.Graph
	if g == nil {
		return out
	}
	busy := map[plan.ID]bool{}
	for _, s := range out.Steps {
		busy[s.Resource] = s.Does()
	}
	out.Expected, out.Graph = expected(g, func(id plan.ID) bool { return busy[id] }), publicGraph(g)
	return out
}

// Result returns what the run has done. An error after the first write becomes a HalfwayError.
func (l *Looking) Result(p plan.Plan, err error) (cluster.Result, error) {
	s := l.Cloud.Stats()
	res := cluster.Result{
		Plan:        p,
		Reads:       s.Reads.Load(),
		Writes:      s.Writes.Load(),
		Throttled:   s.Throttled.Load(),
		ThrottledBy: s.ThrottledBy(),
		Late:        l.Cloud.Late(),
		Took:        l.Cloud.Clock.Since(l.began),
		Endpoint:    Known(l.Built.Endpoint.String()),
		Nodes:       l.nodes(),
	}
	if err != nil && res.Writes+s.KubeWrites.Load() > 0 && !errors.As(err, new(*plan.LeftoverError)) {
		err = &plan.HalfwayError{Err: err}
	}
	return res, err
}

// Known returns an endpoint; "" if a plan does not know it yet.
func Known(endpoint string) string {
	if strings.HasPrefix(endpoint, plan.Unknown) {
		return ""
	}
	return endpoint
}
