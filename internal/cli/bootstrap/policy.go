package bootstrap

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
)

type policyOptions struct {
	configuration
	document, format string
}

func newPrintPolicy(e *env.Env) *cobra.Command {
	o := &policyOptions{configuration: configuration{env: e}}
	cmd := &cobra.Command{
		Use:   "print-policy",
		Short: "Print the IAM policies",
		Long: `Print the IAM policies of a configuration, or the policy that --document names, in
one of these formats:

  cloudformation  the resource of the template; its Properties.PolicyDocument is
                  the policy document
  iam-json        the bare policy document, as 'aws iam create-policy' takes it
  terraform       a file for Terraform, to be called *.tf.json; without
                  --document it has everything that the template has: roles,
                  instance profiles and attachments too

The policies are ` + strings.Join(bootstrap.Documents(), ",\n") + ".",
		Example: `  clusterawsadm bootstrap iam print-policy --document AWSIAMManagedPolicyControllers --format iam-json
  clusterawsadm bootstrap iam print-policy --config iam.yaml --format terraform > iam.tf.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.add(cmd)
	cmd.Flags().StringVar(&o.document, "document", "", "print only the policy `NAME`")
	cmd.Flags().StringVar(&o.format, "format", bootstrap.Formats()[0], "output format: "+strings.Join(bootstrap.Formats(), ", "))
	for flag, values := range map[string][]string{"document": bootstrap.Documents(), "format": bootstrap.Formats()} {
		// Fails only for an unknown flag, or one with a completion.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func (o *policyOptions) run(ctx context.Context) error {
	if !slices.Contains(bootstrap.Formats(), o.format) {
		return env.Usagef("--format %s: must be one of %s", o.format, strings.Join(bootstrap.Formats(), ", "))
	}
	config, err := o.load(ctx)
	if err != nil {
		return err
	}
	if err := o.warnOfSizes(config); err != nil {
		return err
	}
	out, err := config.Policies(o.document, bootstrap.Format(o.format))
	if err != nil {
		return err
	}
	if o.format != string(bootstrap.CloudFormation) { // as upstream, without a newline at the end
		out = append(out, '\n')
	}
	_, err = o.env.Out.Write(out)
	return err
}
