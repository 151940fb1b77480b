package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// member is one of the clusters of a command.
type member struct {
	name string // as --cluster takes it
	loaded
	*subject       // nil until its account is open
	err      error // why its part of the command has failed
}

// loadAll reads all clusters of the manifest, or the one of --cluster, and prints their warnings. If there
// is only one, its error is that of loadAll.
func (f *manifestFlags) loadAll(ctx context.Context) ([]*member, error) {
	ctx, done := f.whileReading(ctx)
	defer done()
	sources, err := f.manifestSources(ctx)
	if err != nil {
		return nil, err
	}
	g, err := f.given(ctx, sources)
	if err != nil {
		return nil, err
	}
	var all []*member
	for _, l := range reconcile.LoadAll(sources, g.options) { //nolint:contextcheck // it reads what is in memory
		m := &member{name: l.Name, err: l.Err}
		if m.err == nil {
			m.loaded, m.err = f.checked(l.Manifest, g)
		}
		all = append(all, m)
	}
	if len(all) == 1 {
		return all, all[0].err
	}
	return all, refuseSameName(all)
}

// refuseSameName refuses two clusters of one name in one region: AWS resources are found by the name.
func refuseSameName(all []*member) error {
	seen := map[string]string{}
	for _, m := range all {
		if m.Manifest == nil {
			continue
		}
		where := m.Name() + " in " + m.Region()
		if other := seen[where]; other != "" {
			return env.Usagef("%s and %s are both cluster %s, and the resources of a cluster are found by its name: choose one with --cluster", other, m.name, where)
		}
		seen[where] = m.name
	}
	return nil
}

// completeChosen lets the shell complete the names of the clusters in the files of -f.
func (f *manifestFlags) completeChosen(cmd *cobra.Command) {
	// Fails only for an unknown flag, or one with a completion.
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if slices.Contains(f.files, "-") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		once := &manifestFlags{flags: f.flags, files: slices.Compact(slices.Sorted(slices.Values(f.files)))} // cobra reads the line twice
		sources, err := once.sources(cmd.Context())
		if err != nil {
			cobra.CompErrorln(err.Error())
			return nil, cobra.ShellCompDirectiveError
		}
		return reconcile.Clusters(sources, input.LoadOptions{Lookup: f.Env.LookupEnv}), cobra.ShellCompDirectiveNoFileComp
	})
}

// onlyOne refuses flags that are about one cluster, if there are several.
func onlyOne(cmd *cobra.Command, all []*member, flags ...string) error {
	for _, flag := range flags {
		if typed(cmd, flag) {
			return env.Usagef("--%s is for one cluster, and the manifest has %s: choose one with --cluster NAME", flag, strings.Join(namesOf(all), ", "))
		}
	}
	return nil
}

func namesOf(all []*member) (names []string) {
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}

// fleet is a command that works on several clusters side by side.
type fleet struct {
	*manifestFlags
	members  []*member
	sessions map[string]*session // by region
	budget   cluster.Budget
	together error // what is wrong with the plans of all clusters together
}

// newFleet prepares work on several clusters.
func (f *manifestFlags) newFleet(all []*member) *fleet {
	return &fleet{manifestFlags: f, members: all, sessions: map[string]*session{}}
}

// refuseWrong is the error if a manifest is wrong: then nothing is changed.
func (f *fleet) refuseWrong() error {
	if !slices.ContainsFunc(f.members, func(m *member) bool { return m.err != nil }) {
		return nil
	}
	err := f.end(false)
	f.Env.Story("Nothing was changed. To go on with a cluster whose manifest is right, choose it with --cluster NAME.")
	return err
}

