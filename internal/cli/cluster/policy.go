package cluster

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
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
		Long: `Print the IAM policy that a user of the cluster commands needs: exactly the actions
that they call. With a manifest the policy is limited to that cluster: to its
region, its buckets, the roles of its machines and its identities. AWS is not
called.`,
		Example: `  clusterawsadm cluster policy > policy.json
  clusterawsadm cluster policy -f demo.yaml | aws iam create-policy --policy-name demo --policy-document file:///dev/stdin`,
		Args: manifestOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.files) > 0 && typed(cmd, "kind") {
				return env.Usagef("use --kind or -f, not both: the manifest says who runs the control plane")
			}
			return o.run(cmd.Context())
		},
	}
	f.addManifest(cmd)
	output(cmd, &o.output, "json", "yaml")
	o.kind = choice{value: "any", of: []string{"any", string(reconcile.SelfManaged), string(reconcile.EKS)}}
	cmd.Flags().Var(&o.kind, "kind", "who runs the control plane, without a manifest: "+strings.Join(o.kind.of, ", "))
	complete(cmd, "kind", o.kind.of)
	return cmd
}

func (o *policyOptions) run(ctx context.Context) error {
	policy, err := o.policy(ctx)
	if err != nil {
		return err
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), policy)
}

// policy returns the policy for the manifest, or for the flags without one.
func (o *policyOptions) policy(ctx context.Context) (reconcile.PolicyDocument, error) {
	if len(o.files) > 0 {
		m, err := o.load(ctx)
		if err != nil {
			return reconcile.PolicyDocument{}, err
		}
		if m.Summary().AssumesRole {
			o.Env.Story("note: the identity of the manifest needs this policy; the caller needs only sts:AssumeRole on it")
		}
		return m.Policy(), nil
	}
	if o.kind.value == "any" {
		o.Env.Story("note: this is too large for one managed policy of IAM: split it in two, use an inline policy, or limit it with --kind or -f")
		return reconcile.Policy(o.Region, reconcile.AnyControlPlane), nil
	}
	return reconcile.Policy(o.Region, reconcile.ControlPlane(o.kind.value)), nil
}
