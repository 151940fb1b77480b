package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

type describeOptions struct {
	*flags
	output choice
	full   bool

	detailedExit bool
}

func newDescribe(f *flags) *cobra.Command {
	o := &describeOptions{flags: f}
	cmd := &cobra.Command{
		Use:     "describe {-f FILE | NAME}",
		Aliases: []string{"status"},
		Short:   "Show the live state of a cluster as a tree of its resources",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && typed(cmd, "wait") {
				return env.Usagef("--wait requires a manifest: use it with -f FILE instead of the name")
			}
			return o.run(cmd.Context(), args)
		},
	}
	f.addManifest(cmd)
	output(cmd, &o.output, "text", "json", "yaml")
	o.addWait(cmd)
	cmd.Flags().BoolVar(&o.full, "full", false, "list every machine")
	cmd.Flags().BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit with 2 when a resource is missing, differs, or is not ready")
	return cmd
}

func (o *describeOptions) run(ctx context.Context, args []string) (err error) {
	o.waits = true
	c, s, err := o.subject(ctx, args)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 && len(status.Resources) == 0 {
		return notFound(c.Name, c.Region)
	}
	if o.output.value != "text" {
		err = render.Encode(o.Env.Out, render.Format(o.output.value), status)
	} else {
		err = render.Status(o.Env.Out, status, render.StatusView{Full: o.full, Named: len(args) > 0, Style: o.Env.OutStyle(), Now: s.Clock.Now()})
	}
	if err == nil && o.detailedExit && !status.Healthy() {
		err = env.ErrChanges
	}
	return err
}
