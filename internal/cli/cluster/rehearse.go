package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type rehearseOptions struct {
	*flags
	save  string
	every int // the value of --every-call: 0 for no kills
}

func newRehearse(f *flags) *cobra.Command {
	o := &rehearseOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "rehearse -f FILE",
		Short: "Create and delete a cluster in a simulated copy of the account",
		Long: `Create the cluster of a manifest in a simulated copy of the account, look for changes,
and delete it. The account itself is only read.

The copy has what the manifest touches: networks with everything in them, images, roles,
key pairs, load balancers, quotas and what is used of them, and what exists of the
cluster. It has no secrets: no user data, and no values of parameters and secrets. What
the caller may not read is as in a new account, and a note says so. With --simulate, the
account is the simulated one.

The report says how long AWS takes for each step, how many calls and writes each service
gets, which quotas are nearly used up, what the cluster costs, what the policy must
allow, and what is left in the account at the end. With --faults, the copy fails as AWS
may fail.

--every-call also kills a creation and a deletion before and after each of their calls,
runs each again, and reports what differs then from a run that was not killed. This takes
minutes.

--save keeps the copy, for any command with --simulate --simulate-state FILE.`,
		Example: `  clusterawsadm cluster rehearse -f demo.yaml
  clusterawsadm cluster rehearse -f demo.yaml --save account.json
  clusterawsadm cluster rehearse -f demo.yaml --every-call
  clusterawsadm cluster rehearse -f demo.yaml --simulate --faults 1:network`,
		Args:   manifestOnly,
		PreRun: func(*cobra.Command, []string) { f.Copies = true },
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f.addManifest(cmd)
	f.addCost(cmd)
	cmd.Flags().IntVar(&o.every, "every-call", 0, "kill runs before and after each of their calls, and run them again; with =`N`, only at every Nth call")
	cmd.Flags().Lookup("every-call").NoOptDefVal = "1"
	cmd.Flags().StringVar(&o.save, "save", "", "write the copy of the account to `FILE`, without secrets")
	return cmd
}

// rehearsal is a run in the copy of an account.
type rehearsal struct {
	*session
	cluster  *reconcile.Cluster
	manifest *reconcile.Manifest
	planned  *planned // in the account itself; nil for a simulated one
	rows     [][]string
}

func (o *rehearseOptions) run(ctx context.Context) (err error) {
	if o.every < 0 {
		return env.Usagef("--every-call: must not be negative, is %d", o.every)
	}
	m, err := o.load(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	r := &rehearsal{manifest: m}
	if r.planned, err = o.copy(ctx, m, folder); err != nil {
		return err
	}
	if r.session, err = o.open(ctx, m.Region()); err != nil {
		return err
	}
	defer r.Close(&err)
	r.target.Wait = reconcile.APIServer
	if m.MostWait() == reconcile.Infrastructure || r.planned.exists() { // nobody can ask its API server
		r.target.Wait = reconcile.Infrastructure
	}
	r.target.Cost = o.cost.value == "on"
	r.cluster = reconcile.Open(m, r.target)
	return r.perform(ctx, o)
}

// copy copies the account.
func (o *rehearseOptions) copy(ctx context.Context, m *reconcile.Manifest, folder string) (*planned, error) {
	switch {
	case !o.Simulate:
		return o.copyAccount(ctx, m, folder)
	case o.save != "":
		return nil, env.Usagef("--save: the simulated account is in a file already, that of --simulate-state")
	}
	return nil, o.CopySimulated(m.Region(), folder)
}

// perform creates and deletes the cluster, and prints the report.
func (r *rehearsal) perform(ctx context.Context, o *rehearseOptions) error {
	before := r.Resources()
	plan, err := r.cluster.Plan(ctx)
	r.planned.compare(o.flags, plan)
	if err != nil {
		return err
	}
	var k *kills
	if o.every > 0 {
		if k, err = r.everyCall(ctx, o.every); err != nil {
			return err
		}
	}
	if err := r.step("create", func() (reconcile.Result, error) { return r.cluster.Apply(ctx, reconcile.Options{}) }); err != nil {
		return err
	}
	again, err := r.cluster.Plan(ctx)
	if err != nil {
		return fmt.Errorf("plan after create: %w", err)
	}
	if err := r.step("delete", func() (reconcile.Result, error) { return r.cluster.Delete(ctx, reconcile.Options{}) }); err != nil {
		return err
	}
	left := slices.DeleteFunc(r.Resources(), func(line string) bool { return slices.Contains(before, line) })
	if err := r.print(o, plan, left); err != nil {
		return err
	}
	switch {
	case !again.Empty():
		return errors.New("a plan after create is not empty")
	case len(left) > 0:
		return fmt.Errorf("delete leaves %s", text.Count(len(left), "resource"))
	case k == nil:
		return nil
	}
	if err := k.all(ctx, o.flags); err != nil {
		return err
	}
	return k.print(o.flags)
}

// step makes a run, and measures it in the time of the account.
func (r *rehearsal) step(name string, do func() (reconcile.Result, error)) error {
	began := r.Clock.Now()
	result, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	took := r.Clock.Since(began).Round(time.Second)
	r.rows = append(r.rows, []string{name, took.String(), strconv.FormatInt(result.Reads, 10), strconv.FormatInt(result.Writes, 10)})
	return nil
}
