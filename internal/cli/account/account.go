// Package account opens the AWS account of a command: in AWS, in an emulator at
// AWS_ENDPOINT_URL, or a simulated one.
package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/pflag"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/simulated"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// credentialsTimeout limits the time to get credentials: somebody may have to type the code
// of an MFA device.
const credentialsTimeout = time.Minute

// Flags are the flags that select the account.
type Flags struct {
	Env *env.Env

	Region, Profile string
	Simulate        bool
	SimulateState   string
	SimulateSpeed   float64
	Faults          string
	Serves          bool // the command serves the simulated account
	Copies          bool // the command makes a simulated copy of the account, and the flags are for that one

	Remarked string // a region that was checked with the manifest, and is not checked again

	simulable bool // the command has --simulate
	region    *pflag.Flag
	simulated []*pflag.Flag // have an effect only on a simulated account
}

// Add defines the flags. The region's flag gets the shorthand, "" for none.
func (f *Flags) Add(p *pflag.FlagSet, regionShorthand, regionDefault string) {
	p.StringVarP(&f.Region, "region", regionShorthand, "", "AWS region (default: "+regionDefault+")")
	f.region = p.Lookup("region")
	f.AddProfile(p)
	f.AddSimulate(p)
}

// Again returns the flags that select the same account in another command, each after a
// space.
func (f *Flags) Again() (words string) {
	if f.Profile != "" {
		words += " --profile " + env.Shell([]string{f.Profile})
	}
	if f.Simulate {
		words += " --simulate"
	}
	if f.SimulateState != "" {
		words += " --simulate-state " + env.Shell([]string{f.SimulateState})
	}
	return words
}

// RegionSetting returns the setting that the region comes from; "" when it is from
// the command line. Only the command line overrides the region of a file.
func (f *Flags) RegionSetting() string {
	if f.region == nil {
		return ""
	}
	return env.SettingOf(f.region)
}

// AddProfile defines only the flag of the profile.
func (f *Flags) AddProfile(p *pflag.FlagSet) {
	p.StringVar(&f.Profile, "profile", "", "profile in the AWS configuration files")
}

// AddSimulate defines only the flags of the simulated account.
func (f *Flags) AddSimulate(p *pflag.FlagSet) {
	f.simulable = true
	p.BoolVar(&f.Simulate, "simulate", false, "use a simulated AWS account, stored in a file, instead of AWS")
	f.addSimulated(p, 0, "run the simulated clock `N` times faster than real time; by default it jumps ahead whenever a command only waits")
}

// servedSpeed is the default speed of an account that is served: its time cannot jump, because
// it is not known when its clients wait.
const servedSpeed = 60

// AddServed defines the flags of the simulated account for a command that serves it.
func (f *Flags) AddServed(p *pflag.FlagSet) {
	f.Simulate = true
	f.addSimulated(p, servedSpeed, "run the simulated clock `N` times faster than real time")
}

func (f *Flags) addSimulated(p *pflag.FlagSet, speed float64, usage string) {
	p.StringVar(
		&f.SimulateState,
		"simulate-state",
		"",
		"`FILE` of the simulated account; other regions than its first are in files beside it (default: in the state directory of the user)",
	)
	p.StringVar(
		&f.Faults,
		"faults",
		"",
		"let the simulated AWS fail, as `SEED[:PROFILE]`; the same seed gives the same faults; PROFILE: "+strings.Join(simulated.Profiles(), ", ")+" (default mixed)",
	)
	p.Float64Var(&f.SimulateSpeed, "simulate-speed", speed, usage)
	f.simulated = []*pflag.Flag{p.Lookup("simulate-state"), p.Lookup("simulate-speed")}
}

// Account is an open account, in one region.
type Account struct {
	Config aws.Config
	Clock  *clock.Clock // clock of the account; nil: the system clock
	// Kubernetes carries requests to the API servers of the account's clusters;
	// nil: the network.
	Kubernetes cluster.Transport
	// Helm installs charts: the program of the user, or a simulated one.
	Helm cluster.Helm

	simulated *simulated.Account
	release   func()
}

