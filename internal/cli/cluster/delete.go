package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type deleteOptions struct {
	manifestFlags
	output      choice
	yes, dryRun bool
	report      string

	keepVolumes, deleteVolumes bool
	vpcs                       []string
}

func newDelete(f *flags) *cobra.Command {
	o := &deleteOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "delete {-f FILE | NAME}",
		Short: "Delete a cluster with all its AWS resources",
		Long: `Delete a cluster with all its AWS resources: those that carry its tag, with or
without the manifest, and those that controllers in the cluster created for
Services, Ingresses and volume claims.

If the API server of the cluster answers, these objects are deleted first, with
the pods that use the claims, so that the controllers clean up themselves. The
command waits for them until nothing has changed for five minutes.

The volumes of claims are deleted if their reclaim policy is Delete. If the API
server does not answer, their policy is unknown, and they are kept; --delete-volumes
deletes all of them, --keep-volumes none. Snapshots are always kept. What the command
keeps, it lists.

If the VPC contains resources of somebody else, AWS would not delete it: then the
command deletes nothing and lists them. What has the cluster's tag but is in another
VPC is kept, unless that VPC is given with --vpc.

If the manifest has several clusters, the command deletes all of them side by side, and
asks once; --cluster chooses one.

The command waits until AWS has deleted every resource, and at the end asks AWS for
all of them again: by name, by ID and by tag. "-o json" lists each with the calls and
the time. On a terminal it asks for the name of the cluster; otherwise it requires
--yes.`,
		Example: `  clusterawsadm cluster delete -f demo.yaml
  clusterawsadm cluster delete demo --region eu-west-1 --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "json", "yaml")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().BoolVar(&o.keepVolumes, "keep-volumes", false, "keep the volumes of all volume claims")
	cmd.Flags().BoolVar(&o.deleteVolumes, "delete-volumes", false, "delete the volumes of all volume claims, whatever their reclaim policy")
	cmd.Flags().StringSliceVar(&o.vpcs, "vpc", nil, "`ID` of a VPC of the cluster; needed if resources in several VPCs have its tag")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be deleted, and change nothing")
	addReport(cmd, &o.report)
	return cmd
}

func (o *deleteOptions) run(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	if o.keepVolumes && o.deleteVolumes {
		return env.Usagef("use --keep-volumes or --delete-volumes, not both")
	}
	x, all, err := o.subjects(ctx, args, runFlags{})
	if len(all) > 1 {
		return o.several(cmd, all)
	}
	if err != nil {
		return err
	}
	defer x.Close(&err)
	c := x.cluster
	if o.dryRun {
		if err := checkNoReport(o.report); err != nil {
			return err
		}
		return o.show(ctx, c, len(args) > 0)
	}
	r := &run{flags: o.flags, files: o.files, subject: x, verb: "delete", yes: o.yes, word: c.Name, report: o.report}
	res, err := r.carryOut(ctx, func(options cluster.Options) (cluster.Result, error) {
		o.keep(&options)
		res, err := c.Delete(ctx, options)
		if err == nil && res.NotFound && len(args) > 0 {
			err = r.notFound(c.Name, c.Region)
		}
		return res, err
	})
	if err != nil {
		return err
	}
	return o.printResult(r, res)
}

// several deletes several clusters.
func (o *deleteOptions) several(cmd *cobra.Command, all []*member) (err error) {
	if err := onlyOne(cmd, all, "report", "vpc"); err != nil {
		return err
	}
	ctx := cmd.Context()
	f := o.newFleet(all)
	if !o.dryRun {
		if err := f.refuseWrong(); err != nil {
			return err
		}
	}
	if err := f.open(ctx, runFlags{}); err != nil {
		return err
	}
	defer f.close(&err)
	if o.dryRun {
		return o.showAll(ctx, f)
	}
	r := &runs{fleet: f, verb: "delete", yes: o.yes}
	r.carryOut(ctx, func(ctx context.Context, m *member, options cluster.Options) (cluster.Result, error) {
		o.keep(&options)
		return m.cluster.Delete(ctx, options)
	})
	for i, m := range all {
		for _, s := range kept(r.results[i].Plan) {
			o.Env.Story("[%s] kept %s: %s", m.name, s.CloudID, s.Origin)
		}
	}
	return r.print(ctx, o.output.value, func(i int, m *member) any {
		return deleted(&run{flags: o.flags, subject: m.subject}, r.results[i])
	})
}

// showAll shows what the deletion of several clusters would do.
func (o *deleteOptions) showAll(ctx context.Context, f *fleet) error {
	p := plans{of: make([]plan.Plan, len(f.members)), views: make([]render.PlanView, len(f.members)), shown: func(i int) bool { return f.members[i].err == nil }}
	f.each(func(i int, m *member) (err error) {
		var options cluster.Options
		o.keep(&options)
		who := o.askWho(ctx, m.cluster)
		p.of[i], err = m.cluster.PlanDelete(ctx, options)
		p.views[i] = view(o.flags, m.cluster, who, false)
		p.views[i].Deletes = true
		return err
	})
	return f.showPlans(ctx, o.output.value, p, false)
}

// keep sets the options that say what is kept.
func (o *deleteOptions) keep(options *cluster.Options) {
	options.VPCs = o.vpcs
	switch {
	case o.keepVolumes:
		options.Volumes = cluster.KeepVolumes
	case o.deleteVolumes:
		options.Volumes = cluster.DeleteVolumes
	}
}

func (o *deleteOptions) show(ctx context.Context, c *reconcile.Cluster, byName bool) error {
	var options cluster.Options
	o.keep(&options)
	who := o.askWho(ctx, c)
	p, err := c.PlanDelete(ctx, options)
	if err != nil {
		return err
	}
	if byName && len(p.Steps) == 0 {
		return o.notFound(c.Name, c.Region)
	}
	for _, s := range kept(p) {
		o.Env.Story("would keep %s: %s", s.CloudID, s.Origin)
	}
	v := view(o.flags, c, who, false)
	v.Deletes = true
	return show(ctx, o.flags, o.output.value, p, v)
}

func (o *deleteOptions) printResult(r *run, res cluster.Result) error {
	line := fmt.Sprintf(
		"Cluster %s in %s is deleted (%s, %s).",
		r.cluster.Name,
		r.cluster.Region,
		text.Count(res.Plan.Count(plan.Remove), "resource"),
		rounded(res.Took),
	)
	if len(res.Absent) > 0 {
		line += " Asked again, AWS shows none of them."
	}
	if res.Plan.Empty() {
		line = fmt.Sprintf("Cluster %s in %s has no resources to delete.", r.cluster.Name, r.cluster.Region)
	}
	if n := len(kept(res.Plan)); n > 0 {
		line += fmt.Sprintf(" Kept: %s.", text.Count(n, "resource"))
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
	return render.Encode(o.Env.Out, render.Format(o.output.value), deleted(r, res))
}

// deleted is the JSON output.
func deleted(r *run, res cluster.Result) outcome {
	out := r.outcome(res)
	for _, a := range res.Absent {
		out.Absent = append(out.Absent, absence{a.Resource, a.CloudID, a.Asked, a.At.UTC()})
	}
	for _, s := range kept(res.Plan) {
		out.Kept = append(out.Kept, s.CloudID)
	}
	return out
}

// kept lists what a deletion keeps.
func kept(p plan.Plan) (out []plan.Step) {
	for _, s := range p.Steps {
		if s.Action == plan.Keep {
			out = append(out, s)
		}
	}
	return out
}
