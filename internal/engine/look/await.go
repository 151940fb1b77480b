package look

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	// awaitInterval is the time between two looks at a cluster.
	awaitInterval = 10 * time.Second
	// startTime is how long another process has to create the first resource of a cluster.
	startTime = time.Minute
)

// AwaitCondition waits for a cluster that another process creates, changes or deletes. It only
// reads, and takes no lock. It calls tell, if it is not nil, with what is missing whenever that
// changes. If the deadline of the context passes, the error is a TimeoutError with the likely
// reasons. If the cluster was opened by name and has no resource for a minute, it is ErrNotFound.
func AwaitCondition(ctx context.Context, c *run.Cluster, condition cluster.Condition, tell func(missing string)) error {
	var last string
	quiet := *c
	quiet.Target.Warn = once(c.Target.Warn)
	if condition != cluster.ConditionDeleted {
		quiet.Target.Wait, quiet.Target.AskCluster = plan.Wait(condition), condition != cluster.ConditionInfrastructure
	}
	for began := now(c.Target); ; {
		v := newView(&quiet)
		s, missing, err := v.compare(ctx, condition)
		stays := staysStopped(s, condition)
		switch {
		case ctx.Err() != nil:
			return v.gaveUp(ctx, condition, last, now(c.Target).Sub(began))
		case err != nil && (last == "" || run.CallerRefusalOf(err).Any()):
			return err
		case err != nil: // what another process changes may be gone when it is read
			missing = err.Error()
		case missing == "", stays != nil:
			return stays
		case c.Manifest == nil && existing(s) == 0 && now(c.Target).Sub(began) >= startTime:
			return cluster.ErrNotFound
		}
		if missing != last && tell != nil {
			tell(missing)
		}
		if last = missing; v.Cloud.Clock.Sleep(ctx, awaitInterval) != nil {
			return v.gaveUp(ctx, condition, last, now(c.Target).Sub(began))
		}
	}
}

// compare reads the state of a cluster, and says what a condition lacks; "" for nothing.
func (v *view) compare(ctx context.Context, condition cluster.Condition) (s cluster.Status, missing string, err error) {
	if s, err = v.status(ctx); err != nil {
		return s, "", err
	}
	if missing = lacks(s, condition); missing == "" && condition == cluster.ConditionReady {
		missing, err = v.lacksPods(ctx, s)
	}
	return s, missing, err
}

// staysStopped returns an error if the cluster is stopped and no run starts it: then a wait would not end.
func staysStopped(s cluster.Status, condition cluster.Condition) error {
	r := s.LastRun
	if s.Stopped == nil || condition == cluster.ConditionDeleted || r != nil && r.State == cluster.RunActive && r.Command == run.StartCommand {
		return nil
	}
	return &plan.RefusedError{Reasons: []error{&plan.StoppedError{Cluster: s.Name, Region: s.Region, Since: *s.Stopped}}}
}

// once passes on each text once: every look has the same warnings.
func once(warn func(string)) func(string) {
	told := map[string]bool{}
	return func(text string) {
		if warn != nil && !told[text] {
			told[text] = true
			warn(text)
		}
	}
}

func now(t cluster.Target) time.Time { return run.ClientOptions(t).Clock.Now() }

// lacks says what a condition lacks of machines and Nodes; "" for nothing.
func lacks(s cluster.Status, condition cluster.Condition) string {
	if condition == cluster.ConditionInfrastructure {
		return notRunning(s)
	}
	return lacksInCluster(s, condition)
}

// lacksInCluster is lacks for a condition about the cluster itself.
func lacksInCluster(s cluster.Status, condition cluster.Condition) string {
	switch {
	case condition == cluster.ConditionDeleted && existing(s) == 0:
		return ""
	case condition == cluster.ConditionDeleted:
		return text.Count(existing(s), "resource") + " left"
	case s.API == nil || s.API.State == cluster.APINone:
		return "no control plane runs"
	case s.API.State == cluster.APIUnavailable:
		return "the API server does not answer: " + s.API.Detail
	case condition == cluster.ConditionAPI:
		return ""
	}
	if ids := coming(s); len(ids) > 0 {
		return "not joined: " + text.Several(ids)
	}
	var not []string
	for _, n := range s.Nodes {
		if !n.Ready {
			not = append(not, n.Name)
		}
	}
	switch {
	case len(s.Nodes) == 0 && !slices.ContainsFunc(s.Resources, isFargate): // pods bring their Nodes
		return "no Node has joined"
	case condition == cluster.ConditionReady && len(not) > 0:
		return "not ready: " + text.Several(not)
	}
	return ""
}

// lacksPods says which add-ons do not work yet, in a cluster whose Nodes are ready; "" for none.
func (v *view) lacksPods(ctx context.Context, s cluster.Status) (string, error) {
	waiting, err := v.waitingAddons(ctx, s)
	if err != nil || len(waiting) == 0 {
		return "", err
	}
	titles := make([]string, len(waiting))
	for i, w := range waiting {
		titles[i] = w.Title
	}
	return "not ready: " + text.Several(titles), nil
}

