// Package bootstrap is the noun bootstrap of the command line: one file for
// each of its groups.
package bootstrap

import (
	"github.com/spf13/cobra"

	"clusterawsadm/internal/cli/env"
)

// New returns the command that has all the others below it.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Prepare an account for Cluster API Provider AWS",
		Long:  "Prepare an AWS account for Cluster API Provider AWS.",
	}
	cmd.AddCommand(newCredentials(e))
	return cmd
}
