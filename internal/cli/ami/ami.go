// Package ami has the commands below "ami": one file for each.
package ami

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ami",
		Short: "List and copy machine images for Kubernetes nodes",
		Long:  "List and copy the machine images that are published for Cluster API Provider AWS.",
	}
	cmd.AddCommand(newList(e), newCopy(e), newEncryptedCopy(e))
	return cmd
}

// choice is the value of a flag with a fixed set of values. If its default is empty, it
// can be set to "".
type choice struct {
	value, begun string
	of           []string
	wrong        string // the message for any other value
}

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice) Set(v string) error {
	if !slices.Contains(c.of, v) && v != c.begun {
		return fmt.Errorf("%s: must be one of %s", c.wrong, strings.Join(c.of, ", "))
	}
	c.value = v
	return nil
}

// complete sets the values that the shell completes for a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	// Fails only for an unknown flag, or one with a completion.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
