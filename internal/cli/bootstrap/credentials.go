package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/credentials"
)

// Formats of encoded credentials, with upstream's names.
const (
	rawProfile    = "rawSharedConfig"
	base64Profile = "base64SharedConfig"
)

// newCredentials returns the command bootstrap credentials.
func newCredentials(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credentials",
		Short: "Encode credentials for Cluster API Provider AWS",
		Long:  "Encode AWS credentials for the controllers of Cluster API Provider AWS.",
	}
	cmd.AddCommand(newEncodeAsProfile(e))
	return cmd
}

type encodeOptions struct {
	account.Flags
	output profileFormat
}

// profileFormat is the value of --output.
type profileFormat string

// String implements pflag.Value.
func (f *profileFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *profileFormat) Type() string { return "string" }

// Set implements pflag.Value.
func (f *profileFormat) Set(v string) error {
	if v != rawProfile && v != base64Profile {
		return errors.New("invalid output flag. Expected rawSharedConfig or base64SharedConfig")
	}
	*f = profileFormat(v)
	return nil
}

func newEncodeAsProfile(e *env.Env) *cobra.Command {
	o := &encodeOptions{Flags: account.Flags{Env: e}, output: base64Profile}
	cmd := &cobra.Command{
		Use:   "encode-as-profile",
		Short: "Encode credentials as a profile, for AWS_B64ENCODED_CREDENTIALS",
		Long: `Print credentials as an AWS configuration file with one profile, named default,
for the controllers of Cluster API Provider AWS.

The credentials come from --profile or from the environment. The region comes
from --region or from the environment, otherwise it is us-east-1. The region of
the profile is not used, as in upstream's clusterawsadm.

With 'export X=$(...)' the shell ignores an error of the command and X is empty:
assign first, then export, as in the example.`,
		Example: `  AWS_B64ENCODED_CREDENTIALS=$(clusterawsadm bootstrap credentials encode-as-profile) && export AWS_B64ENCODED_CREDENTIALS
  clusterawsadm bootstrap credentials encode-as-profile --output rawSharedConfig`,
		Args: cobra.ArbitraryArgs, // upstream ignores them
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	p.StringVar(&o.Region, "region", "", "AWS region (default: AWS_REGION, AWS_DEFAULT_REGION or DEFAULT_AWS_REGION, otherwise "+account.DefaultRegion+")")
	o.AddProfile(p)
	p.Var(&o.output, "output", "format: "+rawProfile+" or "+base64Profile)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{rawProfile, base64Profile}, cobra.ShellCompDirectiveNoFileComp)) // it exists
	return cmd
}

func (o *encodeOptions) run(ctx context.Context) error {
	o.Env.Story("\nWARNING: `encode-as-profile` should only be used for bootstrapping.\n")
	region := o.RegionOr("")
	if region == "" {
		region = account.DefaultRegion
		o.Env.Story("Could not resolve AWS region, defaulting to us-east-1.\n")
	}
	if o.Profile == "" {
		o.Env.Story("Could not resolve AWS profile, defaulting to default.\n")
	}
	a, err := o.Open(ctx, region)
	if err != nil {
		return err
	}
	c, err := a.Config.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("get credentials: %w", err)
	}
	o.warn(c)
	text := credentials.Profile(c, region)
	if o.output == base64Profile {
		text = credentials.Encode(text)
	}
	_, err = fmt.Fprintln(o.Env.Out, text)
	return err
}

// warn warns about temporary credentials.
func (o *encodeOptions) warn(c aws.Credentials) {
	switch {
	case c.CanExpire:
		left := strings.TrimSuffix(time.Until(c.Expires).Round(time.Minute).String(), "0s")
		o.Env.Story(
			"These credentials are temporary: they expire at %s, in %s. Replace them in the controllers before that.\n",
			c.Expires.UTC().Format(time.RFC3339),
			left,
		)
	case c.SessionToken != "":
		o.Env.Story("These credentials are temporary; their expiry is not known. Replace them in the controllers before they expire.\n")
	}
}
