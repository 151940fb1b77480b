package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cast"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// configure sets the flags that were not given, from the environment or the configuration
// file. The rest of the program reads only flags.
func configure(cmd *cobra.Command, e *env.Env) error {
	v := viper.NewWithOptions(viper.KeyDelimiter("\n")) // names of settings are not nested
	file, err := readConfig(v, cmd, e)
	if err != nil {
		return err
	}
	remarkVariables(cmd, e)
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || !settable(f.Name) {
			return
		}
		source := file
		// AutomaticEnv would read the environment of the process, and not that of a test.
		if value, ok := e.LookupEnv(variable(f.Name)); ok && value != "" {
			source = variable(f.Name)
			v.Set(f.Name, split(f, value))
		}
		if v.IsSet(f.Name) {
			errs = append(errs, set(f, source, listed(v.Get(f.Name))))
		}
	})
	return errors.Join(errs...)
}

// variablePrefix begins the names of the environment variables of flags.
const variablePrefix = "CLUSTERAWSADM_"

// remarkVariables warns of environment variables that look like a setting, and are none.
func remarkVariables(cmd *cobra.Command, e *env.Env) {
	if e.Variables == nil {
		return
	}
	known := append(settings(cmd.Root()), "config")
	for _, set := range slices.Sorted(slices.Values(e.Variables())) {
		name, ours := strings.CutPrefix(set, variablePrefix)
		if name = strings.ToLower(strings.ReplaceAll(name, "_", "-")); !ours || slices.Contains(known, name) {
			continue
		}
		hint := "settings have the names of flags"
		if near := suggest.Nearest(name, known); near != "" {
			hint = "did you mean " + variable(near) + "?"
		}
		e.Story("warning: the environment variable %s is no setting and has no effect; %s", set, hint)
	}
}

// readConfig reads the configuration file and returns its name. The
// default file need not exist.
func readConfig(v *viper.Viper, cmd *cobra.Command, e *env.Env) (file string, err error) {
	file, asked := cmd.Root().PersistentFlags().Lookup("config").Value.String(), true // some commands have their own --config
	if file == "" {
		file = e.Getenv(variable("config"))
	}
	if file == "" {
		file, asked = defaultConfig(e, ""), false
	}
	if file == "" {
		return "", nil
	}
	v.SetConfigType("yaml")
	data, err := new(input.Reader).FileContext(cmd.Context(), file)
	if err == nil {
		err = v.ReadConfig(bytes.NewReader(data))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return "", nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.As(err, new(*input.TooLargeError)):
		return "", fmt.Errorf("configuration: %w", err)
	case err != nil:
		return "", fmt.Errorf("configuration: %s: %w", file, err)
	}
	if v.IsSet("apiVersion") {
		return "", fmt.Errorf(
			"configuration: %s is a Kubernetes object, and not a file of settings: an AWSIAMConfiguration is for --config of 'bootstrap iam create-cloudformation-stack' and 'print-policy'",
			file,
		)
	}
	known := settings(cmd.Root())
	for _, key := range slices.Sorted(slices.Values(v.AllKeys())) {
		if !slices.Contains(known, key) {
			return "", fmt.Errorf("configuration: %s: unknown setting %q; settings have the names of flags", file, key)
		}
	}
	return file, nil
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
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// split splits the value of a variable at commas, for a flag that can be repeated.
func split(f *pflag.Flag, value string) []string {
	if _, many := f.Value.(pflag.SliceValue); many {
		return strings.Split(value, ",")
	}
	return []string{value}
}

// listed returns the values of a setting: those of a list, or one.
func listed(value any) []string {
	switch value := value.(type) {
	case []string:
		return value
	case []any:
		return cast.ToStringSlice(value)
	}
	return []string{cast.ToString(value)}
}

// set sets the value of a flag. An output format that a command does not have is
// ignored.
func set(f *pflag.Flag, source string, values []string) error {
	for _, value := range values {
		assign := f.Value.Set
		if place, is := f.Value.(interface{ SetFormat(v string) error }); is {
			assign = place.SetFormat
		}
		if err := assign(value); err != nil && f.Name != "output" {
			return fmt.Errorf("%s: %s: %w", source, f.Name, invalidValue(err, f.Value.Type(), value))
		}
	}
	f.Changed = true
	env.NoteSetting(f, source)
	return nil
}

// invalidValue returns the error for a value that a flag does not accept. Errors of packages
// strconv and time are replaced, because they contain names of Go.
func invalidValue(err error, kind, value string) error {
	switch {
	case kind == "duration":
		return fmt.Errorf("%q is not a duration, such as 90s or 30m", value)
	case !errors.As(err, new(*strconv.NumError)):
		return err
	case kind == "bool":
		return fmt.Errorf("%q is neither true nor false", value)
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return fmt.Errorf("%q is not a whole number", value)
	}
	return fmt.Errorf("%q is not a number", value)
}
