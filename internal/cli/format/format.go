// Package format has the flag -o of the commands that upstream's clusterawsadm also has.
package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// Flag is the value of -o: table, json or yaml. It is checked when the command line is
// parsed, before any call.
type Flag struct{ value string }

// table is the default format.
const table = "table"

func formats() []string { return []string{table, string(render.JSON), string(render.YAML)} }

// Add adds the flag to a command.
func (f *Flag) Add(cmd *cobra.Command) {
	f.value = table
	cmd.Flags().VarP(f, "output", "o", "output format: "+strings.Join(formats(), ", "))
	// Fails only for an unknown flag, or one with a completion.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
}

// ForPrograms reports whether the format is for programs, and which it is.
func (f *Flag) ForPrograms() (render.Format, bool) { return render.Format(f.value), f.value != table }

// String implements pflag.Value.
func (f *Flag) String() string { return f.value }

// Type implements pflag.Value.
func (f *Flag) Type() string { return "string" }

// Set implements pflag.Value.
func (f *Flag) Set(v string) error {
	if !slices.Contains(formats(), v) {
		return fmt.Errorf("unknown printer type: must be one of %s", strings.Join(formats(), ", "))
	}
	f.value = v
	return nil
}
