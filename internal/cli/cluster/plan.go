package cluster

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type planOptions struct {
	manifestFlags
	runFlags
	output       choice
	full         bool
	detailedExit bool
	check        bool   // the permissions of the caller
	out          string // file to write the plan to; "": none
}

func newPlan(f *flags) *cobra.Command {
	o := &planOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what create would do",
		Long: `Show what create would do, field by field, and change nothing. Of each quota of
the account that the plan needs some of, it shows the limit, what is in use, and
what the plan needs; the exit code is 4 if a quota is too small. If one of vCPUs has
room for the control plane and for some of the other machines, that is a warning.

The last line is what the cluster costs a month by AWS's price list, before and after;
--full shows each position. Without access to the price list, or if it does not answer
within seconds, a warning says so, and the plan has no costs. --cost=off does not ask.

The exit code is 0, with or without changes. With --detailed-exitcode it is 2 when
there are changes.

--max-cost AMOUNT is a budget: the exit code is 4 if the cluster would cost more a
month, or if its costs are not known. A change that saves is within every budget.
Data transfer is not included, and Spot machines count with what they cost at most.
'cluster create' takes the flag, too.

--check asks IAM which of the actions that the plan needs the caller lacks, and
prints them with a policy that allows them; the exit code is 4 if there are any. It
takes the permission iam:SimulatePrincipalPolicy, which 'cluster policy' does not
contain. 'cluster create' always asks, and goes on without an answer.

-o markdown is for pull requests: short, with costs, conflicts and replacements first, and
the whole plan folded.

If the manifest has several clusters, the command plans all of them side by side, and
prints a table at the end; the exit code is that of the worst. --cluster chooses one.

--to writes the plan to a file, for 'cluster create FILE', which carries out exactly
this plan, or refuses to and says what has changed in the meantime. The file contains no
secret: 'create' needs the same manifest, and the same values of --set.`,
		Example: `  clusterawsadm cluster plan -f demo.yaml
  clusterawsadm cluster plan -f demo.yaml --to demo.plan
  clusterawsadm cluster create demo.plan`,
		Args: manifestOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "markdown", "json", "yaml")
	o.addWait(cmd)
	o.addDrain(cmd)
	o.addNetworkFirst(cmd)
	o.addNewEtcd(cmd)
	o.addKMSKey(cmd)
	o.addBackup(cmd)
	o.addRestore(cmd)
	o.addCost(cmd)
	o.addMaxCost(cmd)
	o.addObjects(cmd)
	cmd.Flags().BoolVar(&o.full, "full", false, "list every machine, every tag and every cost")
	cmd.Flags().BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit with 2 when there are changes")
	cmd.Flags().BoolVar(&o.check, "check", false, "check the permissions of the caller")
	cmd.Flags().StringVar(&o.out, "to", "", "`FILE` for the plan, for 'cluster create FILE'")
	addOldName(cmd, "out", "to")
	show := newPlanShow(f)
	cmd.AddCommand(show)
	f.timed(show)
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command) (err error) {
	if err := cmp.Or(checkWritable("to", o.out), o.checkMaxCost()); err != nil {
		return err
	}
	ctx := cmd.Context()
	how := o.runFlags
	how.waits, how.checks = true, o.check
	if _, err := how.backupFirst(); err != nil {
		return err
	}
	all, err := o.loadAll(ctx)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return o.several(cmd, all, how)
	}
	x, err := o.opened(ctx, all[0].loaded, how)
	if err != nil {
		return err
	}
	defer x.Close(&err)
	c := x.cluster
	who := o.askWho(ctx, c)
	p, err := c.Plan(ctx)
	if err != nil && !worthShowing(p, err) {
		return err
	}
	v := view(o.flags, c, who, o.full)
	v.Notes = x.notes(p)
	if err := show(ctx, o.flags, o.output.value, p, v); err != nil {
		return err
	}
	if err := o.finish(cmd, p, v, x.digest, err); err != nil {
		return err
	}
	if o.detailedExit && !p.Empty() {
		return env.ErrChanges
	}
	return nil
}

// finish checks the budget of a plan that was shown, and writes its file. refused is why the run would be refused.
func (o *planOptions) finish(cmd *cobra.Command, p plan.Plan, v render.PlanView, digest string, refused error) error {
	if err := cmp.Or(refused, o.withinBudget(p)); err != nil || o.out == "" {
		return err
	}
	return o.write(cmd, p, v, digest)
}

// several shows the plans of several clusters.
func (o *planOptions) several(cmd *cobra.Command, all []*member, how runFlags) (err error) {
	if err := onlyOne(cmd, all, "to", "max-cost", "new-etcd", "restore", "backup"); err != nil {
		return err
	}
	ctx := cmd.Context()
	f := o.newFleet(all)
	if err := f.open(ctx, how); err != nil {
		return err
	}
	defer f.close(&err)
	p := plans{of: make([]plan.Plan, len(all)), views: make([]render.PlanView, len(all)), shown: nil}
	f.each(func(i int, m *member) (err error) {
		who := o.askWho(ctx, m.cluster)
		p.of[i], err = m.cluster.Plan(ctx)
		p.views[i] = view(o.flags, m.cluster, who, o.full)
		p.views[i].Notes = m.notes(p.of[i])
		return err
	})
	p.shown = func(i int) bool {
		return all[i].subject != nil && (all[i].err == nil || worthShowing(p.of[i], all[i].err))
	}
	f.together = quotasTogether(p.of, p.views)
	changes := slices.ContainsFunc(p.of, func(p plan.Plan) bool { return !p.Empty() })
	return f.showPlans(ctx, o.output.value, p, changes && o.detailedExit)
}

// worthShowing reports whether a refused plan is complete: the reason was found after
// the state of all resources had been read.
func worthShowing(p plan.Plan, err error) bool {
	var node *plan.ResourceError
	switch {
	case !errors.As(err, new(*plan.RefusedError)), len(p.Steps) == 0:
		return false
	case slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Resource == "" }):
		return false
	}
	return len(p.Conflicts()) > 0 || !errors.As(err, &node)
}

// view returns how a plan is shown.
func view(f *flags, c *reconcile.Cluster, who identity, full bool) render.PlanView {
	return who.in(render.PlanView{Cluster: c.Name, Region: c.Region, Full: full, Style: f.Env.OutStyle(), Width: f.Env.OutWidth()})
}

// show prints a plan in a format.
func show(ctx context.Context, f *flags, format string, p plan.Plan, v render.PlanView) error {
	switch format {
	case "text":
		return f.Env.Paged(ctx, func(w io.Writer) error { return render.Plan(w, p, v) })
	case "markdown":
		return render.PlanMarkdown(f.Env.Out, p, v)
	}
	return render.Encode(f.Env.Out, render.Format(format), render.NewPlanDocument(p, v))
}