// open opens the account in the region of each cluster, once.
func (f *fleet) open(ctx context.Context, how runFlags) error {
	for _, m := range f.members {
		if m.err != nil {
			continue
		}
		region := m.Region()
		if f.sessions[region] == nil {
			s, err := f.flags.open(ctx, region)
			if err != nil {
				return err
			}
			f.sessions[region] = s
		}
		if m.err = f.assumed(ctx, f.sessions[region], m.loaded); m.err != nil {
			continue
		}
		own := *f.sessions[region]
		own.target.Budget = &f.budget
		own.target.Warn = func(text string) { f.warn("[" + m.name + "] " + env.Valid(text)) }
		m.subject, m.err = subjectIn(&own, m.loaded, how)
	}
	return nil
}

// close closes the accounts.
func (f *fleet) close(err *error) {
	for _, s := range f.sessions {
		s.Close(err)
	}
}

// each does something with all clusters whose accounts are open, side by side.
func (f *fleet) each(do func(i int, m *member) error) {
	var all sync.WaitGroup
	for i, m := range f.members {
		if m.subject == nil || m.err != nil {
			continue
		}
		all.Go(func() { m.err = crash.Catch(func() error { return do(i, m) }) })
	}
	all.Wait()
}

// end prints the errors of all clusters, and returns them: the exit code is that of the worst. Without an
// error, it is that of changes, if there are any.
func (f *fleet) end(changes bool) error {
	var all []error
	for _, m := range f.members {
		if m.err != nil {
			f.tell(m)
			all = append(all, fmt.Errorf("cluster %s: %w", m.name, m.err))
		}
	}
	if f.together != nil {
		f.Env.Story("%s %s", f.Env.ErrStyle().Error("error:"), f.together)
		all = append(all, f.together)
	}
	switch {
	case len(all) > 0:
		return &env.ToldError{Err: errors.Join(all...)}
	case changes:
		return env.ErrChanges
	}
	return nil
}

// tell prints the error of a cluster: a problem of several manifests once.
func (f *fleet) tell(m *member) {
	text := strings.Join(env.Errors(m.err), "\n")
	var invalid *input.InvalidError
	if errors.As(m.err, &invalid) {
		for _, p := range invalid.Problems {
			if _, before := f.warned.LoadOrStore(p.String(), true); !before {
				f.Env.Story("%s", env.Valid(p.String()))
			}
		}
		text = "the manifest is wrong (" + strconv.Itoa(len(invalid.Problems)) + ")"
	}
	f.Env.Story("%s cluster %s: %s", f.Env.ErrStyle().Error("error:"), m.name, strings.ReplaceAll(env.Valid(text), "\n", "\n       "))
}

// failure is the JSON output for a cluster whose part of a command has failed.
type failure struct {
	Version  int      `json:"version"`
	Cluster  string   `json:"cluster"`
	ExitCode int      `json:"exitCode"`
	Errors   []string `json:"errors"`
}

// severalClusters is the JSON output of a command for several clusters: for each, the document that the
// command prints for one, or a failure.
type severalClusters struct {
	Version  int   `json:"version"`
	Clusters []any `json:"clusters"`
}

// documents is the JSON output. of returns that of a cluster; nil without one.
func (f *fleet) documents(ctx context.Context, of func(i int, m *member) any) severalClusters {
	all := severalClusters{Version: render.Version, Clusters: []any{}}
	for i, m := range f.members {
		document := of(i, m)
		if document == nil {
			document = failure{Version: render.Version, Cluster: m.name, ExitCode: env.ExitCode(ctx, m.err), Errors: env.Errors(m.err)}
		}
		all.Clusters = append(all.Clusters, document)
	}
	return all
}

// row is a row of the table at the end.
func (m *member) row(ctx context.Context, cells ...string) []string {
	region := "-"
	if m.Manifest != nil {
		region = m.Region()
	}
	return append(append([]string{m.name, region}, cells...), strconv.Itoa(env.ExitCode(ctx, m.err)))
}

// planCells are the cells of a plan in a table.
func planCells(p plan.Plan) []string {
	c := render.Summarize(p)
	return []string{strconv.Itoa(c.Create), strconv.Itoa(c.Update), strconv.Itoa(c.Replace), strconv.Itoa(c.Delete), strconv.Itoa(c.Conflict)}
}

