// Package gc has the commands below "gc".
package gc

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
)

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Configure garbage collection in a management cluster",
		Long: `Configure the garbage collection of Cluster API Provider AWS: whether the deletion
of a cluster also deletes the load balancers, target groups and security groups
that the cloud controller created.

For an EKS cluster the annotation is set on the AWSManagedControlPlane, whose
controller reads it, and on the AWSManagedCluster.`,
	}
	cmd.AddCommand(newSwitch(e, true), newSwitch(e, false), newConfigure(e))
	return cmd
}

type options struct {
	kube.Flags
	cluster, namespace string
	tasks              []string
}

func (o *options) add(cmd *cobra.Command) {
	o.DefaultToHome()
	o.Add(cmd.Flags())
	cmd.Flags().StringVar(&o.cluster, "cluster-name", "", "`NAME` of the Cluster object (required)")
	_ = cmd.MarkFlagRequired("cluster-name") // fails only for an unknown flag
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "namespace of the Cluster object")
}

func newSwitch(e *env.Env, on bool) *cobra.Command {
	o := &options{Flags: kube.Flags{Env: e}}
	word, done := "disable", "Disabled"
	long := "When the cluster is deleted, keep the AWS resources that the cloud controller created."
	if on {
		word, done = "enable", "Enabled"
		long = "When the cluster is deleted, also delete the AWS resources that the cloud controller created."
	}
	cmd := &cobra.Command{
		Use:     word,
		Short:   fmt.Sprintf("%s%s the garbage collection for a cluster", string(word[0]-'a'+'A'), word[1:]),
		Long:    long,
		Example: fmt.Sprintf("  clusterawsadm gc %s --cluster-name demo --namespace default", word),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(done, func(c *management.Cluster) ([]management.Annotated, error) {
				return c.SetGC(cmd.Context(), o.namespace, o.cluster, on)
			})
		},
	}
	o.add(cmd)
	return cmd
}

func newConfigure(e *env.Env) *cobra.Command {
	o := &options{Flags: kube.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "configure",
		Short: "Set the tasks of the garbage collection for a cluster",
		Long:  "Set the tasks of the garbage collection for a cluster. Without --gc-task it runs all tasks.",
		Example: `  clusterawsadm gc configure --cluster-name demo --gc-task load-balancer --gc-task target-group
  clusterawsadm gc configure --cluster-name demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.configure(cmd.Context()) },
	}
	o.add(cmd)
	cmd.Flags().StringSliceVar(&o.tasks, "gc-task", nil, "`TASK` of the garbage collection: load-balancer, target-group or security-group; can be repeated")
	_ = cmd.RegisterFlagCompletionFunc(
		"gc-task",
		cobra.FixedCompletions(management.GCTasks(), cobra.ShellCompDirectiveNoFileComp),
	) // cannot fail: the flag has no completion yet
	return cmd
}

func (o *options) configure(ctx context.Context) error {
	if err := management.CheckGCTasks(o.tasks); err != nil {
		return &env.UsageError{Err: fmt.Errorf("configuring garbage collection: %w", err)}
	}
	return o.run("Configuring", func(c *management.Cluster) ([]management.Annotated, error) {
		return c.SetGCTasks(ctx, o.namespace, o.cluster, o.tasks)
	})
}

// run changes the annotations, and prints the result.
func (o *options) run(done string, annotate func(*management.Cluster) ([]management.Annotated, error)) error {
	c, err := o.Connect()
	if err != nil {
		return err
	}
	annotated, err := annotate(c)
	for _, a := range annotated {
		verb := "annotated"
		if a.Already {
			verb = "unchanged:"
		}
		o.Env.Story("%s %s %s/%s", verb, a.Kind, a.Namespace, a.Name)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Env.Out, "%s garbage collection for cluster %s/%s\n", done, o.namespace, o.cluster)
	return err
}
