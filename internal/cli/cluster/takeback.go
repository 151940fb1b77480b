package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type takebackOptions struct {
	*flags
	from, context, namespace, output string
	keep, lost, yes                  bool
}

func newTakeback(f *flags) *cobra.Command {
	o := &takebackOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "takeback NAME {--from KUBECONFIG | --lost}",
		Short: "Take a cluster back from a management cluster",
		Long: `Take a cluster back from the controllers of a management cluster: one that was handed
over, or one that they have made.

The command pauses the Cluster there, and makes a manifest of its objects. It stores
the keys of the cluster where other commands look for them, adds the tags by which
they find resources, and checks that a plan of the manifest is empty. Then it writes
the manifest, and removes the objects from the management cluster without their
finalizers, so that nothing in AWS is deleted. With --keep they stay there, paused.

Cluster API puts a bootstrap token into the launch templates of machine pools, which
expires without the controllers. The command then makes another token and new versions
of the launch templates. It says so before it asks, and replaces no machine.

If the cluster is not as its objects say, the command changes nothing.

If the management cluster does not exist any more, use --lost: then the command only
removes the record that it manages the cluster, after which other commands work again.`,
		Example: `  clusterawsadm cluster takeback demo --from management.kubeconfig -o demo.yaml
  clusterawsadm cluster takeback demo --lost --region eu-west-1`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f.addIdentities(cmd)
	cmd.Flags().StringVar(&o.from, "from", "", "kubeconfig `FILE` of the management cluster")
	cmd.Flags().StringVar(&o.context, "from-context", "", "`NAME` of the context to use (default: the current one)")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "`NAMESPACE` of the Cluster")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "`FILE` for the manifest; it is not overwritten (default: NAME.yaml)")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "keep the objects in the management cluster, paused")
	cmd.Flags().BoolVar(&o.lost, "lost", false, "the management cluster does not exist any more: forget that it manages the cluster")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	return cmd
}

func (o *takebackOptions) run(ctx context.Context, name string) (err error) {
	if err := o.checkFlags(); err != nil {
		return err
	}
	if o.lost {
		return o.forget(ctx, name)
	}
	if o.output == "" {
		o.output = name + ".yaml"
	}
	from, err := kube.ConnectTo(o.from, o.context)
	if err != nil {
		return &env.UsageError{Err: err}
	}
	o.RunTime()
	t, err := from.Takeback(ctx, o.namespace, name)
	if errors.As(err, new(*management.MissingError)) && o.takenBefore(ctx, name) {
		o.Env.Story("an earlier run has taken cluster %s back: a plan of %s is empty", name, o.output)
		return nil
	}
	if err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	if t.Taken() {
		o.Env.Story("an earlier run has taken cluster %s back, and has begun to remove its objects", name)
		return o.remove(ctx, t, from)
	}
	announced, err := o.announce(ctx, t, from)
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, name, from); err != nil {
		return err
	}
	if err := o.pause(ctx, t, name); err != nil {
		return err
	}
	if err := o.take(ctx, t, from, announced); err != nil {
		return errors.Join(err, t.Undo(context.WithoutCancel(ctx)))
	}
	return o.remove(ctx, t, from)
}

// checkFlags refuses flags that have no meaning together.
func (o *takebackOptions) checkFlags() error {
	switch {
	case o.lost && (o.from != "" || o.context != "" || o.output != "" || o.keep):
		return env.Usagef("--lost cannot be used with --from, --from-context, --output or --keep: it is for a management cluster that does not exist any more")
	case !o.lost && o.from == "":
		return env.Usagef("no management cluster: use --from KUBECONFIG, or --lost if it does not exist any more")
	}
	return nil
}

