package controller

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

type podIdentityOptions struct {
	account.Flags
	eks.PodIdentity
}

func newPodIdentity(e *env.Env) *cobra.Command {
	o := &podIdentityOptions{Flags: account.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "use-pod-identity",
		Short: "Let the controller use an IAM role by EKS Pod Identity",
		Long: `Let the controller of a management cluster that is an EKS cluster use an IAM role
by EKS Pod Identity. An association that is there already gets the role; one that
has it is left alone.

The cluster needs the add-on eks-pod-identity-agent, and the role has to trust
pods.eks.amazonaws.com.`,
		Example: `  clusterawsadm controller use-pod-identity -n management
  clusterawsadm controller zero-credentials && clusterawsadm controller rollout-controller`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	p.StringVarP(&o.Cluster, "cluster-name", "n", "", "`NAME` of the management cluster in EKS (required)")
	_ = cmd.MarkFlagRequired("cluster-name") // it exists: there is no other error
	p.StringVar(&o.Namespace, "namespace", management.DefaultNamespace, "namespace of the service account")
	p.StringVar(&o.ServiceAccount, "service-account", management.ControllerDeployment, "service account of the controller")
	p.StringVar(&o.RoleName, "role-name", "controllers.cluster-api-provider-aws.sigs.k8s.io", "`NAME` of the role, or its ARN")
	o.Add(p, "r", "the environment's")
	return cmd
}

func (o *podIdentityOptions) run(ctx context.Context) (err error) {
	a, err := o.OpenPlain(ctx, "")
	if err != nil {
		return err
	}
	defer a.Close(&err)
	var unheard error
	done, err := eks.Associate(ctx, a.Config, o.PodIdentity, func() {
		_, unheard = fmt.Fprintf(o.Env.Out, "Creating pod association for service account %s.....\n", o.ServiceAccount)
	})
	if err != nil {
		return err
	}
	if unheard != nil {
		return unheard
	}
	switch done.Outcome {
	case eks.Created:
		_, err = fmt.Fprintf(o.Env.Out, "Created pod identity association (%s)\n", done.ID)
	case eks.Updated:
		_, err = fmt.Fprintf(o.Env.Out, "Updated pod identity to use role %s\n", o.RoleName)
	case eks.Unchanged:
		_, err = fmt.Fprintf(o.Env.Out, "Pod identity association (%s) already uses role %s, no action taken\n", done.ID, o.RoleName)
	}
	if err == nil && done.Outcome != eks.Unchanged {
		o.Env.Story("%s/%s has role %s once its pods are restarted, provided that they get no other credentials "+
			"(see 'clusterawsadm controller zero-credentials') and that the add-on eks-pod-identity-agent is installed", o.Namespace, o.ServiceAccount, done.RoleARN)
	}
	return err
}
