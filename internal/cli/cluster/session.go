package cluster

import (
	"context"
	"fmt"
	"path/filepath"
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
	s.unlimit = f.limitOn(ctx, a.Clock)
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

// within returns a context that ends after --timeout. In real time, except while a simulated
// account is open: limitOn.
func (f *flags) within(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case f.timeout <= 0:
		return ctx, func() {}
	case f.Simulate && !f.Copies:
		ctx, f.end = context.WithCancelCause(ctx)
		f.unlimit = f.limit(ctx, nil)
		return ctx, func() { f.end(nil) }
	}
	return context.WithTimeoutCause(ctx, f.timeout, &env.TimeoutError{After: f.timeout})
}

// limitOn lets --timeout count on the clock of a simulated account, until stop is called.
func (f *flags) limitOn(ctx context.Context, c *clock.Clock) (stop func()) {
	if f.end == nil {
		return func() {}
	}
	f.unlimit()
	return f.limit(ctx, c)
}

// limit ends the command after --timeout on a clock, unless stop is called before.
func (f *flags) limit(ctx context.Context, c *clock.Clock) (stop func()) {
	return c.AfterFunc(ctx, f.timeout, func() { f.end(&env.TimeoutError{After: f.timeout}) })
}

// check checks the values of numeric flags.
func (f *flags) check() error {
	switch {
	case f.parallel < 0:
		return env.Usagef("--parallel: must not be negative, is %d", f.parallel)
	case f.timeout < 0:
		return env.Usagef("--timeout: must not be negative, is %s", f.timeout)
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
		f.setTyped = typed(cmd, "set")
		ctx, cancel := f.within(cmd.Context())
		defer cancel()
		cmd.SetContext(ctx)
		return env.Late(ctx, run(cmd, args))
	}
}

// subject opens the cluster of a command: from the manifest, or from the name in the
// arguments.
func (f *flags) subject(ctx context.Context, args []string) (*reconcile.Cluster, *session, error) {
	if len(args) > 0 && len(f.files) > 0 {
		return nil, nil, env.Usagef("use the name of the cluster or -f FILE, not both")
	}
	if len(args) > 0 {
		if err := reconcile.CheckName(args[0]); err != nil {
			return nil, nil, &env.UsageError{Err: err}
		}
		s, err := f.open(ctx, f.Region)
		if err != nil {
			return nil, nil, err
		}
		return reconcile.OpenByName(args[0], s.target), s, nil
	}
	if len(f.files) == 0 {
		return nil, nil, env.Usagef("no cluster: use its name, or -f FILE for its manifest")
	}
	return f.wanted(ctx)
}

// notFound is the error for the name of a cluster that does not exist.
func (f *flags) notFound(name, region string) error {
	return fmt.Errorf("there is no cluster %s in %s: 'clusterawsadm cluster list --all-regions%s' lists the clusters in all regions", name, region, f.Again())
}

// wanted opens the cluster of the manifest.
func (f *flags) wanted(ctx context.Context) (*reconcile.Cluster, *session, error) {
	if err := f.checkBackup(); err != nil {
		return nil, nil, err
	}
	m, err := f.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	newEtcd, err := f.permitsNewEtcd(m.Name())
	if err != nil {
		return nil, nil, err
	}
	s, err := f.open(ctx, m.Region())
	if err != nil {
		return nil, nil, err
	}
	s.target.NewEtcd = newEtcd
	if f.waits {
		f.until, f.lacking = f.waitsFor(m), lacking(m)
		s.target.Wait = f.until
	}
	s.target.Drain, s.target.NetworkFirst, s.target.KMSKey, f.eks = f.drain, f.networkFirst, f.kmsKey, m.Summary().EKS
	s.target.CheckPermissions, s.target.IgnorePermissions = f.checks, f.unchecked
	s.target.Cost = f.cost.value == "on"
	if f.restore.File != "" {
		s.target.Restore = &f.restore
	}
	if f.backup.To != "" {
		s.target.Backup = &f.backup
	}
	return reconcile.Open(m, s.target), s, nil
}

// stateDir is the folder for locks; "" if the home directory is unknown.
func (f *flags) stateDir() string {
	if f.Env.StateDir == "" {
		return ""
	}
	return filepath.Join(f.Env.StateDir, "clusterawsadm")
}
