// Package controller has the commands below "controller", for the AWS credentials of
// CAPA's controller.
package controller

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
)

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Manage the AWS credentials of a management cluster",
		Long: `Manage the AWS credentials of the controller of Cluster API Provider AWS in a
management cluster. The controller reads them from a Secret when it starts: after a
change restart it with 'controller rollout-controller'.`,
	}
	cmd.AddCommand(newPrint(e), newUpdate(e), newZero(e), newRollout(e), newPodIdentity(e))
	return cmd
}

// options are the options that all commands about the management cluster share.
type options struct {
	kube.Flags
	namespace string
}

func (o *options) add(cmd *cobra.Command) {
	o.Add(cmd.Flags())
	cmd.Flags().StringVar(&o.namespace, "namespace", management.DefaultNamespace, "namespace of the provider")
}

type rolloutOptions struct {
	options
	wait    bool
	timeout time.Duration
}

func newRollout(e *env.Env) *cobra.Command {
	o := &rolloutOptions{options: options{Flags: kube.Flags{Env: e}}}
	cmd := &cobra.Command{
		Use:   "rollout-controller",
		Short: "Restart the controller, so that it reads its credentials again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the new pods are available")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "maximum time to wait with --wait (0: no limit)")
	return cmd
}

func (o *rolloutOptions) run(ctx context.Context) error {
	c, err := o.Connect()
	if err != nil {
		return err
	}
	if err := c.Rollout(ctx, o.namespace); err != nil {
		return err
	}
	o.Env.Story("deployment %s/%s is restarting", o.namespace, management.ControllerDeployment)
	if !o.wait {
		return nil
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, &timeoutError{o.timeout})
		defer cancel()
	}
	if err := c.AwaitRollout(ctx, o.namespace, func(state string) { o.Env.Story("%s", state) }); err != nil {
		return err
	}
	o.Env.Story("all pods are updated and available")
	return nil
}

// timeoutError says that a rollout took longer than the timeout.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return "the rollout is not complete after " + e.after.String() + " (--timeout) and continues in the background"
}
