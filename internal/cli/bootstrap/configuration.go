package bootstrap

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// configuration is the AWSIAMConfiguration that a command works on.
type configuration struct {
	env    *env.Env
	file   string
	strict bool
}

func (c *configuration) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.file, "config", "", "`FILE` with the AWSIAMConfiguration, or - for standard input (default: the default configuration)")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "treat warnings about the file as errors")
}

// load reads the file, and prints its warnings.
func (c *configuration) load() (*bootstrap.Config, error) {
	if c.file == "" {
		return bootstrap.Default(), nil
	}
	data, err := c.read()
	if err != nil {
		return nil, err
	}
	config, err := bootstrap.Load(c.file, data, bootstrap.Options{Strict: c.strict})
	if err != nil {
		return nil, err
	}
	for _, w := range config.Warnings {
		c.env.Story("warning: %s", w)
	}
	return config, nil
}

func (c *configuration) read() ([]byte, error) {
	if c.file == "-" {
		return new(input.Reader).Read(c.env.In, "standard input")
	}
	data, err := new(input.Reader).File(c.file)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, env.Usagef("--config: %s: no such file", c.file)
	case errors.As(err, &path):
		return nil, env.Usagef("--config: %s: %w", c.file, path.Err)
	}
	return data, err
}
