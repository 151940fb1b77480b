package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/clusterapi"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PlanTakeback returns the steps of Takeback that do more than to record what exists: another
// bootstrap token, and another version of a launch template with which machines that a pool
// adds can join. No machine is replaced. It changes nothing. If Takeback would be refused, the
// error is a RefusedError.
//
// Cluster API stores a bootstrap token in the launch template of a pool. The token is valid for 15
// minutes. While the controllers run, they replace it before it expires.
func PlanTakeback(ctx context.Context, c *run.Cluster, from plan.Manager) ([]plan.Step, error) {
	l := begin(c, nil)
	l.TakesBack = true
	if err := l.lockTakeback(ctx, from); err != nil { // after a run that was killed, AWS shows all that it did
		return nil, err
	}
	defer l.Unlock(ctx)
	if err := l.Look(ctx); err != nil {
		return nil, err
	}
	var out []plan.Step
	plan := l.PublicPlan()
	for i, s := range l.Plan.Steps {
		if renewsToken(s) {
			out = append(out, plan.Steps[i])
		}
	}
	return out, l.checkAdopts(out)
}

// lockTakeback takes the lock of a cluster, which another management cluster must not manage.
// If it fails, the lock is free.
func (l *looking) lockTakeback(ctx context.Context, from plan.Manager) error {
	if err := l.Lock(ctx, "takeback"); err != nil {
		return err
	}
	if m := l.Cloud.Lock.Manager(); m != nil && m.ID != from.ID {
		l.Unlock(ctx)
		return l.IsManaged(m)
	}
	return nil
}

// renewsToken reports whether a step makes another bootstrap token, or a version of a launch
// template that leads machines to it.
func renewsToken(s plan.Step) bool {
	switch {
	case s.Action != plan.Update:
		return false
	case s.Resource.Kind() == incluster.JoinTokenKind:
		return true
	}
	other := slices.DeleteFunc(slices.Clone(s.Diff), func(c plan.Change) bool { return strings.HasPrefix(c.Field, "tag ") })
	return s.Resource.Kind() == ec2.LaunchTemplateKind && len(other) > 0 && ec2.OnlyBootData(other)
}

// Takeback takes the cluster back from a management cluster, whose controllers must not work
// on it any more. It gives resources the tags by which runs find them, and records that runs
// manage the cluster again. It stores the keys of a self-managed cluster, which are in
// Secrets: the manifest has to contain them. It also carries out the announced steps, which
// PlanTakeback has returned. If the cluster differs from the manifest in anything else, the
// error is a RefusedError.
func Takeback(ctx context.Context, c *run.Cluster, from plan.Manager, announced []plan.Step) (cluster.Result, error) {
	l := begin(c, nil)
	l.TakesBack = true
	if err := l.lockTakeback(ctx, from); err != nil {
		return l.result(err)
	}
	defer l.Unlock(ctx)
	if err := l.adopt(ctx, announced); err != nil {
		return l.result(err)
	}
	if err := l.Cloud.Lock.SetManager(ctx, nil); err != nil {
		return l.result(fmt.Errorf("record that runs manage the cluster again: %w", err))
	}
	return l.result(nil)
}

// Forget takes the cluster back from a management cluster that does not exist any more: it
// removes the record that it manages the cluster, and changes nothing else. It returns the
// management cluster; nil if none manages the cluster. If confirm returns false, the error is
// ErrDeclined, and nothing is changed. If the controllers there do run, they work against
// all later runs.
func Forget(ctx context.Context, c *run.Cluster, confirm func(plan.Manager) (bool, error)) (*plan.Manager, error) {
	l := begin(c, nil)
	if err := l.Lock(ctx, "takeback"); err != nil {
		return nil, err
	}
	defer l.Unlock(ctx)
	m := l.Cloud.Lock.Manager()
	if m == nil {
		return nil, nil
	}
	lost := *m
	yes, err := confirm(lost)
	if err == nil && !yes {
		err = plan.ErrDeclined
	}
	if err == nil {
		err = l.Cloud.Lock.SetManager(ctx, nil)
	}
	return &lost, err
}

// ManifestOf returns the manifest of a cluster, as YAML, from all of its objects in a
// management cluster: without those that controllers make, and without what controllers
// write into the others. It contains no keys of the cluster.
func ManifestOf(objects []map[string]any) ([]byte, error) {
	var all []unstructured.Unstructured
	for _, o := range objects {
		all = append(all, *(&unstructured.Unstructured{Object: o}).DeepCopy())
	}
	written, err := clusterapi.Manifest(all)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, o := range written {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}
