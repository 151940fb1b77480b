package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	program "github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/render/report"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type rehearseOptions struct {
	manifestFlags
	runFlags
	output choice
	report string
	save   string
	every  int // the value of --every-call: 0 for no kills
}

func newRehearse(f *flags) *cobra.Command {
	o := &rehearseOptions{manifestFlags: manifestFlags{flags: f}}
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
runs each again, and reports what differs then from a run that was not killed: resources
with their attributes and tags. This takes minutes; a progress bar says how many.

--report writes a web page of the rehearsal: the time line of both runs, calls, quotas and
cost, and each killed run with what the next one did. "-o json" has the same data, except
for the time lines.

--save keeps the copy, for any command with --simulate --simulate-state FILE.`,
		Example: `  clusterawsadm cluster rehearse -f demo.yaml
  clusterawsadm cluster rehearse -f demo.yaml --save account.json
  clusterawsadm cluster rehearse -f demo.yaml --every-call --report demo.html
  clusterawsadm cluster rehearse -f demo.yaml --simulate --faults 1:network`,
		Args: func(cmd *cobra.Command, args []string) error {
			if _, err := strconv.Atoi(strings.Join(args, " ")); err == nil {
				return env.Usagef("unexpected argument %q: did you mean --every-call=%[1]s?", args[0])
			}
			return manifestOnly(cmd, args)
		},
		PreRun: func(*cobra.Command, []string) { f.Copies = true },
		RunE:   func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	output(cmd, &o.output, "text", "json", "yaml")
	o.addManifest(cmd)
	o.addCost(cmd)
	cmd.Flags().IntVar(&o.every, "every-call", 0, "kill runs before and after each of their calls, and run them again; with =`N`, only at every Nth call")
	cmd.Flags().Lookup("every-call").NoOptDefVal = "1"
	cmd.Flags().StringVar(&o.report, "report", "", "write a web page of the rehearsal to `FILE` at its end, also if it fails")
	cmd.Flags().StringVar(&o.save, "save", "", "write the copy of the account to `FILE`, without secrets")
	return cmd
}

func (o *rehearseOptions) run(ctx context.Context) (err error) {
	if o.every < 0 {
		return env.Usagef("--every-call: must not be negative, is %d", o.every)
	}
	for flag, file := range map[string]string{"report": o.report, "save": o.save} {
		if err := checkWritable(flag, file); err != nil {
			return err
		}
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
	r := newRehearsal(o, m.Manifest)
	if r.planned, err = o.copy(ctx, m.Manifest, folder); err != nil {
		return err
	}
	if r.session, err = o.open(ctx, m.Region()); err != nil {
		return err
	}
	defer r.Close(&err)
	r.target.Wait = m.MostWait() // as create
	if r.planned.exists() {
		r.target.Wait = plan.Infrastructure // its API server is not in the copy
	}
	r.target.Cost = o.cost.value == "on"
	r.cluster = reconcile.Open(m.Manifest, r.target)
	release := o.Env.OnExit(func() { r.writePage(env.ErrInterrupted, env.Interrupted) })
	err = crash.Catch(func() error { return r.perform(ctx) })
	release()
	late := env.Late(ctx, err)
	r.writePage(late, env.ExitCode(ctx, late))
	return err
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

// rehearsal is a creation and a deletion in the copy of an account.
type rehearsal struct {
	*rehearseOptions
	*session
	cluster  *reconcile.Cluster
	manifest *reconcile.Manifest
	planned  *planned // in the account itself; nil for a simulated one

	mu   sync.Mutex // an interrupt writes the page while the rehearsal goes on
	page report.Rehearsal
}

func newRehearsal(o *rehearseOptions, m *reconcile.Manifest) *rehearsal {
	r := &rehearsal{rehearseOptions: o, manifest: m, page: report.Rehearsal{Program: program.Get().String(), Began: time.Now()}}
	r.page.Rehearsal = render.Rehearsal{
		Version: render.Version, Cluster: m.Name(), Region: m.Region(), Source: "account", Faults: o.Faults,
		Runs: []render.RehearsedRun{}, Calls: []render.Calls{}, Policy: []string{}, Left: []string{},
	}
	if o.Simulate {
		r.page.Source = "simulated"
	}
	for _, s := range m.Policy().Statement {
		r.page.Policy = append(r.page.Policy, s.Action...)
	}
	return r
}

// record changes what the page and the document show.
func (r *rehearsal) record(change func(*report.Rehearsal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.page)
}

// perform creates and deletes the cluster, kills runs if that is asked for, and prints the answer.
func (r *rehearsal) perform(ctx context.Context) error {
	before := r.Resources()
	plan, err := r.cluster.Plan(ctx)
	r.planned.compare(r.flags, plan)
	if err != nil {
		return err
	}
	r.recordPlan(ctx, plan)
	var k *kills
	if r.every > 0 {
		if k, err = r.everyCall(ctx); err != nil {
			return err
		}
	}
	if err := r.step(ctx, "create", r.cluster.Apply); err != nil {
		return err
	}
	again, err := r.cluster.Plan(ctx)
	if err != nil {
		return fmt.Errorf("plan after create: %w", err)
	}
	if err := r.step(ctx, "delete", r.cluster.Delete); err != nil {
		return err
	}
	left := slices.DeleteFunc(r.Resources(), func(line string) bool { return slices.Contains(before, line) })
	r.record(func(p *report.Rehearsal) {
		p.Left, p.Calls = append(p.Left, left...), r.calls.List()
		for _, s := range again.Steps {
			if s.Does() {
				p.Changes = append(p.Changes, s.Resource)
			}
		}
	})
	if err := r.answer(ctx, k); err != nil {
		return err
	}
	return r.verdict()
}

// answer prints the answer. Runs are killed, if that is asked for, after the text is printed, and
// only if there is nothing wrong without that.
func (r *rehearsal) answer(ctx context.Context, k *kills) error {
	asText := r.output.value == "text"
	if asText {
		if err := r.page.WriteText(r.Env.Out, r.Env.OutStyle()); err != nil {
			return err
		}
	}
	if k != nil && r.verdict() == nil {
		if err := k.all(ctx); err != nil {
			return err
		}
	}
	if asText {
		return nil
	}
	return render.Encode(r.Env.Out, render.Format(r.output.value), r.page.Rehearsal)
}

// recordPlan records what the plan says: who and where, quotas, costs and permissions.
func (r *rehearsal) recordPlan(ctx context.Context, plan plan.Plan) {
	caller, _ := r.cluster.Caller(ctx) // the page has no account then
	r.record(func(p *report.Rehearsal) {
		p.Account, p.Quotas, p.Cost = caller.Account, plan.Quotas, plan.Cost
		if r.planned != nil { // AWS's own prices
			p.Cost, p.Permissions = cmp.Or(r.planned.plan.Cost, plan.Cost), r.planned.plan.Permissions
		}
	})
}

// verdict is the error of a rehearsal that has shown a fault.
func (r *rehearsal) verdict() error {
	switch {
	case len(r.page.Changes) > 0:
		return errors.New("a plan after create is not empty")
	case len(r.page.Left) > 0:
		return fmt.Errorf("delete leaves %s", text.Count(len(r.page.Left), "resource"))
	case r.page.Kills.Conclusion() != "":
		return errors.New(r.page.Kills.Conclusion())
	}
	return nil
}

// step makes a run, shows its progress, and measures it in the time of the account.
func (r *rehearsal) step(ctx context.Context, verb string, do func(context.Context, cluster.Options) (cluster.Result, error)) error {
	recorded := &events{}
	t := render.Terminal{Style: r.Env.ErrStyle(), Clock: r.Clock, Size: r.Env.Size}
	shown := r.shownProgress(t)
	if r.progress.value == "auto" && r.progressKind() == "plain" {
		shown = render.NewNone(func(text string) { _, _ = io.WriteString(r.Env.Err, text+"\n") }) // nobody watches
	}
	if r.progressKind() == "tree" {
		r.Env.Story("%s:", verb) // above what stays on the screen of it
	}
	progress := render.Both(shown, render.NewNDJSON(recorded, t))
	r.record(func(p *report.Rehearsal) { p.Events = append(p.Events, recorded.reader) })
	r.Env.RedirectMessages(progress.Note)
	defer r.messagesAsRecords()
	defer r.Env.RedirectMessages(nil)
	release := r.Env.OnExit(progress.End)
	defer release()
	progress.Look(render.Run{Verb: verb, Cluster: r.cluster.Name, Region: r.cluster.Region, Program: r.page.Program})
	began := r.Clock.Now()
	result, err := do(ctx, cluster.Options{Observe: progress.Event, Confirm: func(p plan.Plan) (bool, error) {
		progress.Begin(p)
		return true, nil
	}})
	took := r.Clock.Since(began)
	late := env.Late(ctx, err)
	progress.Result(render.Ending{ExitCode: env.ExitCode(ctx, late), Errors: env.Errors(late)})
	progress.End()
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	r.record(func(p *report.Rehearsal) { p.Runs = append(p.Runs, render.NewRehearsedRun(verb, result, took)) })
	return nil
}

// writePage writes the page. The rehearsal does not fail with it.
func (r *rehearsal) writePage(err error, code int) {
	if r.report == "" {
		return
	}
	var page string
	r.record(func(p *report.Rehearsal) {
		p.Errors, p.ExitCode = env.Errors(err), code
		page = p.Page()
	})
	r.saidReport(r.report, files.Replace(r.report, []byte(page), files.Private))
}
