package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type rehearseOptions struct{ *flags }

func newRehearse(f *flags) *cobra.Command {
	o := &rehearseOptions{f}
	cmd := &cobra.Command{
		Use:   "rehearse -f FILE",
		Short: "Create and delete a cluster in a copy of the simulated account",
		Long: `Create the cluster of a manifest in a copy of the simulated account, look for changes,
and delete it. AWS is not called, and the simulated account itself is not changed.

The report says how long AWS takes for each step, how many calls each service gets,
which quotas are nearly used up, and what is left in the account at the end. With
--faults, the simulated AWS fails. A copy of a real account cannot be used.`,
		Example: `  clusterawsadm cluster rehearse -f demo.yaml
  clusterawsadm cluster rehearse -f demo.yaml --faults 1:network`,
		Args:   manifestOnly,
		PreRun: func(*cobra.Command, []string) { f.Simulate = true },
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f.addManifest(cmd)
	return cmd
}

// rehearsal is a run in the copy of an account.
type rehearsal struct {
	*session
	cluster *reconcile.Cluster
	rows    [][]string
}

func (o *rehearseOptions) run(ctx context.Context) (err error) {
	m, err := o.load(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := o.CopySimulated(m.Region(), folder); err != nil {
		return err
	}
	s, err := o.open(ctx, m.Region())
	if err != nil {
		return err
	}
	defer s.Close(&err)
	s.target.Wait = reconcile.APIServer
	if m.MostWait() == reconcile.Infrastructure { // the API server is inside the VPC
		s.target.Wait = reconcile.Infrastructure
	}
	r := &rehearsal{session: s, cluster: reconcile.Open(m, s.target)}
	return r.perform(ctx, o)
}

// perform creates and deletes the cluster, and prints the report.
func (r *rehearsal) perform(ctx context.Context, o *rehearseOptions) error {
	before := r.Resources()
	plan, err := r.cluster.Plan(ctx)
	if err != nil {
		return err
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
	if err := render.Table(o.Env.Out, []string{"STEP", "AWS TAKES", "READS", "WRITES"}, r.rows); err != nil {
		return err
	}
	if _, err := fmt.Fprint(o.Env.Out, "\n", r.services(), near(plan.Quotas), remains(left)); err != nil {
		return err
	}
	switch {
	case !again.Empty():
		return errors.New("a plan after create is not empty")
	case len(left) > 0:
		return fmt.Errorf("delete leaves %s", text.Count(len(left), "resource"))
	}
	return nil
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

// services prints the calls of each service.
func (r *rehearsal) services() string {
	calls := map[string]int{}
	for _, c := range r.calls.List() {
		calls[c.Service] += c.Count
	}
	parts := make([]string, 0, len(calls))
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, calls[name]))
	}
	return "Calls by service: " + strings.Join(parts, ", ") + "\n"
}

// near prints the quotas of which the cluster leaves less than a fifth.
func near(quotas []reconcile.Quota) string {
	out := ""
	for _, q := range quotas {
		if used := q.Used + q.Needed; used*5 > q.Limit*4 {
			out += fmt.Sprintf("Quota nearly used up: %s: %d of %d (%s %s)\n", q.Name, used, q.Limit, q.Service, q.Code)
		}
	}
	return out
}

// remains prints what the deletion has left.
func remains(left []string) string {
	if len(left) == 0 {
		return "Left in the account: nothing\n"
	}
	return "Left in the account:\n  " + strings.Join(left, "\n  ") + "\n"
}
