package bootstrap

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

func newPrintConfig(e *env.Env) *cobra.Command {
	c := &configuration{env: e}
	cmd := &cobra.Command{
		Use:   "print-config",
		Short: "Print the configuration with all its defaults",
		Long: `Print the AWSIAMConfiguration with all its defaults, in its newest version. The
output can replace the input file.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return printConfig(cmd.Context(), c) },
	}
	c.add(cmd)
	return cmd
}

func printConfig(ctx context.Context, c *configuration) error {
	config, err := c.load(ctx)
	if err != nil {
		return err
	}
	out, err := config.YAML()
	if err != nil {
		return err
	}
	_, err = c.env.Out.Write(append(out, '\n')) // a blank line, as upstream prints it
	return err
}

func newPrintTemplate(e *env.Env) *cobra.Command {
	c := &configuration{env: e}
	cmd := &cobra.Command{
		Use:   "print-cloudformation-template",
		Short: "Print the CloudFormation template of the IAM objects",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return printTemplate(cmd.Context(), c) },
	}
	c.add(cmd)
	return cmd
}

func printTemplate(ctx context.Context, c *configuration) error {
	config, err := c.load(ctx)
	if err != nil {
		return err
	}
	if err := c.warnOfSizes(config); err != nil {
		return err
	}
	out, err := config.Template().YAML()
	if err != nil {
		return err
	}
	_, err = c.env.Out.Write(append(out, '\n')) // a blank line, as upstream prints it
	return err
}
