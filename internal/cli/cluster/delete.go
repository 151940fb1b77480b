package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type deleteOptions struct {
	*flags
	output                   choice
	yes, dryRun, keepVolumes bool
}

func newDelete(f *flags) *cobra.Command {
	o := &deleteOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "delete {-f FILE | NAME}",
		Short: "Delete a cluster with all its AWS resources",
		Long: `Delete a cluster with all its AWS resources: those that carry its tag, with or
without the manifest, and those that controllers in the cluster created for
Services, Ingresses and volume claims.

If the API server of the cluster answers, these objects are deleted first, with
the pods that use the claims, so that the controllers clean up themselves. The
command waits for them until nothing has changed for five minutes. All volumes of
the cluster are deleted, also those with the reclaim policy Retain, unless
--keep-volumes is given. Snapshots are kept.

The command waits until AWS has deleted every resource, and then checks again. On
a terminal it asks for the name of the cluster; otherwise it requires --yes.`,
		Example: `  clusterawsadm cluster delete -f demo.yaml
  clusterawsadm cluster delete demo --region eu-west-1 --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	output(cmd, &o.output, "text", "json", "yaml")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().BoolVar(&o.keepVolumes, "keep-volumes", false, "keep the volumes of the volume claims in the cluster, and list them")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be deleted, and change nothing")
	return cmd
}

func (o *deleteOptions) run(ctx context.Context, args []string) (err error) {
	c, s, err := o.subject(ctx, args)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	if o.dryRun {
		return o.show(ctx, c)
	}
	r := &run{flags: o.flags, verb: "delete", cluster: c, yes: o.yes, word: c.Name}
	end := r.begin(s)
	options := r.options(ctx)
	options.KeepVolumes = o.keepVolumes
	res, err := c.Delete(ctx, options)
	end()
	if err != nil {
		return err
	}
	return o.printResult(r, res)
}

func (o *deleteOptions) show(ctx context.Context, c *reconcile.Cluster) error {
	p, err := c.PlanDelete(ctx, reconcile.Options{KeepVolumes: o.keepVolumes})
	if err != nil {
		return err
	}
	for _, s := range kept(p) {
		o.Env.Story("would keep %s: %s", s.CloudID, s.Origin)
	}
	return show(o.flags, o.output.value, p, view(o.flags, c, false))
}

func (o *deleteOptions) printResult(r *run, res reconcile.Result) error {
	line := fmt.Sprintf("Cluster %s in %s is deleted (%s, %s).", r.cluster.Name, r.cluster.Region, text.Count(res.Plan.Count(reconcile.Remove), "resource"), rounded(res.Took))
	if n := len(kept(res.Plan)); n > 0 {
		line += fmt.Sprintf(" Kept: %s.", text.Count(n, "volume"))
	}
	if res.Plan.Empty() {
		line = fmt.Sprintf("Cluster %s in %s has no resources: nothing to delete.", r.cluster.Name, r.cluster.Region)
	}
	if o.progress.value != "json" {
		for _, s := range kept(res.Plan) {
			r.Env.Story("kept %s: %s", s.CloudID, s.Origin)
		}
		r.Env.Story("%s", line)
	}
	if o.output.value == "text" {
		return nil
	}
	out := r.outcome(res)
	for _, s := range kept(res.Plan) {
		out.Kept = append(out.Kept, s.CloudID)
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), out)
}

// kept lists the volumes that a deletion keeps.
func kept(p reconcile.Plan) (out []reconcile.Step) {
	for _, s := range p.Steps {
		if s.Action == reconcile.Keep {
			out = append(out, s)
		}
	}
	return out
}