// waitingAddons lists the objects that do not work yet, and other parts of the cluster that a run has to install. Without the
// manifest, only the objects of kubeadm are known.
func (v *view) waitingAddons(ctx context.Context, s cluster.Status) (all []incluster.WaitingWorkload, err error) {
	if v.Cluster.Manifest == nil {
		k, err := v.APIServer(cloud.InSnapshot(cloud.ReadOnly(ctx)))
		if k == nil || err != nil {
			return nil, err
		}
		return incluster.WaitingSystemWorkloads(ctx, k)
	}
	for _, r := range s.Resources {
		if run.AreaOf(r.Resource, r.Origin) != plan.AreaKubernetes || !slices.Contains([]string{"missing", "pending"}, r.State) {
			continue
		}
		if have, is := v.Built.Resource(r.Resource).Observed().(*incluster.WorkloadsState); is && len(have.Waits) > 0 {
			all = append(all, have.Waits...)
		} else {
			all = append(all, incluster.WaitingWorkload{Title: string(r.Resource)})
		}
	}
	return all, nil
}

// whyNotReady says why the pods of add-ons do not run.
func (v *view) whyNotReady(ctx context.Context, s cluster.Status) []string {
	waiting, err := v.waitingAddons(ctx, s)
	if err != nil {
		return nil
	}
	var namespaces []string
	for _, w := range waiting {
		if w.Namespace != "" && !slices.Contains(namespaces, w.Namespace) {
			namespaces = append(namespaces, w.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	k, err := v.APIServer(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	if k == nil || err != nil {
		return nil
	}
	return diagnose.Pods(ctx, k, namespaces)
}

// isFargate reports whether a resource is a Fargate profile.
func isFargate(r cluster.ResourceStatus) bool { return r.Resource.Kind() == eks.FargateProfileKind }

// existing counts the resources of the cluster that exist.
func existing(s cluster.Status) (n int) {
	for _, r := range s.Resources {
		if r.CloudID != "" && r.State != "existing" {
			n++
		}
	}
	return n
}

// notRunning says which machines AWS does not run yet; "" for none. The API server was not asked.
func notRunning(s cluster.Status) string {
	ids := coming(s)
	switch {
	case len(ids) > 0:
		return "not running: " + text.Several(ids)
	case !slices.ContainsFunc(s.Resources, func(r cluster.ResourceStatus) bool {
		return r.CloudID != "" && run.AreaOf(r.Resource, r.Origin) == plan.AreaControlPlane
	}):
		return "no control plane runs"
	}
	return ""
}

// coming lists the machines and groups of machines that have not joined.
func coming(s cluster.Status) (ids []string) {
	for _, r := range s.Resources {
		area := run.AreaOf(r.Resource, r.Origin)
		if area != plan.AreaControlPlane && area != plan.AreaWorkers || r.Node == cluster.NodeReady || r.Node == cluster.NodeNotReady {
			continue
		}
		if slices.Contains([]string{"missing", "pending"}, r.State) {
			id := string(r.Resource)
			if counted, _, is := strings.Cut(r.Detail, " joined,"); is && r.Node == cluster.NodeNotJoined {
				id += " (" + counted + ")" // of a pool
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// diagnosing limits the search for the reasons why a condition has not come.
const diagnosing = 30 * time.Second

// gaveUp returns the error of a wait that has ended, with the likely reasons if it has taken
// too long.
func (v *view) gaveUp(ctx context.Context, condition cluster.Condition, missing string, after time.Duration) error {
	if !cloud.TimedOut(ctx) {
		return context.Cause(ctx)
	}
	e := &plan.TimeoutError{After: after.Round(time.Second), Awaited: fmt.Errorf("%s: %s", condition, missing)}
	if condition == cluster.ConditionDeleted {
		return e
	}
	limited, cancel := v.Cloud.Clock.WithTimeout(context.WithoutCancel(ctx), diagnosing, nil)
	defer cancel()
	fresh := newView(v.Cluster)
	s, err := fresh.status(limited)
	if err != nil {
		return e
	}
	for _, n := range s.Nodes {
		if !n.Ready {
			e.Findings = append(e.Findings, fmt.Sprintf("node %s is not ready: %s", n.Name, n.Detail))
		}
	}
	e.Findings = append(e.Findings, fresh.whyNotJoined(limited, s)...)
	if condition == cluster.ConditionReady && len(e.Findings) == 0 {
		e.Findings = fresh.whyNotReady(limited, s)
	}
	return e
}

// machineToExamine returns the machine of a status or, of an Auto Scaling group, one that has not
// joined; nil for another resource.
func (v *view) machineToExamine(ctx context.Context, s cluster.ResourceStatus) *ec2.InstanceState {
	n := v.Built.Resource(s.Resource)
	if n == nil || s.Node != cluster.NodeNotJoined {
		return v.machineOf(s)
	}
	group, ok := n.Observed().(*autoscaling.GroupState)
	if !ok {
		return v.machineOf(s)
	}
	_, nodes := v.readNodes(ctx)
	inventory, err := ec2.InstanceInventory(cloud.ReadOnly(ctx), v.Cloud)
	if nodes == nil || err != nil {
		return nil
	}
	for _, i := range group.Members() {
		if m := inventory.OfGroups[i.ID]; m != nil && nodes.Of(*m) == nil {
			return m
		}
	}
	return nil
}

// whyNotJoined looks for the reasons why machines have not become Nodes. If the API server does
// not answer, machines of the control plane are examined.
func (v *view) whyNotJoined(ctx context.Context, s cluster.Status) (findings []string) {
	const most = 3
	examined := 0
	for _, x := range s.Resources {
		control := run.AreaOf(x.Resource, x.Origin) == plan.AreaControlPlane
		m := v.machineToExamine(ctx, x)
		if m == nil || examined == most || x.Node != cluster.NodeNotJoined && (len(s.Nodes) > 0 || !control) {
			continue
		}
		examined++
		found, _ := diagnose.Boot(cloud.Live(cloud.ReadOnly(ctx)), v.Cloud, *m, control)
		findings = append(findings, found...)
	}
	return findings
}
