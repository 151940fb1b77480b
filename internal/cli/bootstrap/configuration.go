package bootstrap

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
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
func (c *configuration) load(ctx context.Context) (*bootstrap.Config, error) {
	if c.file == "" {
		return bootstrap.Default(), nil
	}
	data, err := c.read(ctx)
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

// warnOfSizes warns of what IAM or CloudFormation would refuse.
func (c *configuration) warnOfSizes(config *bootstrap.Config) error {
	template, err := config.Template().YAML()
	if err != nil {
		return err
	}
	problems, err := stack.TooLarge(string(template))
	for _, p := range problems {
		c.env.Story("warning: %s", p)
	}
	return err
}

func (c *configuration) read(ctx context.Context) ([]byte, error) {
	if c.file == "-" {
		return new(input.Reader).ReadContext(ctx, c.env.Input("the configuration"), "standard input")
	}
	data, err := new(input.Reader).FileContext(ctx, c.file)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, env.Usagef("--config: %s: no such file", c.file)
	case errors.As(err, &path):
		return nil, env.Usagef("--config: %s: %w", c.file, path.Err)
	}
	return data, err
}
