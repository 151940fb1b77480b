package eks

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

type tokenOptions struct {
	account.Flags
	cluster, role string
}

func newToken(e *env.Env) *cobra.Command {
	o := &tokenOptions{Flags: account.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create a token for an EKS cluster, as a credential plugin of kubectl",
		Long: `Create a token for an EKS cluster with your AWS identity, and print it as the
ExecCredential of a kubectl credential plugin, in the version that
KUBERNETES_EXEC_INFO requests. The token expires after 14 minutes; kubectl then
requests a new one. The token is secret.

EKS is not called: an unknown cluster or missing access is detected only when the
token is used. With --role-arn the role is assumed first.`,
		Example: `  clusterawsadm eks token -n default_demo -r eu-west-1
  kubectl config set-credentials demo --exec-api-version=client.authentication.k8s.io/v1 --exec-interactive-mode=IfAvailable \
    --exec-command=clusterawsadm --exec-arg=eks,token,--cluster-name=default_demo,--region=eu-west-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&o.cluster, "cluster-name", "n", "", "`NAME` of the cluster in EKS (required)")
	_ = cmd.MarkFlagRequired("cluster-name") // fails only for an unknown flag
	cmd.Flags().StringVar(&o.role, "role-arn", "", "`ARN` of a role to assume")
	o.Add(cmd.Flags(), "r", "from the environment")
	return cmd
}

func (o *tokenOptions) run(ctx context.Context) (err error) {
	a, err := o.OpenPlain(ctx, "")
	if err != nil {
		return err
	}
	defer a.Close(&err)
	cfg := a.Config
	if o.role != "" {
		cfg = eks.Assume(cfg, o.role)
	}
	token, err := eks.NewToken(ctx, cfg, o.cluster)
	if err != nil {
		return err
	}
	answer, err := eks.ExecCredential(token, o.Env.Getenv("KUBERNETES_EXEC_INFO"))
	if err != nil {
		return err
	}
	_, err = o.Env.Out.Write(answer)
	return err
}
