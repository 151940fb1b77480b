package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type handoverOptions struct {
	manifestFlags
	to, context string
	yes, dryRun bool
}

func newHandover(f *flags) *cobra.Command {
	o := &handoverOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "handover -f FILE --to KUBECONFIG",
		Short: "Give a cluster to a management cluster",
		Long: `Give a cluster to the controllers of a management cluster, in which Cluster API and
its AWS provider run. Nothing in AWS changes.

The command checks that the cluster is as its manifest says, and that the management
cluster can take it. Then it creates all Cluster API objects there while the Cluster is
paused: those of the manifest, those that controllers would have made, and the keys of
the cluster. It lets the controllers work, and waits until all objects are ready. If a
controller begins to replace a machine, the command pauses the Cluster again.

From then on, 'create' and 'delete' refuse to work on the cluster. A handover that was
stopped is continued by running it again.`,
		Example: `  clusterawsadm cluster handover -f demo.yaml --to management.kubeconfig --dry-run
  clusterawsadm cluster handover -f demo.yaml --to management.kubeconfig`,
		Args: manifestOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addManifest(cmd)
	o.addObjects(cmd)
	cmd.Flags().StringVar(&o.to, "to", "", "kubeconfig `FILE` of the management cluster")
	cmd.Flags().StringVar(&o.context, "to-context", "", "`NAME` of the context to use (default: the current one)")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "check everything, and change nothing")
	_ = cmd.MarkFlagRequired("to") // fails only for an unknown flag
	return cmd
}

func (o *handoverOptions) run(ctx context.Context) (err error) {
	to, err := kube.ConnectTo(o.to, o.context)
	if err != nil {
		return &env.UsageError{Err: err}
	}
	o.RunTime()
	x, err := o.subject(ctx, nil, runFlags{})
	if err != nil {
		return err
	}
	defer x.end(ctx, &err)
	c, s := x.cluster, x.session
	if err := c.CheckHandover(); err != nil {
		return err
	}
	id, err := to.ID(ctx)
	if err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	if o.dryRun {
		return o.check(ctx, c, to)
	}
	t := &transfer{handoverOptions: o, c: c, to: to, began: s.Clock.Now()}
	if err := c.Handover(ctx, cluster.HandoverOptions{To: plan.Manager{ID: id, Name: to.Name()}, Create: t.create, Release: t.release}); err != nil {
		return err
	}
	if err := t.h.Await(ctx, t.tellWaiting); err != nil {
		return &plan.HalfwayError{Err: err}
	}
	o.Env.Story("Cluster %s in %s is handed over (%s): all its objects are ready in %s.", c.Name, c.Region, rounded(s.Clock.Since(t.began)), to.Name())
	return nil
}

// check is the dry run.
func (o *handoverOptions) check(ctx context.Context, c *reconcile.Cluster, to *management.Cluster) error {
	all, err := c.Objects(ctx)
	if err != nil {
		return err
	}
	problems := to.Handover(handoverID(c), managementObjects(all.Items)).Check(ctx)
	if !all.Plan.Empty() {
		problems = append(problems, errors.New("the cluster is not as the manifest says, and controllers would change it: 'clusterawsadm cluster plan' shows what"))
	}
	if len(problems) > 0 {
		return &plan.RefusedError{Reasons: problems}
	}
	o.Env.Story("Cluster %s in %s can be handed over: %s would be created in %s.", c.Name, c.Region, text.Count(len(all.Items), "object"), to.Name())
	return nil
}

// handoverID identifies the cluster in the objects of its handover.
func handoverID(c *reconcile.Cluster) string { return c.Region + "/" + c.Name }

// transfer is one handover.
type transfer struct {
	*handoverOptions
	c     *reconcile.Cluster
	to    *management.Cluster
	h     *management.Handover
	began time.Time
}

// create checks the management cluster, asks for confirmation, and creates the objects.
func (t *transfer) create(ctx context.Context, all []cluster.Object) error {
	t.h = t.to.Handover(handoverID(t.c), managementObjects(all))
	if problems := t.h.Check(ctx); len(problems) > 0 {
		return &plan.RefusedError{Reasons: problems}
	}
	if t.h.Done() {
		t.Env.Story("the objects are in %s already, and its controllers work on them", t.to.Name())
		return nil
	}
	question := fmt.Sprintf("Create %s in %s, and let its controllers manage cluster %s?", text.Count(len(all), "object"), t.to.Name(), t.c.Name)
	if err := t.confirmed(ctx, t.yes, question, "review with --dry-run, then pass --yes"); err != nil {
		return err
	}
	if err := t.h.Create(ctx); err != nil {
		return &plan.HalfwayError{Err: err}
	}
	t.Env.Story("created %s in %s; the Cluster is paused", text.Count(len(all), "object"), t.to.Name())
	return nil
}

// release removes the pause.
func (t *transfer) release(ctx context.Context) error {
	if t.h.Done() {
		return nil
	}
	if err := t.h.Pause(ctx, false); err != nil {
		return err
	}
	t.Env.Story("the controllers work on it")
	return nil
}

func (t *transfer) tellWaiting(waiting []string) {
	t.Env.Story("waiting for %s: %s", text.Count(len(waiting), "object"), waiting[0])
}

// managementObjects converts the objects of a cluster to those that package management
// creates.
func managementObjects(all []cluster.Object) (out []management.Object) {
	for _, x := range all {
		o := management.Object{Unstructured: unstructured.Unstructured{Object: x.Content}, Status: x.Status}
		if w := x.Owner; w != nil {
			o.Owner = &metav1.OwnerReference{APIVersion: w.APIVersion, Kind: w.Kind, Name: w.Name, Controller: &w.Controller, BlockOwnerDeletion: &w.Controller}
		}
		out = append(out, o)
	}
	return out
}
