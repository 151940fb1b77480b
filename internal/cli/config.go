package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// configure sets the flags that were not given from the environment and the
// configuration file, in this order. The rest of the program reads flags.
func configure(cmd *cobra.Command, e *env.Env) error {
	file, err := readConfig(cmd, e)
	if err != nil {
		return err
	}
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || !settable(f.Name) {
			return
		}
		if value, ok := e.LookupEnv(variable(f.Name)); ok {
			errs = append(errs, set(f, variable(f.Name), split(f, value)))
			return
		}
		if value, ok := file.values[f.Name]; ok {
			errs = append(errs, set(f, file.name, listed(value)))
		}
	})
	return errors.Join(errs...)
}

// configuration is the content of a configuration file.
type configuration struct {
	name   string
	values map[string]any // by the name of the flag
}

// readConfig reads the configuration file. The default file need not exist.
func readConfig(cmd *cobra.Command, e *env.Env) (c configuration, err error) {
	file, asked := cmd.Root().PersistentFlags().Lookup("config").Value.String(), true // some commands have a --config of their own
	if file == "" {
		file = e.Getenv(variable("config"))
	}
	if file == "" {
		file, asked = defaultConfig(e, ""), false
	}
	if file == "" {
		return c, nil
	}
	data, err := os.ReadFile(file) //nolint:gosec // a file that the user chose
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return c, nil
	case err != nil:
		return c, fmt.Errorf("configuration: %w", err)
	}
	c = configuration{name: file, values: map[string]any{}}
	if err := yaml.Unmarshal(data, &c.values); err != nil {
		return c, fmt.Errorf("configuration: %s: %w", file, err)
	}
	known := settings(cmd.Root())
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		if !slices.Contains(known, key) {
			return c, fmt.Errorf("configuration: %s: unknown setting %q; settings have the names of flags", file, key)
		}
	}
	return c, nil
}

// defaultConfig is the path of the default configuration file.
func defaultConfig(e *env.Env, unknown string) string {
	if e.ConfigDir == "" {
		return unknown
	}
	return filepath.Join(e.ConfigDir, name, "config.yaml")
}

// settings lists the names of all flags of all commands.
func settings(cmd *cobra.Command) (out []string) {
	add := func(f *pflag.Flag) {
		if settable(f.Name) {
			out = append(out, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, c := range cmd.Commands() {
		out = append(out, settings(c)...)
	}
	return out
}

func settable(flag string) bool {
	return !slices.Contains([]string{"config", "help", "v", "version"}, flag)
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "CLUSTERAWSADM_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// split splits the value of a variable at commas, for a flag that can be repeated.
func split(f *pflag.Flag, value string) []string {
	if _, many := f.Value.(pflag.SliceValue); many {
		return strings.Split(value, ",")
	}
	return []string{value}
}

// listed returns the values that a setting has: those of a list, or one.
func listed(value any) (out []string) {
	all, many := value.([]any)
	if !many {
		all = []any{value}
	}
	for _, v := range all {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// set sets the value of a flag. An output format that a command does not have is
// ignored.
func set(f *pflag.Flag, source string, values []string) error {
	for _, value := range values {
		if err := f.Value.Set(value); err != nil && f.Name != "output" {
			return fmt.Errorf("%s: %s: %w", source, f.Name, err)
		}
	}
	f.Changed = true
	env.NoteSetting(f, source)
	return nil
}