// takenBefore reports whether an earlier run has taken the cluster back and ended before it
// could say so: the file with its manifest exists, a plan of it is empty, and no management
// cluster manages the cluster.
func (o *takebackOptions) takenBefore(ctx context.Context, name string) bool {
	data, err := new(input.Reader).FileContext(ctx, o.output)
	if err != nil {
		return false
	}
	m, err := o.loadTaken(ctx, input.Source{Name: o.output, Data: data})
	if err != nil || m.Name() != name {
		return false
	}
	s, err := o.openTaken(ctx, m)
	if err != nil {
		return false
	}
	defer s.Close(&err)
	// A run that has nothing to do changes nothing, and neither does one that is declined.
	_, err = reconcile.Open(m, s.target).Apply(ctx, cluster.Options{Confirm: func(plan.Plan) (bool, error) { return false, nil }})
	return err == nil
}

// openTaken opens the account of the cluster.
func (o *takebackOptions) openTaken(ctx context.Context, m *reconcile.Manifest) (*session, error) {
	s, err := o.open(ctx, m.Region())
	if err != nil {
		return nil, err
	}
	s.target.Wait = plan.Infrastructure
	if m.MostWait() != plan.Infrastructure {
		s.target.Wait = plan.APIServer // it knows from which template a machine was made
	}
	return s, nil
}

// forget takes the cluster back from a management cluster that does not exist any more.
func (o *takebackOptions) forget(ctx context.Context, name string) (err error) {
	if err := reconcile.CheckName(name); err != nil {
		return &env.UsageError{Err: err}
	}
	s, err := o.open(ctx, o.Region)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	was, err := reconcile.OpenByName(name, s.target).Forget(ctx, func(m plan.Manager) (bool, error) {
		question := fmt.Sprintf("Forget that %s manages cluster %s? If its controllers still run, they will work against other commands.", m.Name, name)
		return true, o.confirmed(ctx, o.yes, question, "pass --yes")
	})
	switch {
	case err != nil:
		return err
	case was == nil:
		o.Env.Story("no management cluster manages cluster %s in %s", name, s.Config.Region)
	default:
		o.Env.Story("forgot that %s manages cluster %s; nothing in AWS was changed", was.Name, name)
	}
	return nil
}

func (o *takebackOptions) confirm(ctx context.Context, name string, from *management.Cluster) error {
	what := "and remove its objects there"
	if o.keep {
		what = "and leave its objects there paused"
	}
	return o.confirmed(ctx, o.yes, fmt.Sprintf("Take cluster %s from %s, %s?", name, from.Name(), what), "pass --yes")
}

// pause pauses the Cluster, and reads its objects again when no controller works on them
// any more.
func (o *takebackOptions) pause(ctx context.Context, t *management.Takeback, name string) error {
	if err := t.Pause(ctx); err != nil {
		return err
	}
	o.Env.Story("paused Cluster %s", name)
	if err := t.AwaitPause(ctx); err != nil {
		return errors.Join(err, t.Undo(context.WithoutCancel(ctx)))
	}
	return t.Refresh(ctx)
}

// read makes the manifest of the objects, and loads it with the keys of the cluster.
func (o *takebackOptions) read(ctx context.Context, t *management.Takeback) (manifest []byte, m *reconcile.Manifest, err error) {
	if manifest, err = reconcile.ManifestOf(t.Objects()); err != nil {
		return nil, nil, err
	}
	if err := o.checkFile(ctx, manifest); err != nil {
		return nil, nil, err
	}
	keys, err := documents(t.Secrets())
	if err != nil {
		return nil, nil, err
	}
	m, err = o.loadTaken(ctx, input.Source{Name: o.output, Data: manifest}, input.Source{Name: "the Secrets of the cluster", Data: keys})
	if err != nil {
		return nil, nil, fmt.Errorf("the manifest of the objects: %w", err)
	}
	return manifest, m, nil
}

