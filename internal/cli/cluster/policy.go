package cluster

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
)

type policyOptions struct {
	*flags
	output choice
	kind   choice
}

func newPolicy(f *flags) *cobra.Command {
	o := &policyOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "policy [-f FILE]",
		Short: "Print the IAM policy that the cluster commands need",
		Long: `Print the IAM policy of somebody who runs the cluster commands: exactly the
actions that they call. With a manifest it is narrowed down to what that cluster
needs: its region, its buckets, the roles of its machines, the identities it names.
It calls nobody.`,
		Example: `  clusterawsadm cluster policy > policy.json
  clusterawsadm cluster policy -f demo.yaml | aws iam create-policy --policy-name demo --policy-document file:///dev/stdin`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.files) > 0 && typed(cmd, "kind") {
				return env.Usagef("--kind or -f, but not both: the manifest says who runs the control plane")
			}
			return o.run(cmd.Context())
		},
	}
	output(cmd, &o.output, "json", "yaml")
	o.kind = choice{"any", []string{"any", string(permission.SelfManaged), string(permission.EKS)}}
	cmd.Flags().Var(&o.kind, "kind", "who runs the control planes, where there is no manifest: "+strings.Join(o.kind.of, ", "))
	complete(cmd, "kind", o.kind.of)
	return cmd
}

func (o *policyOptions) run(ctx context.Context) error {
	scope := permission.Scope{Region: o.Region}
	if o.kind.value != "any" {
		scope.Kind = permission.Kind(o.kind.value)
	}
	if len(o.files) > 0 {
		m, err := o.load(ctx)
		if err != nil {
			return err
		}
		scope = permission.Of(m)
		if len(m.Identity) > 0 {
			o.Env.Story("note: the manifest's identity needs all of this; whoever runs the command needs only to become it")
		}
	} else if scope.Kind == permission.Any {
		o.Env.Story("note: IAM takes this in two managed policies or inline, for it is too large for one: --kind or -f make it smaller")
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), permission.Policy(scope))
}
