package cluster

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/management"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type takebackOptions struct {
	manifestFlags
	output                   destination
	from, context, namespace string
	keep, lost, yes          bool
}

func newTakeback(f *flags) *cobra.Command {
	o := &takebackOptions{manifestFlags: manifestFlags{flags: f}}
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
		Example: `  clusterawsadm cluster takeback demo --from management.kubeconfig --to demo.yaml
  clusterawsadm cluster takeback demo --lost --region eu-west-1`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.addIdentities(cmd)
	cmd.Flags().StringVar(&o.from, "from", "", "kubeconfig `FILE` of the management cluster")
	cmd.Flags().StringVar(&o.context, "from-context", "", "`NAME` of the context to use (default: the current one)")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "`NAMESPACE` of the Cluster")
	o.output.addTo(cmd, "`FILE` for the manifest; it is not overwritten (default: NAME.yaml)", "yaml")
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
	if o.output.to == "" {
		o.output.to = name + ".yaml"
	}
	from, err := management.Connect(management.Options{Kubeconfig: o.from, Context: o.context, UserAgent: kube.UserAgent()})
	if err != nil {
		return &env.UsageError{Err: err}
	}
	o.RunTime()
	earlier, err := new(input.Reader).FileContext(ctx, o.output.to)
	if err != nil {
		earlier = nil // a file that is not read is found when it is to be written
	}
	var s *session
	defer func() {
		if s != nil {
			s.Close(&err)
		}
	}()
	t := management.Takeback{
		From: from, Namespace: o.namespace, Name: name, File: o.output.to, Earlier: earlier, Keep: o.keep,
		Load:    o.loadTaken,
		Check:   o.checkFile,
		Confirm: func(ctx context.Context, steps []plan.Step) error { return o.confirm(ctx, name, from, steps) },
		Write:   func(manifest []byte) error { return files.Replace(o.output.to, manifest, 0o644) }, // it has no secrets
		Tell:    func(text string) { o.Env.Story("%s", text) },
		Target: func(ctx context.Context, m *reconcile.Manifest) (target cluster.Target, err error) {
			if s == nil {
				if s, err = o.open(ctx, m.Region()); err != nil {
					return target, err
				}
			}
			return s.target, nil
		},
	}
	return t.Run(ctx)
}

// checkFlags refuses flags that have no meaning together.
func (o *takebackOptions) checkFlags() error {
	switch {
	case o.lost && (o.from != "" || o.context != "" || o.output.to != "" || o.keep):
		return env.Usagef("--lost cannot be used with --from, --from-context, --to or --keep: it is for a management cluster that does not exist any more")
	case !o.lost && o.from == "":
		return env.Usagef("no management cluster: use --from KUBECONFIG, or --lost if it does not exist any more")
	}
	return nil
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

// confirm says what the takeback changes in AWS, besides keys and tags, and asks.
func (o *takebackOptions) confirm(ctx context.Context, name string, from *management.Cluster, steps []plan.Step) error {
	if len(steps) > 0 {
		o.Env.Story(
			"machines that pools add boot with data of the controllers, which may have a bootstrap token that expires without them. This command changes that, and replaces no machine:",
		)
	}
	for _, x := range steps {
		what := "a new version, with which machines that the pool adds can join"
		if x.Resource.Kind() != reconcile.KindLaunchTemplate {
			what = "a new bootstrap token in the cluster, which is stored in AWS for the machines of pools"
		}
		o.Env.Story("  %s: %s", x.Resource, what)
	}
	what := "and remove its objects there"
	if o.keep {
		what = "and leave its objects there paused"
	}
	return o.confirmed(ctx, o.yes, fmt.Sprintf("Take cluster %s from %s, %s?", name, from.Name(), what), "pass --yes")
}

// checkFile refuses to overwrite a file, unless an earlier run has written the same manifest.
func (o *takebackOptions) checkFile(ctx context.Context, manifest []byte) error {
	_, err := isWritten(ctx, o.output.to, manifest)
	return err
}

// loadTaken loads the manifest with the identities of the management cluster.
func (o *takebackOptions) loadTaken(ctx context.Context, sources []input.Source) (*reconcile.Manifest, error) {
	if len(o.identities) == 0 &&
		(bytes.Contains(sources[0].Data, []byte("AWSClusterRoleIdentity")) || bytes.Contains(sources[0].Data, []byte("AWSClusterStaticIdentity"))) {
		o.identities = []string{o.from}
		o.Env.Story("note: other commands need --identities %s, for the identity of the cluster", o.from)
	}
	m, err := o.loadSources(ctx, sources)
	return m.Manifest, err
}