// announce says what the takeback changes in AWS, besides keys and tags. If it would be
// refused, that is the error.
func (o *takebackOptions) announce(ctx context.Context, t *management.Takeback, from *management.Cluster) (steps []plan.Step, err error) {
	_, m, err := o.read(ctx, t)
	if err != nil {
		return nil, err
	}
	s, err := o.openTaken(ctx, m)
	if err != nil {
		return nil, err
	}
	defer s.Close(&err)
	manager, err := manager(ctx, from)
	if err != nil {
		return nil, err
	}
	if steps, err = reconcile.Open(m, s.target).PlanTakeback(ctx, manager); err != nil || len(steps) == 0 {
		return nil, err
	}
	o.Env.Story("machines that pools add boot with data of the controllers, which may have a bootstrap token that expires without them. This command changes that, and replaces no machine:")
	for _, x := range steps {
		what := "a new version, with which machines that the pool adds can join"
		if x.Resource.Kind() != reconcile.KindLaunchTemplate {
			what = "a new bootstrap token in the cluster, which is stored in AWS for the machines of pools"
		}
		o.Env.Story("  %s: %s", x.Resource, what)
	}
	return steps, nil
}

// take takes the cluster back, and writes the manifest.
func (o *takebackOptions) take(ctx context.Context, t *management.Takeback, from *management.Cluster, announced []plan.Step) (err error) {
	manifest, m, err := o.read(ctx, t)
	if err != nil {
		return err
	}
	s, err := o.openTaken(ctx, m)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	manager, err := manager(ctx, from)
	if err != nil {
		return err
	}
	res, err := reconcile.Open(m, s.target).Takeback(ctx, manager, announced)
	if err != nil {
		return err
	}
	if n := res.Plan.Count(plan.Create, plan.Update) - len(announced); n > 0 {
		o.Env.Story("recorded %s of the cluster: keys and tags", text.Count(n, "resource"))
	}
	if m, err = o.loadTaken(ctx, input.Source{Name: o.output, Data: manifest}); err != nil {
		return err
	}
	p, err := reconcile.Open(m, s.target).Plan(ctx)
	if err != nil {
		return err
	}
	if !p.Empty() {
		return &plan.HalfwayError{Err: errors.New("a plan of the manifest is not empty: the cluster has changed in the meantime; run it again")}
	}
	if err := files.Replace(o.output, manifest, 0o644); err != nil { // a manifest without secrets
		return &plan.HalfwayError{Err: fmt.Errorf("the cluster is taken back, and its manifest is not written: %w", err)}
	}
	o.Env.Story("wrote %s; a plan of it is empty", o.output)
	return nil
}

// manager identifies a management cluster.
func manager(ctx context.Context, c *management.Cluster) (plan.Manager, error) {
	id, err := c.ID(ctx)
	return plan.Manager{ID: id, Name: c.Name()}, err
}

// checkFile refuses to overwrite a file, unless an earlier run has written the same manifest.
func (o *takebackOptions) checkFile(ctx context.Context, manifest []byte) error {
	_, err := isWritten(ctx, o.output, manifest)
	return err
}

// loadTaken loads the manifest with the identities of the management cluster.
func (o *takebackOptions) loadTaken(ctx context.Context, sources ...input.Source) (*reconcile.Manifest, error) {
	if len(o.identities) == 0 && (bytes.Contains(sources[0].Data, []byte("AWSClusterRoleIdentity")) || bytes.Contains(sources[0].Data, []byte("AWSClusterStaticIdentity"))) {
		o.identities = []string{o.from}
		o.Env.Story("note: other commands need --identities %s, for the identity of the cluster", o.from)
	}
	return o.loadSources(ctx, sources)
}

// documents encodes objects as YAML documents.
func documents(objects []map[string]any) (out []byte, err error) {
	for _, x := range objects {
		data, err := yaml.Marshal(x)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), data...)
	}
	return out, nil
}

// remove removes the objects, unless they are kept.
func (o *takebackOptions) remove(ctx context.Context, t *management.Takeback, from *management.Cluster) error {
	if o.keep {
		o.Env.Story("the objects stay in %s, paused: a controller that works on them again would fight with other commands", from.Name())
		return nil
	}
	n, err := t.Remove(ctx)
	if err != nil {
		return &plan.HalfwayError{Err: err}
	}
	o.Env.Story("removed %s from %s; nothing in AWS was deleted", text.Count(n, "object"), from.Name())
	return nil
}
