package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// patience is how long a user waits for the completion of a name.
const patience = 10 * time.Second

// completeNames lets the shell complete the names of the clusters in the account, for commands
// that take the name of an existing cluster.
func (f *flags) completeNames(cmd *cobra.Command) {
	if !strings.Contains(cmd.Use, "NAME") || cmd.Name() == "generate" {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 || cmd.Flags().Changed("filename") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), patience)
		defer cancel()
		l, err := (&listOptions{flags: f}).in(ctx, f.Region)
		if err != nil {
			cobra.CompErrorln(err.Error())
			return nil, cobra.ShellCompDirectiveError
		}
		for _, c := range l.clusters {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
