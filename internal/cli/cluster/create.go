package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

type createOptions struct {
	manifestFlags
	runFlags
	output      choice
	yes, dryRun bool
	report      string
	check       bool // of the permissions of the caller
}

func newCreate(f *flags) *cobra.Command {
	o := &createOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:     "create {-f FILE | PLAN}",
		Aliases: []string{"apply"},
		Short:   "Create the cluster of a manifest, or update it",
		Long: `Create the cluster of a manifest, or update it to match the manifest. Resources
that exist already are found by their tags and kept, so a run that was stopped
continues where it stopped. On a terminal the command shows the plan and asks for
confirmation; otherwise it requires --yes.

If the manifest has several clusters, the command creates all of them side by side, each
with its own lock, and asks once. It starts none of them if one manifest is wrong; a
cluster that fails later does not stop the others. A table at the end has the results,
and the exit code is that of the worst. --cluster chooses one.

With --restore, and after all machines of the control plane are gone, the command makes
a new control plane from a backup that 'cluster backup' has written: etcd begins with its
snapshot, and the keys are those of the backup, so workers reconnect. A run that is
stopped continues the restore, also without --restore.

With --backup, a run that replaces machines of the control plane, as an upgrade does,
first backs up etcd and the keys of the cluster. If the backup fails, it changes nothing.

With the file of a plan that 'cluster plan --to' has written, the command carries out
that plan without asking. If it does not apply any more, the command changes nothing,
and says what has changed.`,
		Example: `  clusterawsadm cluster create -f demo.yaml
  clusterawsadm cluster create demo.plan
  clusterawsadm cluster create -f demo.yaml --restore demo.backup --age-key key.txt --restore-bucket my-bucket
  clusterawsadm cluster create -f demo.yaml --backup s3://my-bucket/before-upgrade --backup-recipient alias/backups
  clusterawsadm cluster create -f demo.yaml --set KUBERNETES_VERSION=v1.34.2 --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && isPlanFile(args[0]):
				return nil
			case len(args) == 1 && filepath.Ext(args[0]) == ".plan":
				_, err := readPlanFile(cmd.Context(), args[0])
				return err
			}
			return manifestOnly(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	output(cmd, &o.output, "text", "json", "yaml")
	o.addManifest(cmd)
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
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the plan, and change nothing")
	cmd.Flags().
		BoolVar(&o.check, "check", true, "ask IAM before the first write whether the caller may do what the plan needs; false goes on without, if the answer is wrong")
	addReport(cmd, &o.report)
	return cmd
}

func (o *createOptions) run(cmd *cobra.Command, args []string) (err error) {
	var planned *planFile
	if len(args) > 0 {
		if planned, err = o.fromPlan(cmd, args[0]); err != nil {
			return err
		}
	}
	if o.dryRun {
		if err := checkNoReport(o.report); err != nil {
			return err
		}
		return (&planOptions{manifestFlags: o.manifestFlags, runFlags: o.runFlags, output: o.output}).run(cmd)
	}
	if err := o.checkMaxCost(); err != nil {
		return err
	}
	how := o.runFlags
	how.waits, how.unchecked = true, !o.check
	if unseen := o.yes || planned != nil || !o.Env.InIsTerminal || !o.Env.ErrIsTerminal; unseen && o.report == "" && o.maxCost == 0 {
		how.cost.value = "off" // nobody looks at the plan, and no report has it
	}
	if _, err := how.backupFirst(); err != nil {
		return err
	}
	all, err := o.loadAll(cmd.Context())
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return o.several(cmd, all, how, planned)
	}
	return o.one(cmd.Context(), all[0], how, planned)
}

// one creates the only cluster of the manifest, or updates it.
func (o *createOptions) one(ctx context.Context, m *member, how runFlags, planned *planFile) (err error) {
	x, err := o.opened(ctx, m.loaded, how)
	if err != nil {
		return err
	}
	defer x.Close(&err)
	if err := planned.checkInput(x.digest); err != nil {
		return err
	}
	c := x.cluster
	r := &run{flags: o.flags, files: o.files, subject: x, verb: "create", yes: o.yes, planned: planned, report: o.report, budget: o.withinBudget}
	if o.newEtcd == askName {
		r.word, r.insists = c.Name, true
	}
	res, err := r.carryOut(ctx, func(options cluster.Options) (cluster.Result, error) { return c.Apply(ctx, options) })
	if err != nil {
		return err
	}
	return o.printResult(r, res)
}

// several creates several clusters, or updates them.
func (o *createOptions) several(cmd *cobra.Command, all []*member, how runFlags, planned *planFile) (err error) {
	if err := onlyOne(cmd, all, "report", "max-cost", "new-etcd", "restore", "backup"); err != nil {
		return err
	}
	if planned != nil {
		return env.Usagef("the plan is for one cluster, and the manifest has %s: make the plan again", strings.Join(namesOf(all), ", "))
	}
	f := o.newFleet(all)
	if err := f.refuseWrong(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := f.open(ctx, how); err != nil {
		return err
	}
	defer f.close(&err)
	r := &runs{fleet: f, verb: "create", yes: o.yes}
	r.carryOut(ctx, func(ctx context.Context, m *member, options cluster.Options) (cluster.Result, error) {
		return m.cluster.Apply(ctx, options)
	})
	return r.print(ctx, o.output.value, func(i int, m *member) any {
		out := (&run{flags: o.flags, subject: m.subject}).outcome(r.results[i])
		if endpoint := r.results[i].Endpoint; endpoint != "" {
			out.Endpoint = apiURL(endpoint)
		}
		return out
	})
}

// state describes the state of the cluster.
func (x *subject) state(res cluster.Result, endpoint string) string {
	server := "\nAPI server: " + endpoint
	switch {
	case x.unreachable != "":
		return fmt.Sprintf(" The API server is at %s.\nAdd-ons and Nodes are not part of this run: %s.", endpoint, x.unreachable)
	case res.Plan.Empty():
		return x.notReady(res.Nodes)
	case x.eks && res.Nodes.Joined == 0 && (x.until == plan.NodesReady || x.until == plan.NodesJoined):
		return " It has no machines." + server
	case x.until == plan.NodesReady:
		return " All Nodes are ready." + server
	case x.until == plan.NodesJoined:
		return " All machines have joined (" + text.Count(res.Nodes.Joined, "Node") + ")." + x.notReady(res.Nodes) + server
	case x.until == plan.APIServer:
		return " The control plane has joined; workers may still be booting." + x.notReady(res.Nodes) + server
	case x.eks:
		return server
	}
	return " Its machines are booting." + server + ", when they have booted"
}

// notReady says why Nodes are not ready that have joined; "" if they are.
func (x *subject) notReady(n cluster.Nodes) string {
	if n.Ready == n.Joined {
		return ""
	}
	return fmt.Sprintf("\nNodes are not ready yet (%d of %d)%s.", n.Joined-n.Ready, n.Joined, text.Prefixed(": ", x.lacking))
}

// printResult prints the result.
func (o *createOptions) printResult(r *run, res cluster.Result) error {
	out := r.outcome(res)
	story := fmt.Sprintf("Cluster %s in %s is up to date: nothing to change (%s).", r.cluster.Name, r.cluster.Region, rounded(res.Took))
	if !res.Plan.Empty() {
		story = fmt.Sprintf("Cluster %s in %s is up to date (%s).", r.cluster.Name, r.cluster.Region, changed(res))
	}
	if res.Endpoint != "" {
		out.Endpoint = apiURL(res.Endpoint)
		story += r.state(res, out.Endpoint)
	}
	if o.progress.value != "json" {
		next := "kubeconfig"
		if r.Simulate {
			next = "describe" // kubectl cannot connect to a simulated cluster
		}
		r.Env.Story("%s\nNext: %s", story, r.again(next))
	}
	if o.output.value == "text" {
		return nil
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), out)
}
