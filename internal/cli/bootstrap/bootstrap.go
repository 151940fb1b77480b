// Package bootstrap has the commands below "bootstrap", which prepare an AWS account
// for clusters.
package bootstrap

import (
	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Prepare an AWS account for clusters",
		Long: `Prepare an AWS account for clusters: the roles, policies and instance profiles
that Cluster API Provider AWS and the machines of clusters need.`,
		Example: `  clusterawsadm bootstrap iam print-config > iam.yaml
  clusterawsadm bootstrap iam print-cloudformation-template --config iam.yaml`,
	}
	cmd.AddCommand(newIAM(e), newCredentials(e))
	return cmd
}

// newIAM returns the command whose commands work on one AWSIAMConfiguration.
func newIAM(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "iam",
		Short: "Create or print the IAM objects that clusters need",
		Long: `Create or print the IAM objects that clusters need, as an AWSIAMConfiguration
describes them. Without --config the default configuration is used.`,
	}
	cmd.AddCommand(newPrintConfig(e), newPrintPolicy(e), newPrintTemplate(e), newCreateStack(e), newDeleteStack(e))
	return cmd
}
