package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	program "github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// runs creates or deletes several clusters in parallel. Every run first makes its plan. Then the user
// confirms all plans at once, and the runs continue.
type runs struct {
	*fleet
	verb    string // "create", "delete"
	yes     bool
	results []cluster.Result
	show    progresses
	gate    *gate
}

// carryOut does the runs in parallel, and stores their results.
func (r *runs) carryOut(ctx context.Context, do func(ctx context.Context, m *member, o cluster.Options) (cluster.Result, error)) {
	r.results = make([]cluster.Result, len(r.members))
	r.show = r.newProgresses()
	r.Env.RedirectMessages(r.show.note)
	release := r.Env.OnExit(r.show.end)
	going := 0
	for _, m := range r.members {
		if m.subject != nil && m.err == nil {
			going++
		}
	}
	r.gate = newGate(going, len(r.members), func(plans []*plan.Plan, views []render.PlanView) (bool, error) { return r.confirm(ctx, plans, views) })
	r.each(func(i int, m *member) (err error) {
		progress := r.show.of(m)
		defer progress.End()
		defer r.gate.leave(i)
		progress.Look(render.Run{Verb: r.verb, Cluster: m.cluster.Name, Region: m.cluster.Region, Program: program.Get().String()})
		who := r.askWho(ctx, m.cluster)
		view := render.PlanView{
			Cluster: m.cluster.Name, Region: m.cluster.Region, Deletes: r.verb == "delete", Style: r.Env.ErrStyle(), Width: r.Env.ErrWidth(),
		}
		r.results[i], err = do(ctx, m, cluster.Options{Observe: progress.Event, Confirm: func(p plan.Plan) (bool, error) {
			view = who.in(view)
			view.Notes = m.notes(p)
			progress.Pause()
			yes, err := r.gate.pass(ctx, i, p, view)
			if yes && err == nil {
				progress.Begin(p)
			}
			return yes, err
		}})
		err = env.Late(ctx, err)
		progress.Result(render.Ending{
			ExitCode: env.ExitCode(ctx, err), Errors: env.Errors(err), Account: view.Account, Caller: view.Caller, Profile: who.profile, Calls: m.calls.List(),
		})
		return err
	})
	release()
	r.show.end()
	if r.progress.value != "json" {
		r.Env.RedirectMessages(nil)
	}
}

// print prints the results: documents for programs on stdout, or a table for people on stderr.
func (r *runs) print(ctx context.Context, format string, document func(i int, m *member) any) error {
	rows := make([][]string, 0, len(r.members))
	for i, m := range r.members {
		rows = append(rows, m.row(ctx, r.result(i)))
	}
	if r.progress.value != "json" {
		if err := render.Table(r.Env.Err, []string{"CLUSTER", "REGION", "RESULT", "EXIT CODE"}, rows); err != nil {
			return err
		}
	}
	if format != "text" {
		if err := render.Encode(r.Env.Out, render.Format(format), r.documents(ctx, func(i int, m *member) any {
			if m.err != nil {
				return nil
			}
			return document(i, m)
		})); err != nil {
			return err
		}
	}
	return r.end(false)
}

// result says in a few words how a run has ended.
func (r *runs) result(i int) string {
	res := r.results[i]
	switch err := r.members[i].err; {
	case errors.Is(err, plan.ErrDeclined):
		return "declined"
	case errors.As(err, new(*plan.RefusedError)):
		return "refused: nothing was changed"
	case err != nil:
		return "failed"
	case res.Plan.Empty():
		return "nothing to change, " + rounded(res.Took).String()
	}
	return changed(res)
}

// confirm shows all plans, and asks once.
func (r *runs) confirm(ctx context.Context, plans []*plan.Plan, views []render.PlanView) (bool, error) {
	var headlines []string
	all := make([]plan.Plan, len(plans))
	for i, p := range plans {
		if p != nil {
			all[i] = *p
			headlines = append(headlines, fmt.Sprintf("[%s] %s", r.members[i].name, render.Headline(*p, views[i])))
		}
	}
	if r.together = quotasTogether(all, views); r.together != nil {
		return false, nil
	}
	if r.yes {
		if r.progress.value != "json" {
			r.Env.Story("%s", strings.Join(headlines, "\n"))
		}
		return true, nil
	}
	if err := r.checkTerminal(
		fmt.Sprintf("review with 'clusterawsadm cluster %s --dry-run', then pass --yes\n%s", r.verb, strings.Join(headlines, "\n")),
	); err != nil {
		return false, err
	}
	r.show.pause()
	defer r.show.resume()
	for i, p := range plans {
		if p == nil {
			continue
		}
		if _, err := fmt.Fprintf(r.Env.Err, "\nCluster %s\n", r.members[i].name); err != nil {
			return false, err
		}
		if err := render.Plan(r.Env.Err, *p, views[i]); err != nil {
			return false, err
		}
	}
	return r.ask(ctx, len(headlines))
}

