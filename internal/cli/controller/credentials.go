package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// variable is the variable from which update-credentials and "clusterctl init" read the
// value.
const variable = "AWS_B64ENCODED_CREDENTIALS"

func newPrint(e *env.Env) *cobra.Command {
	o := &options{Flags: kube.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "print-credentials",
		Short: "Print the credentials that the controller uses",
		Long:  "Print the AWS profile in the Secret of the controller. The output is secret.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect()
			if err != nil {
				return err
			}
			is, err := c.Credentials(cmd.Context(), o.namespace)
			if err != nil {
				return err
			}
			return o.print(is)
		},
	}
	o.add(cmd)
	return cmd
}

// print prints credentials, if the user asked for it.
func (o *options) print(is management.Credentials) (err error) {
	switch {
	case is.IsZeroed():
		_, err = fmt.Fprintln(o.Env.Out, "Credentials are zeroed")
	case is.Empty():
		o.Env.Story("Secret %s/%s has no credentials", o.namespace, management.CredentialsSecret)
	default:
		_, err = o.Env.Out.Write(is.Reveal())
	}
	return err
}

type updateOptions struct {
	options
	file string
	show bool
}

func newUpdate(e *env.Env) *cobra.Command {
	o := &updateOptions{options: options{Flags: kube.Flags{Env: e}}}
	cmd := &cobra.Command{
		Use:   "update-credentials",
		Short: "Change the credentials of the controller",
		Long: `Give the controller the AWS profile in the environment variable
AWS_B64ENCODED_CREDENTIALS, in base64, as 'bootstrap credentials encode-as-profile'
prints it. An empty profile removes the credentials, as zero-credentials does.

The credentials are printed only with --show.`,
		Example: `  export AWS_B64ENCODED_CREDENTIALS=$(clusterawsadm bootstrap credentials encode-as-profile)
  clusterawsadm controller update-credentials
  clusterawsadm bootstrap credentials encode-as-profile | clusterawsadm controller update-credentials --from-file -
  clusterawsadm controller rollout-controller --wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.add(cmd)
	cmd.Flags().StringVar(&o.file, "from-file", "", "`FILE` with the base64 text, instead of the variable; - is standard input")
	cmd.Flags().BoolVar(&o.show, "show", false, "print the new credentials, as print-credentials does")
	return cmd
}

func (o *updateOptions) run(ctx context.Context) error {
	encoded, source, err := o.read(ctx)
	if err != nil {
		return err
	}
	to, err := management.ParseCredentials(encoded)
	if err != nil {
		return &env.UsageError{Err: fmt.Errorf("%s: %w", source, err)}
	}
	c, err := o.Connect()
	if err != nil {
		return err
	}
	if err := o.set(ctx, c, to); err != nil {
		return err
	}
	if o.show || to.IsZeroed() {
		return o.print(to)
	}
	return nil
}

// read returns the credentials, and where they come from.
func (o *updateOptions) read(ctx context.Context) (encoded, source string, err error) {
	switch o.file {
	case "":
		value, ok := o.Env.LookupEnv(variable)
		if !ok {
			return "", "", env.Usagef(
				"environment variable %q not found; set it:\n  export %s=$(clusterawsadm bootstrap credentials encode-as-profile)\nor use --from-file",
				variable,
				variable,
			)
		}
		return value, variable, nil
	case "-":
		data, err := new(input.Reader).ReadContext(ctx, o.Env.Input("the credentials"), "")
		if err == nil && strings.TrimSpace(string(data)) == "" {
			err = env.Usagef("it is empty; to remove the credentials of the controller use zero-credentials")
		}
		if err != nil {
			return "", "", fmt.Errorf("standard input: %w", err)
		}
		return string(data), "standard input", nil
	}
	data, err := new(input.Reader).FileContext(ctx, o.file)
	if err == nil && strings.TrimSpace(string(data)) == "" {
		err = env.Usagef("%s is empty; to remove the credentials of the controller use zero-credentials", o.file)
	}
	if err != nil {
		return "", "", fmt.Errorf("--from-file: %w", err)
	}
	return string(data), o.file, nil
}

// set changes the credentials, and prints what the user has to do next.
func (o *options) set(ctx context.Context, c *management.Cluster, to management.Credentials) error {
	if err := c.SetCredentials(ctx, o.namespace, to); err != nil {
		return err
	}
	o.Env.Story("changed Secret %s/%s in %s", o.namespace, management.CredentialsSecret, c.Name())
	words := append([]string{"clusterawsadm", "controller", "rollout-controller"}, o.Args()...)
	if o.namespace != management.DefaultNamespace {
		words = append(words, "--namespace", o.namespace)
	}
	o.Env.Story("The controller uses the old credentials until it is restarted:\n\n  %s\n", env.Shell(words))
	return nil
}

func newZero(e *env.Env) *cobra.Command {
	o := &options{Flags: kube.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "zero-credentials",
		Short: "Remove the credentials of the controller",
		Long: `Remove the credentials of the controller. After a restart it uses those of its
instance profile, its service account or EKS Pod Identity.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect()
			if err != nil {
				return err
			}
			if err := o.set(cmd.Context(), c, management.Zeroed()); err != nil {
				return err
			}
			return o.print(management.Zeroed())
		},
	}
	o.add(cmd)
	return cmd
}
