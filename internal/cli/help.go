package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// The widths of a help text: without a terminal, and at most.
const (
	usualWidth = 80
	mostWidth  = 100 // longer lines are hard to read
)

// printHelp makes all commands print help texts that are as wide as the terminal. It has the
// sections of cobra's help, whose lines are as long as their texts.
func printHelp(root *cobra.Command, e *env.Env) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		width := helpWidth(e)
		_, _ = fmt.Fprintf(
			cmd.OutOrStdout(),
			"%s\n\n%s",
			text.Wrap(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)), width),
			usage(cmd, width),
		) // an error of stdout is that of the command
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd, helpWidth(e)))
		return err
	})
}

// helpWidth is the width of help texts.
func helpWidth(e *env.Env) int {
	return min(cmp.Or(e.OutWidth(), usualWidth), mostWidth)
}

// usage returns the help of a command without its description.
func usage(cmd *cobra.Command, width int) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		b.WriteString("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " [command]\n")
	}
	section := func(title, text string) {
		if text = strings.TrimRight(text, " \n"); text != "" {
			b.WriteString("\n" + title + ":\n" + text + "\n")
		}
	}
	if len(cmd.Aliases) > 0 {
		section("Aliases", "  "+cmd.NameAndAliases())
	}
	section("Examples", cmd.Example)
	section("Available Commands", subcommands(cmd, width))
	section("Flags", cmd.LocalFlags().FlagUsagesWrapped(width))
	section("Global Flags", cmd.InheritedFlags().FlagUsagesWrapped(width))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	return b.String()
}

// subcommands lists the commands below a command, with what they do.
func subcommands(cmd *cobra.Command, width int) string {
	shown := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() && c.Name() != "help" })
	longest := 0
	for _, c := range shown {
		longest = max(longest, len(c.Name()))
	}
	var b strings.Builder
	indent := strings.Repeat(" ", longest+5)
	for _, c := range shown {
		lines := strings.ReplaceAll(text.Wrap(c.Short, width-len(indent)), "\n", "\n"+indent)
		fmt.Fprintf(&b, "  %-*s   %s\n", longest, c.Name(), lines)
	}
	return b.String()
}
