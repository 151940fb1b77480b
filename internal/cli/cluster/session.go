package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// session is the account of a command.
type session struct {
	*account.Account
	target  cluster.Target
	calls   *render.CallCounter
	unlimit func() // --timeout does not count any more
}

// Close closes the account, and adds its error to that of the command.
func (s *session) Close(err *error) {
	s.unlimit()
	s.Account.Close(err)
}

// open opens the account. If the region is "", that of the environment is used.
func (f *flags) open(ctx context.Context, region string) (*session, error) {
	f.messagesAsRecords()
	a, err := f.Open(ctx, region)
	if err != nil {
		return nil, err
	}
	s := &session{Account: a, calls: &render.CallCounter{}, target: cluster.Target{
		Config:   a.Config,
		Clock:    a.Clock,
		Parallel: f.parallel,
		Owner:    f.Env.Who,
		StateDir: f.stateDir(),

		AskCluster: true,
		Transport:  a.Kubernetes,
		Helm:       a.Helm,
		Warn:       func(text string) { f.warn(env.Valid(text)) },
	}}
	s.target.Log = func(c plan.Call) {
		s.calls.Add(c)
		if f.logsCalls() {
			f.logCall(c)
		}
	}
	if !a.Simulated() && a.Config.BaseEndpoint == nil && f.Env.CacheDir != "" { // other endpoints have their own prices
		s.target.CacheDir = filepath.Join(f.Env.CacheDir, "clusterawsadm")
	}
	f.clock = a.Clock
	s.unlimit = f.limit.on(ctx, a.Clock)
	if f.emulatorSpeed != 1 && !f.Simulate {
		if a.Config.BaseEndpoint == nil {
			return nil, env.Usagef("--emulator-speed requires an emulator: set AWS_ENDPOINT_URL")
		}
		s.Clock = clock.Fast(time.Now(), f.emulatorSpeed)
		s.target.Clock = s.Clock
	}
	return s, nil
}

// logsCalls reports whether every AWS call is logged.
func (f *flags) logsCalls() bool { return f.verbose || f.Env.LogLevel >= account.LogCalls }

// logCall logs one call.
func (f *flags) logCall(c plan.Call) {
	if c.Err != nil {
		f.Env.Story("%s %s %s: %s", c.Service, c.Operation, c.Took.Round(time.Millisecond), env.Valid(c.Err.Error()))
		return
	}
	f.Env.Story("%s %s %s", c.Service, c.Operation, c.Took.Round(time.Millisecond))
}

// simulatedLimit is --timeout of a command with --simulate: in real time until a simulated account is
// opened, then on its clock.
type simulatedLimit struct {
	after time.Duration
	end   context.CancelCauseFunc // ends the command
	stop  func()                  // ends the limit that counts
}

// on ends the command after the limit on a clock, and not on the one before.
func (l *simulatedLimit) on(ctx context.Context, c *clock.Clock) (stop func()) {
	if l == nil {
		return func() {}
	}
	if l.stop != nil {
		l.stop()
	}
	l.stop = c.AfterFunc(ctx, l.after, func() { l.end(&env.TimeoutError{After: l.after}) })
	return l.stop
}

// within returns a context that ends after --timeout: in real time, except while a simulated
// account is open.
func (f *flags) within(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case f.timeout <= 0:
		return ctx, func() {}
	case f.Simulate && !f.Copies:
		ctx, end := context.WithCancelCause(ctx)
		f.limit = &simulatedLimit{after: f.timeout, end: end}
		f.limit.on(ctx, nil)
		return ctx, func() { end(nil) }
	}
	return context.WithTimeoutCause(ctx, f.timeout, &env.TimeoutError{After: f.timeout})
}

// check checks the values of numeric flags.
func (f *flags) check() error {
	switch {
	case f.parallel < 0:
		return env.Usagef("--parallel: must not be negative, is %d", f.parallel)
	case f.timeout < 0:
		return env.Usagef("--timeout: must not be negative, is %s", f.timeout)
	case f.assume && !f.Simulate:
		return env.Usagef("--simulate-assume needs --simulate")
	case f.emulatorSpeed < 1:
		return env.Usagef("--emulator-speed: must be 1 or more, is %v", f.emulatorSpeed)
	}
	return f.CheckSimulated()
}

// timed makes a command end after --timeout.
func (f *flags) timed(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if err := f.settle(cmd); err != nil {
			return err
		}
		ctx, cancel := f.within(cmd.Context())
		defer cancel()
		cmd.SetContext(ctx)
		return env.Late(ctx, run(cmd, args))
	}
}

// subject is the cluster that a command works on, and what its manifest says.
type subject struct {
	*session
	cluster *reconcile.Cluster

	// Of a manifest:
	digest      string    // of the manifest, its variables and what else is applied
	eks         bool      // EKS runs the control plane
	until       plan.Wait // what the run waits for
	unreachable string    // why the run does not wait for the API server, which the user has not chosen
	lacking     string    // what Nodes need to become ready and the manifest does not install; "" for nothing
	backup      bool      // the run backs up the cluster first
}

