package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
)

// completeFlags adds the completion of --region and --profile to a command and to those
// below it. Completions of arguments get the settings of the environment first, as commands do.
func completeFlags(cmd *cobra.Command, e *env.Env) {
	if arguments := cmd.ValidArgsFunction; arguments != nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if err := configure(cmd, e); err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return arguments(cmd, args, begun)
		}
	}
	for name, values := range map[string]func() []string{"region": regions.All, "profile": func() []string { return profileNames(e) }} {
		if cmd.LocalFlags().Lookup(name) == nil {
			continue
		}
		// It fails for a flag that has a completion already, and that one stays.
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	}
	for _, c := range cmd.Commands() {
		completeFlags(c, e)
	}
}

// profileNames lists the profiles in the files of the AWS CLI.
func profileNames(e *env.Env) (names []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	section := regex.Of(`^\[(?:profile\s+)?([^\]]+?)\s*\]`)
	for variable, file := range map[string]string{"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"} {
		path := e.Getenv(variable)
		if path == "" {
			path = filepath.Join(home, ".aws", file)
		}
		f, err := os.Open(path) //nolint:gosec // it is the file that the user has chosen
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if found := section.FindStringSubmatch(lines.Text()); found != nil && !regex.Of(`^(sso-session|services)\s`).MatchString(found[1]) {
				names = append(names, found[1])
			}
		}
		_ = f.Close() // it was only read
	}
	slices.Sort(names)
	return slices.Compact(names)
}