// Simulated reports whether the account is simulated.
func (a *Account) Simulated() bool { return a.simulated != nil }

// Open opens the account. If the region is "", that of the environment is used.
func (f *Flags) Open(ctx context.Context, region string) (*Account, error) {
	f.RemarkRegion(region)
	if f.Simulate {
		return f.openSimulated(ctx, region)
	}
	if err := f.checkReal(); err != nil {
		return nil, err
	}
	cfg, err := f.Env.AWS(ctx, region, f.Profile)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", plainConfig(err))
	}
	if cfg.Region == "" {
		return nil, ErrNoRegion
	}
	cfg = awshttp.Reporting(awshttp.Checked(cfg), func(text string) { f.Env.Story("%s", text) })
	cfg.APIOptions = append(cfg.APIOptions, plainErrors)
	if err := f.credentials(ctx, cfg); err != nil {
		return nil, err
	}
	return &Account{Config: cfg, Kubernetes: f.Env.Kubernetes, Helm: f.Env.Helm, release: func() {}}, nil
}

// checkReal returns an error if the command line has flags of a simulated account, but not
// --simulate: without it, the command would work on AWS.
func (f *Flags) checkReal() error {
	for _, flag := range f.simulated {
		if flag.Changed && env.SettingOf(flag) == "" && !f.Copies {
			return env.Usagef("--%s needs --simulate", flag.Name)
		}
	}
	return nil
}

// RemarkRegion warns about a region that is probably misspelled. New regions are not known.
func (f *Flags) RemarkRegion(region string) {
	if region == f.Remarked {
		return
	}
	if remark := regions.Remark(region); remark != "" {
		f.Env.Story("warning: %s", remark)
	}
}

// RunTime lets the time of the simulated account run, and not jump, because the command also
// waits for something that is not simulated.
func (f *Flags) RunTime() { f.SimulateSpeed = max(f.SimulateSpeed, 1) }

// CheckSimulated checks the speed and the faults of the simulated account.
func (f *Flags) CheckSimulated() error {
	if f.SimulateSpeed < 1 && (f.SimulateSpeed != 0 || !f.simulable) {
		return env.Usagef("--simulate-speed: must be 1 or more, is %v", f.SimulateSpeed)
	}
	_, err := f.faults()
	return err
}

// Assume puts into a simulated account what a manifest takes for granted, and returns what it was, in words.
func (a *Account) Assume(ctx context.Context, all []cluster.Assumed) ([]string, error) {
	return a.simulated.Assume(ctx, all)
}

// Serve serves a simulated account to AWS clients until the context ends.
func (a *Account) Serve(ctx context.Context, listen string, l net.Listener) error {
	return a.simulated.Serve(ctx, listen, l)
}

// Close closes the account, and adds its error to that of the command.
func (a *Account) Close(err *error) {
	if a.simulated == nil {
		return
	}
	*err = errors.Join(*err, a.simulated.Close())
	a.release()
}

// credentials checks that there are credentials.
func (f *Flags) credentials(ctx context.Context, cfg aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	hint := ""
	if f.simulable {
		hint = ", or use --simulate to try it without an account"
	}
	if cfg.Credentials == nil {
		return fmt.Errorf("%w%s", errNoCredentials, hint)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if s := f.Env.CredentialSource(ctx, f.Profile); s.SSO {
			return fmt.Errorf("there are no valid credentials of %s: log in with '%s'\n(%w)", s.Name, s.Login, err)
		}
		return fmt.Errorf("%w%s\n(%w)", errNoCredentials, hint, err)
	}
	return nil
}

// errNoCredentials lists the ways to set credentials.
var errNoCredentials = errors.New("no AWS credentials: use --profile, set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
	"log in with 'aws sso login'")

// ErrNoRegion says that no region is set.
var ErrNoRegion = env.Usagef("no AWS region: use --region, set AWS_REGION, or choose a profile that has one")
