package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"clusterawsadm/internal/cli/env"
	"clusterawsadm/internal/cli/simulated"
	"clusterawsadm/internal/clock"
	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile"
)

// defaultRegion is where a simulated account is, unless one is named.
const defaultRegion = "us-east-1"

// askingCredentials is how long credentials may take to come.
const askingCredentials = 15 * time.Second

// session is an account that a command works on.
type session struct {
	target  reconcile.Target
	account *simulated.Account // nil: AWS, or what stands in for it at AWS_ENDPOINT_URL
	release func()
}

// open gets access to the account. The region may be "" for whatever the
// environment says.
func (f *flags) open(ctx context.Context, region string) (*session, error) {
	f.tellInRecords()
	s := &session{release: func() {}}
	s.target = reconcile.Target{
		Parallel: f.parallel,
		Who:      f.env.Who,
		StateDir: filepath.Join(f.env.StateDir, "clusterawsadm"),
		Warn:     func(text string) { f.env.Story("warning: %s", text) },
	}
	if f.verbose {
		s.target.Log = f.tell
	}
	if f.simulate {
		return s, f.openSimulated(s, region)
	}
	cfg, err := f.env.AWS(ctx, region, f.profile)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, env.Usagef("no AWS region: use --region, set AWS_REGION, or give the AWSCluster a spec.region")
	}
	if err := credentials(ctx, cfg); err != nil {
		return nil, err
	}
	if f.emulatorSpeed != 1 {
		if cfg.BaseEndpoint == nil {
			return nil, env.Usagef("--emulator-speed is for an emulator, and AWS_ENDPOINT_URL names none")
		}
		s.target.Clock = clock.Fast(time.Now(), f.emulatorSpeed)
	}
	s.target.Config = cfg
	return s, nil
}

func (f *flags) openSimulated(s *session, region string) error {
	if region == "" {
		region = defaultRegion
	}
	file := f.simulateState
	if file == "" {
		file = filepath.Join(s.target.StateDir, simulatedFile(region))
	}
	a, err := simulated.Open(simulated.Options{File: file, Region: region, Speed: f.simulateSpeed})
	if err != nil {
		return err
	}
	f.env.Story("simulated AWS account in %s, kept in %s", region, file)
	s.account, s.target.Config, s.target.Clock = a, a.Config, a.Clock
	s.release = f.env.OnExit(func() { _ = a.Save() }) // on the way out there is nobody to tell
	return nil
}

// simulatedFile is the name of the file of a region's account: a simulated
// account has only one.
func simulatedFile(region string) string {
	if region == defaultRegion {
		return "simulated.json"
	}
	return "simulated-" + region + ".json"
}

// close gives up the account, and adds to the outcome of the command what
// goes wrong with that.
func (s *session) close(err *error) {
	if s.account == nil {
		return
	}
	*err = errors.Join(*err, s.account.Close())
	s.release()
}

// credentials makes sure that there are some, before anything is begun.
func credentials(ctx context.Context, cfg aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, askingCredentials)
	defer cancel()
	if cfg.Credentials == nil {
		return errNoCredentials
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return fmt.Errorf("%w\n(%w)", errNoCredentials, err)
	}
	return nil
}

// errNoCredentials says what to do where AWS cannot be asked for anything.
var errNoCredentials = errors.New("no AWS credentials: use --profile, set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
	"log in with 'aws sso login', or try it out with --simulate")

// tell logs one call.
func (f *flags) tell(c cloud.Call) {
	if c.Err != nil {
		f.env.Story("%s %s %s: %v", c.Service, c.Operation, c.Took.Round(time.Millisecond), c.Err)
		return
	}
	f.env.Story("%s %s %s", c.Service, c.Operation, c.Took.Round(time.Millisecond))
}

// within returns a context that ends when the user's patience does.
func (f *flags) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("not done after %s (--timeout)", f.timeout))
}

// subject opens the cluster that a command is about: that of the manifest, or
// the one that is named.
func (f *flags) subject(ctx context.Context, args []string) (*reconcile.Cluster, *session, error) {
	if len(args) > 0 && len(f.files) > 0 {
		return nil, nil, env.Usagef("name the cluster, or its manifest with -f, but not both")
	}
	if len(args) > 0 {
		s, err := f.open(ctx, f.region)
		if err != nil {
			return nil, nil, err
		}
		return reconcile.OpenByName(args[0], s.target), s, nil
	}
	if len(f.files) == 0 {
		return nil, nil, env.Usagef("which cluster? Name it, or its manifest with -f FILE")
	}
	m, err := f.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := f.open(ctx, m.Region)
	if err != nil {
		return nil, nil, err
	}
	return reconcile.Open(m, s.target), s, nil
}
