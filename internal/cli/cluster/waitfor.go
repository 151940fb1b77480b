package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/spf13/cobra"
)

type waitForOptions struct {
	manifestFlags
	condition choice
}

// waitsForAtMost is the time limit of "cluster wait" without --timeout.
const waitsForAtMost = 30 * time.Minute

func newWaitFor(f *flags) *cobra.Command {
	o := &waitForOptions{manifestFlags: manifestFlags{flags: f}, condition: choice{
		value: string(cluster.ConditionReady),
		of: []string{
			string(
				cluster.ConditionInfrastructure,
			),
			string(cluster.ConditionAPI),
			string(cluster.ConditionJoined),
			string(cluster.ConditionReady),
			string(cluster.ConditionDeleted),
		},
		also: map[string]string{"condition=Ready": string(cluster.ConditionReady), "deleted": string(cluster.ConditionDeleted)},
	}}
	cmd := &cobra.Command{
		Use:   "wait {-f FILE | NAME}",
		Short: "Wait until a cluster is ready, or deleted",
		Long: `Wait for a cluster that another process creates, changes or deletes. The command only
reads, and does not take the lock. It waits until

  infrastructure  AWS runs the machines
  api             the API server answers
  joined          the API server answers, and all machines have joined
  ready           all machines have joined, all Nodes are ready, and the pods
                  of add-ons run
  delete          the cluster has no resources any more

These are the words of --wait of 'cluster create', too, but for the last one.

With a manifest, machines and add-ons that do not exist yet are waited for, too. With
the name, the machines are those that exist, and those that Auto Scaling groups and node
groups want, and the add-ons are CoreDNS and kube-proxy: after a command that adds
others, use the manifest.

The exit code is 0 when the state is reached, and 5 when it is not within --timeout, 30
minutes by default. The error then lists the likely reasons.`,
		Example: `  clusterawsadm cluster wait demo --for=ready --timeout 15m
  clusterawsadm cluster wait -f demo.yaml --for=joined
  clusterawsadm cluster wait demo --for=delete`,
		Args: cobra.MaximumNArgs(1),
		PreRun: func(*cobra.Command, []string) {
			if f.timeout == 0 {
				f.timeout = waitsForAtMost
			}
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.addManifest(cmd)
	cmd.Flags().Var(&o.condition, "for", "the `STATE` to wait for: infrastructure, api, joined, ready, delete")
	complete(cmd, "for", o.condition.of)
	return cmd
}

func (o *waitForOptions) run(ctx context.Context, args []string) (err error) {
	condition := cluster.Condition(o.condition.value)
	x, err := o.subject(ctx, args, runFlags{})
	if err != nil {
		return err
	}
	defer x.end(ctx, &err)
	err = o.await(ctx, x, condition)
	if errors.Is(err, cluster.ErrNotFound) {
		return o.notFound(x.cluster.Name, x.cluster.Region)
	}
	return err
}

// await waits for a state of a cluster, and says so.
func (f *flags) await(ctx context.Context, x *subject, condition cluster.Condition) error {
	c, s := x.cluster, x.session
	began := s.Clock.Now()
	if err := c.AwaitCondition(ctx, condition, func(missing string) {
		f.Env.Story("%s  waiting for cluster %s in %s to be %s: %s", rounded(s.Clock.Now().Sub(began)), c.Name, c.Region, named(condition), missing)
	}); err != nil {
		return err
	}
	f.Env.Story("Cluster %s in %s is %s (%s).", c.Name, c.Region, named(condition), rounded(s.Clock.Now().Sub(began)))
	return nil
}

// named is a condition as a predicate of the cluster.
func named(condition cluster.Condition) string {
	switch condition {
	case cluster.ConditionInfrastructure:
		return "running"
	case cluster.ConditionAPI:
		return "available"
	case cluster.ConditionDeleted:
		return "deleted"
	case cluster.ConditionJoined, cluster.ConditionReady:
	}
	return string(condition)
}
