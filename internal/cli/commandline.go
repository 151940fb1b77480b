package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// isGroup is the annotation of commands that only have subcommands.
const isGroup = "group"

// groups makes every command that only has subcommands print its help, and all commands
// report arguments that they do not take in the same way.
func groups(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			makeGroup(c)
		}
		if c.Args != nil {
			c.Args = argumentsOf(c.Args)
		}
		groups(c)
	}
}

// makeGroup makes a command print its help, because it only has subcommands.
func makeGroup(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{isGroup: ""}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
}

// unknownCommand is the error for a word that is not a subcommand.
func unknownCommand(cmd *cobra.Command, word string) error {
	hint := ""
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	} else if far := commandsNamed(cmd.Root(), word); len(far) > 0 {
		hint = ", did you mean '" + strings.Join(far, "' or '") + "'?"
	}
	return env.Usagef("unknown command %q for %q%s (see '%s --help')", word, cmd.CommandPath(), hint, cmd.CommandPath())
}

// commandsNamed returns the paths of all commands with a name or an alias.
func commandsNamed(cmd *cobra.Command, name string) (paths []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && (c.Name() == name || c.HasAlias(name)) {
			paths = append(paths, c.CommandPath())
		}
		paths = append(paths, commandsNamed(c, name)...)
	}
	return paths
}

// argumentsOf returns a check of arguments whose error names the first one that is not taken.
// Checks of this program have their own errors.
func argumentsOf(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || errors.As(err, new(*env.UsageError)) {
			return err
		}
		for n := len(args) - 1; n >= 0; n-- {
			if check(cmd, args[:n]) == nil {
				return env.Usagef("unexpected argument %q (see '%s --help')", args[n], cmd.CommandPath())
			}
		}
		return err
	}
}

// helpTopics makes the help command refuse what is not a command.
func helpTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(found, rest[0])
			}
			return err
		}
	}
}

// missingFlags is the error for required flags that are not set.
func missingFlags(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return env.Usagef("%s is missing (see '%s --help')", missing[0], cmd.CommandPath())
	}
	return env.Usagef("%s are missing (see '%s --help')", text.Several(missing), cmd.CommandPath())
}

// flagError returns the error for flags that cannot be parsed.
func flagError(cmd *cobra.Command, err error) error {
	_, group := cmd.Annotations[isGroup]
	if words := cmd.Flags().Args(); group && len(words) > 0 { // it is the flag of a command that does not exist
		return unknownCommand(cmd, words[0])
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f, cause := invalid.GetFlag(), invalid.Unwrap()
		name := "--" + f.Name
		if f.Name == f.Shorthand {
			name = "-" + f.Name
		}
		if plain := invalidValue(cause, f.Value.Type(), invalid.GetValue()); plain.Error() != cause.Error() {
			return env.Usagef("%s: %w (see '%s --help')", name, plain, cmd.CommandPath())
		}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if n, wrong := strconv.Atoi(unknown.GetSpecifiedShortnames()); wrong == nil {
			return env.Usagef("-%d: a number cannot be negative here (see '%s --help')", n, cmd.CommandPath())
		}
	}
	return env.Usagef("%w%s (see '%s --help')", err, meantFlag(cmd, err), cmd.CommandPath())
}

// meantFlag names the flag that was probably meant by an unknown one, or the command that has it.
func meantFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	name := unknown.GetSpecifiedName()
	if owner := ownerOfFlag(cmd, name); owner != "" {
		return ", it is a flag of '" + owner + "', and belongs after these words"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := suggest.Nearest(name, names); near != "" {
		return ", did you mean --" + near + "?"
	}
	return ""
}

// ownerOfFlag returns the path of the command below a group that has a flag; "" if none or
// several have it.
func ownerOfFlag(cmd *cobra.Command, name string) string {
	if _, group := cmd.Annotations[isGroup]; !group {
		return ""
	}
	var owners []string
	for _, c := range cmd.Commands() {
		if c.LocalFlags().Lookup(name) != nil {
			owners = append(owners, c.CommandPath())
		}
	}
	if len(owners) != 1 {
		return ""
	}
	return owners[0]
}
