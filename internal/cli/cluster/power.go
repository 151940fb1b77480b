package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// powerOptions are those of "cluster stop" and "cluster start".
type powerOptions struct {
	manifestFlags
	starts      bool
	wait        choice // of start
	output      choice
	cost        choice
	yes, dryRun bool
	report      string
}

func newStop(f *flags) *cobra.Command {
	o := &powerOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "stop {-f FILE | NAME}",
		Short: "Stop the machines of a cluster, to save money",
		Long: `Stop the machines of a cluster, and empty its pools. 'cluster start' starts them again.

EC2 stops the machines of the control plane and of MachineDeployments: they keep their
volumes, names and private addresses. Machine pools get the size 0, and their machines
are terminated; the command remembers their sizes. Workers stop first. Then the members
of etcd are asked: all have to be healthy before the machines of the control plane stop.

The plan says what is saved. Volumes, NAT gateways, load balancers, Elastic IP addresses
and the control plane of EKS cost the same. Pods are not drained: there is no other
machine for them. Data in instance store volumes is lost, and public addresses change.

Nothing is stopped if EC2 would refuse a part of it, or if the cluster might not start
again: Spot Instances, stop protection, an unhealthy etcd, a control plane with instance
store volumes, EKS Auto Mode, machines of Karpenter.

Until 'cluster start' has ended, 'create' and 'plan' are refused; 'delete' works. If the
command is interrupted, run it again, or 'cluster start'.`,
		Example: `  clusterawsadm cluster stop demo
  clusterawsadm cluster stop -f demo.yaml --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.add(cmd)
	return cmd
}

func newStart(f *flags) *cobra.Command {
	o := &powerOptions{manifestFlags: manifestFlags{flags: f}, starts: true}
	cmd := &cobra.Command{
		Use:   "start {-f FILE | NAME}",
		Short: "Start a cluster that was stopped",
		Long: `Start the machines of a cluster that 'cluster stop' has stopped, and give its pools the
sizes that they had.

The machines of the control plane start first. When the API server answers, the command
makes the bootstrap token of machine pools valid again, and starts the workers. They
become ready within some minutes. The command waits for that with --wait ready, and
'cluster wait' does it later. AWS may have no capacity for an instance type: then run
the command again later.`,
		Example: `  clusterawsadm cluster start demo --wait ready
  clusterawsadm cluster start -f demo.yaml --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.add(cmd)
	o.wait = choice{value: string(cluster.ConditionAPI), of: []string{
		string(cluster.ConditionInfrastructure), string(cluster.ConditionAPI), string(cluster.ConditionJoined), string(cluster.ConditionReady),
	}}
	cmd.Flags().Var(&o.wait, "wait", "wait `UNTIL`: infrastructure or api (the API server answers: workers are started after that), "+
		"joined (and all machines have joined), ready (and all Nodes are ready, and the pods of add-ons run)")
	complete(cmd, "wait", o.wait.of)
	return cmd
}

func (o *powerOptions) add(cmd *cobra.Command) {
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "json", "yaml")
	o.cost = choice{value: "on", of: []string{"on", "off"}}
	cmd.Flags().Var(&o.cost, "cost", "show in the plan what the cluster costs before and after: on, off")
	complete(cmd, "cost", o.cost.of)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the plan, and change nothing")
	addReport(cmd, &o.report)
}

func (o *powerOptions) run(ctx context.Context, args []string) (err error) {
	x, err := o.subject(ctx, args, runFlags{cost: o.cost})
	if err != nil {
		return err
	}
	defer x.Close(&err)
	c, verb, do, show := x.cluster, "stop", x.cluster.Stop, x.cluster.PlanStop
	if o.starts {
		verb, do, show = "start", c.Start, c.PlanStart
	}
	if o.dryRun {
		return o.show(ctx, c, show)
	}
	r := &run{flags: o.flags, files: o.files, subject: x, verb: verb, yes: o.yes, report: o.report}
	res, err := r.carryOut(ctx, func(options cluster.Options) (cluster.Result, error) {
		res, err := do(ctx, options)
		if err == nil && res.NotFound {
			err = r.notFound(c.Name, c.Region)
		}
		return res, err
	})
	if err != nil {
		return err
	}
	if err := o.print(r, res); err != nil || !o.waits() {
		return err
	}
	return o.await(ctx, x, cluster.Condition(o.wait.value))
}

// waits reports whether the command waits after the cluster has started.
func (o *powerOptions) waits() bool {
	return o.starts && slices.Contains([]string{string(cluster.ConditionJoined), string(cluster.ConditionReady)}, o.wait.value)
}

// show prints the plan.
func (o *powerOptions) show(ctx context.Context, c *reconcile.Cluster, planned func(context.Context) (plan.Plan, error)) error {
	if err := checkNoReport(o.report); err != nil {
		return err
	}
	who := o.askWho(ctx, c)
	p, err := planned(ctx)
	if err != nil && !worthShowing(p, err) {
		return err
	}
	return cmp.Or(show(ctx, o.flags, o.output.value, p, view(o.flags, c, who, false)), err)
}

// print says what the run has done.
func (o *powerOptions) print(r *run, res cluster.Result) error {
	if o.progress.value != "json" {
		for _, line := range o.lines(r, res) {
			r.Env.Story("%s", line)
		}
	}
	if o.output.value == "text" {
		return nil
	}
	out := r.outcome(res)
	if res.Endpoint != "" {
		out.Endpoint = apiURL(res.Endpoint)
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), out)
}

// lines describes the result in sentences.
func (o *powerOptions) lines(r *run, res cluster.Result) []string {
	c := r.cluster
	switch {
	case res.Plan.Empty() && o.starts:
		return []string{fmt.Sprintf("Cluster %s in %s has nothing to start.", c.Name, c.Region)}
	case res.Plan.Empty():
		return []string{fmt.Sprintf("Cluster %s in %s is stopped already.", c.Name, c.Region)}
	case o.starts:
		lines := []string{fmt.Sprintf("Cluster %s in %s runs again (%s started, %s).", c.Name, c.Region, switched(res.Plan), rounded(res.Took))}
		if !o.waits() {
			lines = append(lines, "wait until its Nodes are ready: "+r.again("wait --for ready"))
		}
		return lines
	}
	lines := []string{fmt.Sprintf("Cluster %s in %s is stopped (%s stopped, %s).", c.Name, c.Region, switched(res.Plan), rounded(res.Took))}
	if saved := render.Saving(res.Plan.Cost); saved != "" {
		lines = append(lines, saved)
	}
	return append(lines, "start it again: "+r.again("start"))
}

// switched counts the machines and pools that a run has stopped or started.
func switched(p plan.Plan) string {
	n := 0
	for _, s := range p.Steps {
		if s.Action == plan.Update && s.Area != plan.AreaKubernetes {
			n++
		}
	}
	return text.Count(n, "resource")
}
