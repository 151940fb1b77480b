package cluster

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

type execOptions struct {
	manifestFlags
	output choice
	limit  time.Duration
}

func newExec(f *flags) *cobra.Command {
	o := &execOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "exec {-f FILE | NAME} NODE -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a machine of a cluster",
		Long: `Run a command on a machine of a cluster with SSM Run Command, as root, and wait for its
end. Its standard output, standard error and exit code are those of this command. It has
no terminal and no standard input.

NODE is a machine: its ID, the name of its Node, its private address, its tag Name, or
what describe calls it (md-0/0 in a cluster demo is demo-md-0/0). The arguments are passed
as they are: a pipe or a variable needs a shell (see the examples).

The SSM agent has to run on the machine, its role needs the permissions of
AmazonSSMManagedInstanceCore, and you need ssm:DescribeInstanceInformation,
ssm:SendCommand and ssm:GetCommandInvocation. AWS keeps the command and its output for 30
days, legible for whoever may read them: pass no secrets. It keeps the first 24,000
characters of the output and 8,000 of the errors; a message says if they were cut.

If this command ends before the other one, it goes on until its limit (--limit). Exit code
194 would make the agent restart the machine: it is 193 instead. "-o json" tells the exit
codes of the command from those of this program.`,
		Example: `  clusterawsadm cluster exec demo demo-md-0/0 -- systemctl status kubelet
  clusterawsadm cluster exec -f demo.yaml ip-10-0-1-7.ec2.internal -- sh -c 'df -h | tail -1'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.ArgsLenAtDash()
			if at < 0 || at == len(args) {
				return env.Usagef("no command: put it behind --, as in: exec demo demo-md-0/0 -- uptime")
			}
			name, node, err := o.names(args[:at])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), name, node, args[at:])
		},
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "json")
	cmd.Flags().DurationVar(&o.limit, "limit", time.Hour, "time after which Systems Manager ends the command, up to 48h")
	return cmd
}

// divided returns the name of the cluster, which -f replaces, and the other arguments.
func (f *manifestFlags) divided(args []string) (name, others []string) {
	if len(f.files) > 0 || len(args) == 0 {
		return nil, args
	}
	return args[:1], args[1:]
}

// names divides the arguments into the name of the cluster, which -f leaves out, and that of a machine.
func (f *manifestFlags) names(args []string) (name []string, node string, err error) {
	name, nodes := f.divided(args)
	switch {
	case len(nodes) == 1:
		return name, nodes[0], nil
	case len(f.files) > 0 && len(args) > 1:
		return nil, "", env.Usagef("use the name of the cluster or -f FILE, not both; then name one machine")
	}
	return nil, "", env.Usagef("name the cluster, or -f FILE for its manifest, and one machine, such as demo-md-0/0")
}

func (o *execOptions) run(ctx context.Context, name []string, node string, command []string) (err error) {
	if o.limit < time.Second || o.limit > cluster.MostExecution {
		return env.Usagef("--limit: must be from 1s to 48h, is %s", o.limit)
	}
	x, err := o.subject(ctx, name, runFlags{})
	if err != nil {
		return err
	}
	defer x.Close(&err)
	out, err := x.cluster.Exec(ctx, node, command, o.limit)
	if errors.Is(err, cluster.ErrNotFound) {
		return o.notFound(x.cluster.Name, x.cluster.Region)
	}
	if err != nil {
		return err
	}
	if out.Truncated {
		defer o.warn("AWS keeps 24,000 characters of the output and 8,000 of the errors, and has cut the rest: write it to a file on the machine, or use cluster ssh")
	}
	if o.output.value == "json" {
		return render.Encode(o.Env.Out, render.JSON, execOutput{render.Version, out})
	}
	if _, err := io.WriteString(o.Env.Out, out.Stdout); err != nil {
		return err
	}
	if _, err := io.WriteString(o.Env.Err, out.Stderr); err != nil {
		return err
	}
	if out.ExitCode != 0 {
		return &env.ExitError{Code: out.ExitCode}
	}
	return nil
}

// execOutput is the JSON output.
type execOutput struct {
	Version int `json:"version"`
	cluster.Execution
}
