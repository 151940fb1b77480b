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
		Short: "Give the controller an IAM role with EKS Pod Identity",
		Long: `Give the controller of a management cluster in EKS an IAM role with EKS Pod
Identity. An existing association is updated if it has another role.

The cluster requires the add-on eks-pod-identity-agent, and the role must trust
pods.eks.amazonaws.com.`,
		Example: `  clusterawsadm controller use-pod-identity -n management
  clusterawsadm controller zero-credentials && clusterawsadm controller rollout-controller`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	p.StringVarP(&o.Cluster, "cluster-name", "n", "", "`NAME` of the management cluster in EKS (required)")
	_ = cmd.MarkFlagRequired("cluster-name") // fails only for an unknown flag
	p.StringVar(&o.Namespace, "namespace", management.DefaultNamespace, "namespace of the service account")
	p.StringVar(&o.ServiceAccount, "service-account", management.ControllerDeployment, "service account of the controller")
	p.StringVar(&o.RoleName, "role-name", "controllers.cluster-api-provider-aws.sigs.k8s.io", "`NAME` of the role, or its ARN")
	o.Add(p, "r", "from the environment")
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
		o.Env.Story("%s/%s has role %s after its pods are restarted, if they have no other credentials "+
			"(see 'clusterawsadm controller zero-credentials') and the add-on eks-pod-identity-agent is installed", o.Namespace, o.ServiceAccount, done.RoleARN)
	}
	return err
}
