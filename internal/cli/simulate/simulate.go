// Package simulate has the command that serves a simulated AWS account over HTTP.
package simulate

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// text is the default output format.
const text = "text"

func formats() []string { return []string{text, string(render.JSON), string(render.YAML)} }

type options struct {
	account.Flags

	listen, output string
}

// New returns the command.
func New(e *env.Env) *cobra.Command {
	o := &options{Flags: account.Flags{Env: e, Serves: true}}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Serve a simulated AWS account to the AWS CLI and other AWS clients",
		Long: `Serve the simulated AWS account, which other commands use with --simulate, to
any AWS client: the AWS CLI, an SDK, a controller. The account is stored in a
file. The command ends with Ctrl-C.

Clients need the endpoint, which the command prints, and some credentials.
Signatures are not checked. The account has one region, and accepts the API
operations that docs/simulator.md lists.`,
		Example: `  clusterawsadm simulate --listen 127.0.0.1:4600
  AWS_ENDPOINT_URL=http://127.0.0.1:4600 aws ec2 describe-vpcs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	p.StringVar(&o.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 is any free port")
	p.StringVar(&o.Region, "region", "", "AWS region of the account (default: that of the file, or us-east-1)")
	o.AddServed(p)
	p.StringVarP(&o.output, "output", "o", text, "output format: "+strings.Join(formats(), ", "))
	// Fails only for an unknown flag, or one with a completion.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *options) run(ctx context.Context) (err error) {
	if !slices.Contains(formats(), o.output) {
		return env.Usagef("--output: must be one of %s, is %q", strings.Join(formats(), ", "), o.output)
	}
	a, err := o.Open(ctx, o.Region)
	if err != nil {
		return err
	}
	defer a.Close(&err)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return env.Usagef("--listen: %w", err)
	}
	if err := o.tell(l.Addr(), a.Config.Region); err != nil {
		return err
	}
	return a.Serve(ctx, o.listen, l)
}

// served is the JSON output.
type served struct {
	Version  int    `json:"version"`
	Endpoint string `json:"endpoint"`
	Region   string `json:"region"`
}

// tell prints the endpoint, and how to use it.
func (o *options) tell(at net.Addr, region string) error {
	endpoint := "http://" + at.String()
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		o.Env.Story("warning: everybody who can reach %s can use and change the account", endpoint)
	}
	o.Env.Story(`To use it, with credentials of any content:

  export AWS_ENDPOINT_URL=%s AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
  aws ec2 describe-vpcs

Ctrl-C stores the account and ends.`, endpoint, region)
	if o.output == text {
		_, err := fmt.Fprintln(o.Env.Out, endpoint)
		return err
	}
	return render.Encode(o.Env.Out, render.Format(o.output), served{render.Version, endpoint, region})
}
