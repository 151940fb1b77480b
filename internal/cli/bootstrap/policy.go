package bootstrap

import (
	"github.com/spf13/cobra"

	"clusterawsadm/internal/cli/env"
)

func newPrintPolicy(e *env.Env) *cobra.Command {
	c := &configuration{env: e}
	cmd := &cobra.Command{
		Use:   "print-policy",
		Short: "Print the IAM policies",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return env.Usagef("not yet") },
	}
	c.add(cmd)
	return cmd
}