// none are the cells of a cluster without a plan.
func none(n int) []string { return slices.Repeat([]string{"-"}, n) }

// planHeaders are the headers of a table of plans.
func planHeaders() []string {
	return []string{"CLUSTER", "REGION", "CREATE", "CHANGE", "REPLACE", "DELETE", "CONFLICTS", "EXIT CODE"}
}

// showPlans prints the plans that p.shown selects, and a table of all clusters. If changes is set, the command
// exits with the code for "there are changes" when a plan has any.
func (f *fleet) showPlans(ctx context.Context, format string, p plans, changes bool) error {
	var err error
	switch format {
	case "text":
		err = f.printPlans(ctx, p)
	case "markdown":
		for i := range p.of {
			if err == nil && p.shown(i) {
				err = render.PlanMarkdown(f.Env.Out, p.of[i], p.views[i])
			}
		}
	default:
		err = render.Encode(f.Env.Out, render.Format(format), f.documents(ctx, func(i int, _ *member) any {
			if !p.shown(i) {
				return nil
			}
			return render.NewPlanDocument(p.of[i], p.views[i])
		}))
	}
	if err != nil {
		return err
	}
	return f.end(changes)
}

// plans are the plans of several clusters.
type plans struct {
	of    []plan.Plan
	views []render.PlanView
	shown func(i int) bool
}

// quotasTogether refuses plans that each have room in a quota of the account, and together do not.
func quotasTogether(p []plan.Plan, views []render.PlanView) error {
	type quota struct{ account, region, service, code, name string }
	sums, users, names := map[quota]plan.Quota{}, map[quota][]string{}, []quota{}
	for i := range p {
		for _, q := range p[i].Quotas {
			if q.Needed <= 0 {
				continue
			}
			key := quota{views[i].Account, views[i].Region, q.Service, q.Code, q.Name}
			if sum, ok := sums[key]; ok {
				q.Needed += sum.Needed
			} else {
				names = append(names, key)
			}
			sums[key], users[key] = q, append(users[key], views[i].Cluster)
		}
	}
	var reasons []error
	for _, key := range names {
		if q := sums[key]; q.Exceeded() && len(users[key]) > 1 {
			reasons = append(reasons, fmt.Errorf(
				"together the clusters %s need %d %s, but %s allows %d and %d are in use: choose some with --cluster, or request a higher quota (%s %s)",
				strings.Join(users[key], ", "), q.Needed, q.Name, key.region, q.Limit, q.Used, q.Service, q.Code,
			))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &plan.RefusedError{Reasons: reasons}
}

func (f *fleet) printPlans(ctx context.Context, p plans) error {
	rows := make([][]string, 0, len(f.members))
	for i, m := range f.members {
		if !p.shown(i) {
			rows = append(rows, m.row(ctx, none(len(planHeaders())-3)...))
			continue
		}
		rows = append(rows, m.row(ctx, planCells(p.of[i])...))
		if _, err := fmt.Fprintf(f.Env.Out, "Cluster %s\n\n", m.name); err != nil {
			return err
		}
		if err := render.Plan(f.Env.Out, p.of[i], p.views[i]); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(f.Env.Out); err != nil {
			return err
		}
	}
	return render.Table(f.Env.Out, planHeaders(), rows)
}

// subjects is subject for a command that takes several clusters, too: if the manifest has more than one, it
// returns them instead.
func (f *manifestFlags) subjects(ctx context.Context, args []string, how runFlags) (*subject, []*member, error) {
	if len(args) > 0 || len(f.files) == 0 {
		x, err := f.subject(ctx, args, how)
		return x, nil, err
	}
	all, err := f.loadAll(ctx)
	if err != nil || len(all) > 1 {
		return nil, all, err
	}
	x, err := f.opened(ctx, all[0].loaded, how)
	return x, nil, err
}
