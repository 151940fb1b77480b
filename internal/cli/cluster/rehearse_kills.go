package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// killSpeed is the speed of accounts in which runs are killed: nobody watches them.
const killSpeed = 1000

// kills kills a run at each of its calls, runs it again, and compares what there is with what a
// run without kills makes.
type kills struct {
	*rehearsal
	empty, full *account.Trial // before and after create
	want        []string       // the resources after create
	calls       map[string]int // of create and of delete
	every       int            // runs are killed at every Nth call

	mu       sync.Mutex
	done     int
	complete int // runs that ended before their call: two runs do not make the same number
	problems [][]string
}

// everyCall prepares the kills. It has to be called before the rehearsal creates the cluster.
func (r *rehearsal) everyCall(ctx context.Context, every int) (*kills, error) {
	k := &kills{rehearsal: r, calls: map[string]int{}, every: every}
	var err error
	if k.empty, err = r.Trial(killSpeed); err != nil {
		return nil, err
	}
	t, err := k.empty.Copy(killSpeed)
	if err != nil {
		return nil, err
	}
	if k.calls["create"], err = k.run(ctx, t, "create", nil); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	k.want = t.Resources()
	if k.full, err = t.Copy(killSpeed); err != nil {
		return nil, err
	}
	k.calls["delete"], err = k.run(ctx, t, "delete", nil)
	return k, err
}

// run makes one run in an account, and returns how many calls it made.
func (k *kills) run(ctx context.Context, t *account.Trial, name string, kill *account.Kill) (int, error) {
	p, target := t.Program(kill), k.target
	target.Config, target.Transport, target.Clock, target.Log, target.Cost = p.Config, p.Kubernetes, t.Clock, nil, false
	target.Warn = func(string) {}
	c := reconcile.Open(k.manifest, target)
	var err error
	if name == "create" {
		_, err = c.Apply(ctx, reconcile.Options{})
	} else {
		_, err = c.Delete(ctx, reconcile.Options{})
	}
	if err == nil && name == "create" && kill == nil {
		calls := p.Calls()
		var plan reconcile.Plan
		if plan, err = c.Plan(ctx); err == nil && !plan.Empty() {
			err = errors.New("a plan afterwards is not empty")
		}
		return calls, err
	}
	return p.Calls(), err
}

// all kills runs before and after their calls.
func (k *kills) all(ctx context.Context, f *flags) error {
	type plan struct {
		run string
		account.Kill
	}
	var plans []plan
	for _, name := range []string{"create", "delete"} {
		for call := k.every; call <= k.calls[name]; call += k.every {
			plans = append(plans, plan{name, account.Kill{Call: call}}, plan{name, account.Kill{Call: call, After: true}})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, p := range plans {
		g.Go(func() error {
			return crash.Catch(func() error { return k.one(ctx, f, p.run, p.Kill, len(plans)) })
		})
	}
	return g.Wait()
}

// one kills one run, and runs it again.
func (k *kills) one(ctx context.Context, f *flags, name string, kill account.Kill, total int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	from, want := k.empty, k.want
	if name == "delete" {
		from, want = k.full, k.empty.Resources()
	}
	t, err := from.Copy(killSpeed)
	if err != nil {
		return err
	}
	var at string
	killed, cancel := context.WithCancel(ctx)
	kill.Do = func(service, operation string) { at = service + " " + operation; cancel() }
	_, _ = k.run(killed, t, name, &kill) // it was killed
	cancel()
	_, err = k.run(ctx, t, name, nil)
	problem := compared(want, t.Resources())
	if err != nil {
		problem = err.Error()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if problem != "" {
		k.problems = append(k.problems, []string{fmt.Sprintf("%s, %s %s (call %d)", name, when(kill), at, kill.Call), problem})
	}
	if at == "" {
		k.complete++
	}
	if k.done++; k.done*10/total > (k.done-1)*10/total {
		f.Env.Story("%d of %d killed runs were run again", k.done, total)
	}
	return nil
}

func when(kill account.Kill) string {
	if kill.After {
		return "after"
	}
	return "before"
}

// compared says what is missing of a list of resources, and what there is beyond it.
func compared(want, have []string) string {
	var out []string
	without := func(all, others []string, word string) {
		others = slices.Clone(others)
		for _, line := range all {
			if at := slices.Index(others, line); at >= 0 {
				others = slices.Delete(others, at, at+1)
				continue
			}
			out = append(out, word+" "+line)
		}
	}
	without(have, want, "left:")
	without(want, have, "missing:")
	return strings.Join(out, "; ")
}

// print prints what the kills have shown.
func (k *kills) print(f *flags) error {
	killed := k.done - k.complete
	if len(k.problems) > 0 {
		slices.SortFunc(k.problems, slices.Compare)
		if err := render.Table(f.Env.Out, []string{"KILLED IN", "AFTER ANOTHER RUN"}, k.problems); err != nil {
			return err
		}
		return fmt.Errorf("%d of %s, run again, do not have the result of a run that was not killed", len(k.problems), text.Count(killed, "killed run"))
	}
	_, err := fmt.Fprintf(f.Env.Out, "Killed %d times, before and after calls of create (%d) and of delete (%d), and run again: the result is always that of a run that was not killed\n",
		killed, k.calls["create"], k.calls["delete"])
	return err
}