// ask asks the user about all plans. Meanwhile, the simulated time of all accounts stands still.
func (r *runs) ask(ctx context.Context, many int) (bool, error) {
	for _, s := range r.sessions {
		defer s.Clock.Hold()()
	}
	if r.verb != "delete" {
		return r.agrees(ctx, fmt.Sprintf("\n%s %d clusters?", strings.ToUpper(r.verb[:1])+r.verb[1:], many))
	}
	word := fmt.Sprintf("delete %d clusters", many)
	a, err := r.question(ctx, fmt.Sprintf("\nThis deletes all clusters above, and cannot be undone. Type '%s' to go on: ", word))
	return a == word, err
}

// gate keeps the runs waiting until all have a plan, or have ended without one, and the user has answered.
type gate struct {
	ask     func([]*plan.Plan, []render.PlanView) (bool, error)
	decided chan struct{}

	mu    sync.Mutex
	open  int          // runs that have neither a plan nor an end
	plans []*plan.Plan // by member; nil without one
	views []render.PlanView
	yes   bool
	err   error
}

func newGate(runs, members int, ask func([]*plan.Plan, []render.PlanView) (bool, error)) *gate {
	return &gate{ask: ask, decided: make(chan struct{}), open: runs, plans: make([]*plan.Plan, members), views: make([]render.PlanView, members)}
}

// pass waits for the answer about a plan.
func (g *gate) pass(ctx context.Context, i int, p plan.Plan, v render.PlanView) (bool, error) {
	g.mu.Lock()
	g.plans[i], g.views[i] = &p, v
	g.mu.Unlock()
	g.arrive()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-g.decided:
		return g.yes, g.err
	}
}

// arrive counts a run. The last one asks.
func (g *gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.open > 0 {
		return
	}
	for _, p := range g.plans {
		if p != nil {
			g.yes, g.err = g.ask(g.plans, g.views)
			break
		}
	}
	close(g.decided)
}

// leave counts a run that has ended without a plan.
func (g *gate) leave(i int) {
	g.mu.Lock()
	planned := g.plans[i] != nil
	g.mu.Unlock()
	if !planned {
		g.arrive()
	}
}

// progresses shows the progress of several runs: on a terminal a line for each, otherwise lines that begin
// with the name of the cluster, or records that contain it.
type progresses struct {
	of            func(*member) render.Progress
	note          func(string)
	pause, resume func()
	end           func()
}

func (f *fleet) newProgresses() progresses {
	terminal := func(m *member) render.Terminal {
		t := render.Terminal{Style: f.Env.ErrStyle(), Size: f.Env.Size}
		if m != nil {
			t.Clock = m.Clock
		}
		return t
	}
	nothing := func() {}
	w := render.Locked(f.Env.Err)
	line := func(text string) { _, _ = io.WriteString(w, text+"\n") }
	switch f.progressKind() {
	case "tree":
		t := terminal(nil)
		t.Clock = f.clock
		b := render.NewBoard(f.Env.Err, t)
		var once sync.Once
		return progresses{func(m *member) render.Progress { return b.Of(m.name) }, b.Note, b.Pause, b.Continue, func() { once.Do(b.End) }}
	case "json":
		return progresses{
			func(m *member) render.Progress { return render.NewNDJSONOf(m.cluster.Name, w, terminal(m)) },
			render.NewNDJSON(w, render.Terminal{}).Note, nothing, nothing, nothing,
		}
	case "none":
		return progresses{func(*member) render.Progress { return render.NewNone(line) }, line, nothing, nothing, nothing}
	}
	return progresses{
		func(m *member) render.Progress { return render.NewLines(render.NewPrefixed(w, m.name), terminal(m)) }, line, nothing, nothing, nothing,
	}
}
