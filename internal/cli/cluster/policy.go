package cluster

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type policyOptions struct {
	manifestFlags
	output choice
	kind   choice
	split  bool

	buckets, keys []string // of backups
}

func newPolicy(f *flags) *cobra.Command {
	o := &policyOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "policy [-f FILE]",
		Short: "Print the IAM policy that the cluster commands need",
		Long: `Print the IAM policy that a user of the cluster commands needs: exactly the actions
that they call. With a manifest the policy is limited to that cluster: to its
region, its buckets, the roles of its machines and its identities. AWS is not
called.

Backups in S3 and with keys of KMS, and --restore-bucket, need more: name the buckets
with --backup-bucket and the keys with --backup-kms-key.

A managed policy of IAM has at most 6,144 characters, and white space does not
count. With --split, the command prints as many policies as it takes, each on a
line of its own. A role or user needs all of them. Without --split, it prints one
policy, and a warning if that is too large for a managed policy. The inline
policies of a role may have 10,240 characters in total, those of a user 2,048.`,
		Example: `  clusterawsadm cluster policy > policy.json
  clusterawsadm cluster policy -f demo.yaml --split | while read -r policy; do
    arn=$(aws iam create-policy --policy-name "demo-$((n += 1))" \
      --policy-document "$policy" --query Policy.Arn --output text)
    aws iam attach-role-policy --role-name ROLE --policy-arn "$arn"
  done`,
		Args: manifestOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.files) > 0 && typed(cmd, "kind") {
				return env.Usagef("use --kind or -f, not both: the manifest says who runs the control plane")
			}
			if o.split && o.output.value != "json" {
				return env.Usagef("--split prints one policy of JSON on each line: use it without -o %s", o.output.value)
			}
			return o.run(cmd.Context())
		},
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "json", "yaml")
	o.kind = choice{value: "any", of: []string{"any", string(reconcile.SelfManaged), string(reconcile.EKS)}}
	cmd.Flags().Var(&o.kind, "kind", "who runs the control plane, without a manifest: "+strings.Join(o.kind.of, ", "))
	complete(cmd, "kind", o.kind.of)
	cmd.Flags().
		StringArrayVar(&o.buckets, "backup-bucket", nil, "add what backups and restores need in the `BUCKET` of --to s3://… or --restore-bucket; can be repeated")
	cmd.Flags().
		StringArrayVar(&o.keys, "backup-kms-key", nil, "add what backups and restores need for the KMS `KEY`: an ARN or ID; an alias allows all keys of the region; can be repeated")
	cmd.Flags().BoolVar(&o.split, "split", false, "print policies that fit IAM's limit for managed policies, one on each line")
	return cmd
}

func (o *policyOptions) run(ctx context.Context) error {
	policy, err := o.policy(ctx)
	if err != nil {
		return err
	}
	if o.split {
		return o.lines(reconcile.SplitPolicy(policy))
	}
	if n := reconcile.PolicySize(policy); n > reconcile.MostManagedPolicy {
		o.Env.Story("warning: the policy has %d characters, and IAM takes %d in a managed policy: use --split", n, reconcile.MostManagedPolicy)
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), policy)
}

// lines prints one policy on each line.
func (o *policyOptions) lines(policies []plan.PolicyDocument) error {
	if n := len(policies); n > reconcile.MostManagedPolicies {
		o.Env.Story(
			"warning: there are %d policies, and IAM attaches %d to a role or user: narrow them down with -f, --kind and --region, or raise the quota",
			n,
			reconcile.MostManagedPolicies,
		)
	} else if n > 1 {
		o.Env.Story("note: these are %d managed policies, one on each line; the role or user needs all of them. --help shows how to create and attach them", n)
	}
	e := json.NewEncoder(o.Env.Out)
	for _, p := range policies {
		if err := e.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// policy returns the policy for the manifest, or for the flags without one.
func (o *policyOptions) policy(ctx context.Context) (plan.PolicyDocument, error) {
	of, region := reconcile.ControlPlane(o.kind.value), o.Region
	if o.kind.value == "any" {
		of = reconcile.AnyControlPlane
	}
	policy := reconcile.Policy(region, of)
	if len(o.files) > 0 {
		m, err := o.load(ctx)
		if err != nil {
			return plan.PolicyDocument{}, err
		}
		if m.Summary().AssumesRole {
			o.Env.Story("note: the identity of the manifest needs this policy; the caller needs only sts:AssumeRole on it")
		}
		policy, region = m.Policy(), m.Region()
	}
	return reconcile.PolicyWithBackups(policy, region, o.buckets, o.keys), nil
}
