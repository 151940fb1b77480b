// Package simulated stores a simulated AWS account in a file between commands, so
// that users can try create, plan, describe and delete without an account.
package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/assume"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// saving is how often an open account is written to its file: after a kill, at most this
// much is lost.
const saving = 500 * time.Millisecond

// Options select the account to open.
type Options struct {
	File   string  // the file of the account; created if it does not exist
	Region string  // the only region
	Speed  float64 // speed of its clock, as a multiple of real time; 0: it jumps while everybody waits
	Faults *Faults // nil: none
	Killed func()  // called when a fault kills the program

	Alone bool                // fail if another process serves the account, and do not use that one
	Waits func(holder string) // called if another process has the account for long; holder names it
}

// RegionOf returns the region of the account in a file; "" if the file does not exist.
func RegionOf(file string) (string, error) {
	f, err := os.Open(file) //nolint:gosec // a path that the user chose
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("simulated account: %w", err)
	}
	region, err := awssim.SavedRegion(f)
	if err != nil {
		err = fmt.Errorf("simulated account %s: %w", file, unreadable(err))
	}
	return region, errors.Join(err, f.Close())
}

// unreadable adds what to do about a file that is no simulated account: it may be another file of the
// user's, such as a manifest.
func unreadable(err error) error {
	return &UnreadableError{err}
}

// UnreadableError says that a file is not a simulated account.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the file is not a simulated account, or is damaged: %v; use --simulate-state to choose another file, or delete it if it is damaged", e.Err)
}

// Unwrap returns what is wrong.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Account is an open simulated account.
type Account struct {
	Config     aws.Config
	Kubernetes cluster.Transport
	Clock      *clock.Clock
	Endpoint   string // of the process that serves the account; "" if this one has it

	file    string
	sim     *awssim.AWS
	process *awssim.Process
	speed   float64
	lock    *lock

	mu     sync.Mutex // one writer at a time
	saved  int        // number of calls when it was last written
	closed bool
	stop   chan struct{}
	done   sync.WaitGroup
}

// Open opens the account in a file, and locks the file until Close. It waits until other
// processes have closed it. If one of them serves the account, the account uses that process.
// The clock of the account continues where it stopped.
func Open(ctx context.Context, o Options) (*Account, error) {
	if err := os.MkdirAll(filepath.Dir(o.File), 0o700); err != nil {
		return nil, fmt.Errorf("simulated account: %w; use --simulate-state to choose another file", err)
	}
	lock, err := acquire(ctx, o.File+".lock", o.Waits)
	if other, is := errors.AsType[*ServedError](err); is && !o.Alone {
		a, err := o.join(ctx, other)
		return a, o.about(err)
	}
	if errors.As(err, new(*fs.PathError)) {
		err = fmt.Errorf("%w; use --simulate-state to choose another file", err)
	}
	if err != nil {
		return nil, o.about(err)
	}
	a := &Account{file: o.File, lock: lock, speed: o.Speed, stop: make(chan struct{})}
	if err := a.load(o); err != nil {
		return nil, errors.Join(o.about(unreadable(err)), lock.Close())
	}
	p := a.sim.Process()
	o.Faults.disturb(p, a.sim.Serial(), o.Killed)
	a.process = p
	a.Config, a.Kubernetes = p.Config(), func(to cluster.Access) http.RoundTripper { return p.Kubernetes(kube.Access(to)) }
	a.done.Go(a.keep)
	return a, nil
}

// about adds the name of the account to an error.
func (o Options) about(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("simulated account %s: %w", o.File, err)
}

// clock returns a clock that begins at a time.
func (o Options) clock(at time.Time) *clock.Clock {
	if o.Speed > 0 {
		return clock.Fast(at, o.Speed)
	}
	return clock.Discrete(at)
}

func (a *Account) load(o Options) error {
	options := awssim.Options{Region: o.Region, EKSRoles: true}
	o.Faults.slow(&options)
	switch data, err := os.ReadFile(o.File); {
	case errors.Is(err, fs.ErrNotExist):
		options.Clock = o.clock(time.Now().Truncate(time.Minute)) // waits end on whole seconds: in every new account they take equally long
		a.sim = awssim.New(options)
	case err != nil:
		return err
	default:
		if a.sim, err = awssim.Continue(data, o.clock, options); err != nil {
			return err
		}
	}
	a.Clock = a.sim.Clock()
	return nil
}

// keep writes the account from time to time while it is in use.
func (a *Account) keep() {
	tick := time.NewTicker(saving)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
			_ = a.Save() // Close reports the error
		}
	}
}

// Save writes the account to its file, atomically, if it has changed.
func (a *Account) Save() error {
	if a.sim == nil { // the other process saves it
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := len(a.sim.Calls())
	if calls == a.saved || a.closed {
		return nil
	}
	if err := a.write(); err != nil {
		return fmt.Errorf("the simulated account is not stored in %s: %w", a.file, err)
	}
	a.saved = calls
	return nil
}

// write replaces the file.
func (a *Account) write() error {
	return files.ReplaceWith(a.file, files.Private, a.sim.Save)
}

// Close writes the account and unlocks the file.
func (a *Account) Close() error {
	if a.sim == nil {
		return nil
	}
	close(a.stop)
	a.done.Wait()
	err := a.Save()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return errors.Join(err, a.lock.Close())
}

// Resources lists the resources of the account, except for default ones.
func (a *Account) Resources() []string { return a.sim.Inventory() }

// Assume puts into the account what a manifest takes for granted and the account lacks. It returns what it
// has put there, in words.
func (a *Account) Assume(ctx context.Context, all []cluster.Assumed) ([]string, error) {
	if a.sim == nil {
		return nil, errors.New("another process serves the simulated account: --simulate-assume needs one that this command opens")
	}
	return assume.Put(ctx, a.sim, all)
}
