package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/render/report"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// kills kills a run at each of its calls, runs it again, and compares what there is with what a
// run without kills makes.
type kills struct {
	*rehearsal
	empty, full   *account.Trial // before and after create
	before, after []string       // the resources in them
	calls         map[string]int // of create and of delete
}

// everyCall prepares the kills. It has to be called before the rehearsal creates the cluster.
func (r *rehearsal) everyCall(ctx context.Context) (k *kills, err error) {
	k = &kills{rehearsal: r, calls: map[string]int{}}
	if k.empty, err = r.Trial(); err != nil {
		return nil, err
	}
	if k.before, err = k.empty.Described(); err != nil {
		return nil, err
	}
	t, err := k.empty.Copy()
	if err != nil {
		return nil, err
	}
	first, err := k.run(ctx, t, "create", nil)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if k.full, err = t.Copy(); err != nil {
		return nil, err
	}
	if k.after, err = t.Described(); err != nil {
		return nil, err
	}
	second, err := k.run(ctx, t, "delete", nil)
	k.calls["create"], k.calls["delete"] = first.calls, second.calls
	return k, err
}

// ran is what a run did.
type ran struct {
	render.RehearsedRun
	calls int
}

// run makes one run in an account. After a creation that is not killed, a plan has to be empty.
func (k *kills) run(ctx context.Context, t *account.Trial, name string, kill *account.Kill) (ran, error) {
	p, target := t.Program(kill), k.target
	target.Config, target.Transport, target.Helm, target.Clock, target.Log, target.Cost = p.Config, p.Kubernetes, p.Helm, t.Clock, nil, false
	target.Warn = func(string) {}
	c := reconcile.Open(k.manifest, target)
	do := c.Apply
	if name == "delete" {
		do = c.Delete
	}
	began := t.Clock.Now()
	result, err := do(ctx, cluster.Options{})
	out := ran{render.NewRehearsedRun(name, result, t.Clock.Since(began)), p.Calls()}
	if err == nil && name == "create" && kill == nil {
		var plan plan.Plan
		if plan, err = c.Plan(ctx); err == nil && !plan.Empty() {
			err = errors.New("a plan afterwards is not empty")
		}
	}
	return out, err
}

// planOfKill is a run to kill.
type planOfKill struct {
	run string
	account.Kill
}

// plans lists the runs to kill.
func (k *kills) plans() (all []planOfKill) {
	for _, name := range []string{"create", "delete"} {
		for call := k.every; call <= k.calls[name]; call += k.every {
			all = append(all, planOfKill{name, account.Kill{Call: call}}, planOfKill{name, account.Kill{Call: call, After: true}})
		}
	}
	return all
}

// all kills runs before and after their calls, and shows the progress. The page and the document
// have the result also if that is interrupted.
func (k *kills) all(ctx context.Context) error {
	plans := k.plans()
	k.record(func(p *report.Rehearsal) {
		p.Kills = &render.Kills{Every: k.every, CreateCalls: k.calls["create"], DeleteCalls: k.calls["delete"], Planned: len(plans), Runs: []render.Kill{}}
	})
	bar := k.newBar("killed and run again", "differ")
	k.Env.RedirectMessages(bar.Note)
	defer k.messagesAsRecords()
	defer k.Env.RedirectMessages(nil)
	release := k.Env.OnExit(bar.End)
	defer release()
	bar.Begin(len(plans))
	defer bar.End()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, p := range plans {
		g.Go(func() error { return crash.Catch(func() error { return k.one(ctx, bar, p) }) })
	}
	err := g.Wait()
	bar.End()
	if k.output.value != "text" {
		return err
	}
	if told := k.page.Kills.WriteText(k.Env.Out); err == nil {
		err = told
	}
	return err
}

// one kills one run, and runs it again.
func (k *kills) one(ctx context.Context, bar *render.Bar, p planOfKill) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	from, want := k.empty, k.after
	if p.run == "delete" {
		from, want = k.full, k.before
	}
	t, err := from.Copy()
	if err != nil {
		return err
	}
	one := render.Kill{Run: p.run, Call: p.Call, After: p.After}
	began := t.Clock.Now()
	killed, cancel := context.WithCancel(ctx)
	defer cancel()
	p.Do = func(service, operation string) {
		one.Service, one.Operation, one.At = service, operation, t.Clock.Since(began).Round(time.Millisecond).Seconds()
		cancel()
	}
	_, _ = k.run(killed, t, p.run, &p.Kill) // it was killed
	if one.Operation == "" {
		k.record(func(p *report.Rehearsal) { p.Kills.NotReached++ })
		bar.Add(false)
		return nil
	}
	again, err := k.run(ctx, t, p.run, nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	one.Again = again.RehearsedRun
	if err != nil {
		one.Error = env.Valid(err.Error())
	}
	have, err := t.Described()
	if err != nil {
		return err
	}
	compare(&one, want, have)
	k.record(func(p *report.Rehearsal) { p.Kills.Add(one) })
	bar.Add(!one.Same())
	return nil
}