// subject opens the cluster of a command: from the manifest, or from the name in the
// arguments.
func (f *manifestFlags) subject(ctx context.Context, args []string, how runFlags) (*subject, error) {
	if len(args) > 0 && len(f.files) > 0 {
		return nil, env.Usagef("use the name of the cluster or -f FILE, not both")
	}
	if len(args) > 0 {
		if err := reconcile.CheckName(args[0]); err != nil {
			return nil, &env.UsageError{Err: err}
		}
		s, err := f.open(ctx, f.Region)
		if err != nil {
			return nil, err
		}
		s.target.Cost = how.cost.value == "on"
		return &subject{session: s, cluster: reconcile.OpenByName(args[0], s.target)}, nil
	}
	if len(f.files) == 0 {
		return nil, env.Usagef("no cluster: use its name, or -f FILE for its manifest")
	}
	return f.wanted(ctx, how)
}

// end closes the session of a command that needs a whole cluster. If the command has failed, and a run has not
// finished its work on the cluster, the error says so.
func (x *subject) end(ctx context.Context, err *error) {
	defer x.Close(err)
	if *err == nil || ctx.Err() != nil || errors.As(*err, new(*env.UsageError)) {
		return
	}
	if told := render.LastRun(x.cluster.LastRun(ctx), x.Clock.Now()); told != "" {
		*err = errors.Join(*err, errors.New(told))
	}
}

// notFound is the error for the name of a cluster that does not exist.
func (f *flags) notFound(name, region string) error {
	return fmt.Errorf("there is no cluster %s in %s: 'clusterawsadm cluster list --all-regions%s' lists the clusters in all regions", name, region, f.Again())
}

// wanted opens the cluster of the manifest for a run.
func (f *manifestFlags) wanted(ctx context.Context, how runFlags) (*subject, error) {
	if _, err := how.backupFirst(); err != nil {
		return nil, err
	}
	m, err := f.load(ctx)
	if err != nil {
		return nil, err
	}
	return f.opened(ctx, m, how)
}

// opened opens the cluster of a manifest that was read.
func (f *manifestFlags) opened(ctx context.Context, m loaded, how runFlags) (*subject, error) {
	if _, err := how.permitsNewEtcd(m.Name()); err != nil {
		return nil, err
	}
	s, err := f.open(ctx, m.Region())
	if err != nil {
		return nil, err
	}
	if err := f.assumed(ctx, s, m); err != nil {
		return nil, errors.Join(err, closed(s))
	}
	return subjectIn(s, m, how)
}

// closed closes a session after an error.
func closed(s *session) (err error) {
	s.Close(&err)
	return err
}

// assumed puts what a manifest takes for granted into the simulated account, with --simulate-assume.
func (f *flags) assumed(ctx context.Context, s *session, m loaded) error {
	if !f.assume || !s.Simulated() {
		return nil
	}
	told, err := s.Assume(ctx, m.Assumed())
	for _, what := range told {
		f.Env.Story("assumed: %s", what)
	}
	return err
}

// subjectIn is the cluster of a manifest in an account that is open.
func subjectIn(s *session, m loaded, how runFlags) (*subject, error) {
	backup, err := how.backupFirst()
	if err != nil {
		return nil, err
	}
	newEtcd, err := how.permitsNewEtcd(m.Name())
	if err != nil {
		return nil, err
	}
	x := &subject{session: s, digest: m.digest, eks: m.Summary().EKS, backup: backup != nil}
	t := &s.target
	if how.waits {
		x.until, x.lacking = how.waitsFor(m.Manifest), lacking(m.Manifest)
		if how.wait.value == "" {
			x.unreachable = m.Unreachable()
		}
		t.Wait = x.until
	}
	t.NewEtcd, t.Drain, t.NetworkFirst, t.KMSKey, t.Backup = newEtcd, how.drain, how.networkFirst, how.kmsKey, backup
	t.CheckPermissions, t.IgnorePermissions, t.Cost = how.checks, how.unchecked, how.cost.value == "on"
	if how.restore.File != "" {
		t.Restore = &how.restore
	}
	x.cluster = reconcile.Open(m.Manifest, *t)
	return x, nil
}

// notes are remarks about what a plan leads to.
func (x *subject) notes(p plan.Plan) (notes []string) {
	if p.ReplacesControlPlane && !x.backup {
		notes = append(notes, "Machines of the control plane are replaced: --backup FILE backs up etcd and the keys of the cluster first.")
	}
	starts := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Resource.Kind() == reconcile.KindAPIServer && s.Action == plan.Await })
	replaces := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ReplacedBy != "" }) && slices.ContainsFunc(p.Steps, awaitsReadyNode)
	if x.unreachable != "" && !p.Empty() {
		notes = append(notes, "The run ends when AWS runs the machines, before add-ons and Nodes, as with --wait=infrastructure: "+x.unreachable+".")
	}
	switch {
	case x.lacking == "":
		return notes
	case starts:
		return append(notes, "Nodes will not become ready: "+x.lacking+".")
	case replaces: // somebody may have installed it
		return append(notes, "Old machines leave when the Nodes of the new ones are ready: "+x.lacking+", if that was not done.")
	}
	return notes
}

// stateDir is the folder for locks; "" if the home directory is unknown.
func (f *flags) stateDir() string {
	if f.Env.StateDir == "" {
		return ""
	}
	return filepath.Join(f.Env.StateDir, "clusterawsadm")
}
