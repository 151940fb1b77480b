// Package ami is the noun ami of the command line: one file for each command.
package ami

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// New returns the command that has all the others below it.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ami",
		Short: "List and copy machine images for Kubernetes nodes",
		Long:  "List and copy the machine images that are published for Cluster API Provider AWS.",
	}
	cmd.AddCommand(newList(e), newCopy(e), newEncryptedCopy(e))
	return cmd
}

// choice is the value of a flag that has to be one of a few words. Where it is
// empty to begin with, it can be made so again.
type choice struct {
	value, begun string
	of           []string
	wrong        string // what is said of any other
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

// complete tells the shell what a flag may be.
func complete(cmd *cobra.Command, flag string, values []string) {
	// The flag exists, and has no completion yet: there is no other error.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
