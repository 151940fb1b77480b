package account

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/simulated"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
)

// DefaultRegion is the default region of a simulated account.
const DefaultRegion = "us-east-1"

// openSimulated opens a region of the simulated account. If the region is "", it is that of
// --simulate-state, or else the default.
func (f *Flags) openSimulated(ctx context.Context, region string) (*Account, error) {
	if err := f.CheckSimulated(); err != nil {
		return nil, err
	}
	home, err := f.homeRegion()
	if err != nil {
		return nil, err
	}
	region = cmp.Or(region, home, DefaultRegion)
	file := f.stateFile(region, home)
	faults, err := f.faults()
	if err != nil {
		return nil, err
	}
	a, err := simulated.Open(ctx, simulated.Options{
		File: file, Region: region, Speed: f.SimulateSpeed, Faults: faults, Killed: f.killed, Alone: f.Serves,
		Waits: func(holder string) {
			f.Env.Story("waiting until %s has ended, which uses the simulated AWS account in %s", cmp.Or(holder, "the command"), file)
		},
	})
	if err != nil {
		return nil, wrongFile(err)
	}
	switch {
	case f.Copies:
		f.Env.Story("using a simulated copy of the account in %s", region)
	case a.Endpoint == "":
		f.Env.Story("using the simulated AWS account in %s, stored in %s", region, file)
	default:
		f.Env.Story("using the simulated AWS account in %s, stored in %s, which another process serves at %s", region, file, a.Endpoint)
	}
	a.Config.APIOptions = append(a.Config.APIOptions, plainErrors) // as on AWS
	return &Account{
		Config: a.Config, Clock: a.Clock, Kubernetes: a.Kubernetes, Helm: simulated.Helm(), simulated: a,
		release: f.Env.OnExit(func() { _ = a.Save() }), // the process ends, so the error cannot be reported
	}, nil
}

// homeRegion is the region in the file of --simulate-state; "" without this flag or file.
func (f *Flags) homeRegion() (string, error) {
	if f.SimulateState == "" && f.Env.StateDir == "" {
		return "", env.Usagef("the home directory is unknown: set HOME or XDG_STATE_HOME, or use --simulate-state")
	}
	if f.SimulateState == "" {
		return "", nil
	}
	region, err := simulated.RegionOf(f.SimulateState)
	return region, wrongFile(err)
}

// wrongFile makes the error of a file that is not a simulated account one of the command line, which names the file.
func wrongFile(err error) error {
	if errors.As(err, new(*simulated.UnreadableError)) {
		return &env.UsageError{Err: err}
	}
	return err
}

// stateFile returns the file of a region. Each region of the simulated account has a file.
// The file of --simulate-state is that of the home region, which was used first. The files of
// other regions are beside it.
func (f *Flags) stateFile(region, home string) string {
	first := f.SimulateState
	if first == "" {
		first, home = filepath.Join(f.Env.StateDir, "clusterawsadm", "simulated.json"), DefaultRegion
	}
	if region == cmp.Or(home, region) {
		return first
	}
	end := filepath.Ext(first)
	return strings.TrimSuffix(first, end) + "-" + region + end
}

// SimulatedRegions returns the regions in which the simulated account was used.
func (f *Flags) SimulatedRegions() (used []string, err error) {
	home, err := f.homeRegion()
	if err != nil {
		return nil, err
	}
	for _, region := range regions.All() {
		_, err := os.Stat(f.stateFile(region, cmp.Or(home, DefaultRegion)))
		switch {
		case err == nil:
			used = append(used, region)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return used, nil
}

// killed is the exit code of a program that was killed with SIGKILL.
const killed = 128 + 9

// killed ends the process, as the profile "killed" does.
func (f *Flags) killed() {
	f.Env.Story("--faults: killed here; the same command continues")
	f.Env.Leave(killed)
}

// faults returns the faults of the simulated account; nil for none.
func (f *Flags) faults() (*simulated.Faults, error) {
	if f.Faults == "" {
		return nil, nil //nolint:nilnil // no faults
	}
	if !f.Simulate && !f.Copies {
		return nil, env.Usagef("--faults needs --simulate")
	}
	faults, err := simulated.ParseFaults(f.Faults)
	if err != nil {
		return nil, env.Usagef("--faults: %w", err)
	}
	return faults, nil
}

// CopySimulated copies the simulated account of a region into a folder, and makes the copy the
// account of the command. The user's file is not changed.
func (f *Flags) CopySimulated(region, folder string) error {
	home, err := f.homeRegion()
	if err != nil {
		return err
	}
	to := filepath.Join(folder, "account.json")
	data, err := os.ReadFile(f.stateFile(region, home))
	switch {
	case errors.Is(err, fs.ErrNotExist): // a new account
	case err != nil:
		return err
	default:
		if err := files.Replace(to, data, files.Private); err != nil {
			return err
		}
	}
	f.Simulate, f.SimulateState = true, to
	return nil
}

// Resources lists the resources of a simulated account, except for default ones: one sorted
// line for each, with kind and name.
func (a *Account) Resources() []string { return a.simulated.Resources() }
