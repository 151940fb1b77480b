package simulated

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim/helmsim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Trial is a copy of a simulated account in memory, for one experiment.
type Trial struct {
	Clock *clock.Clock

	sim *awssim.AWS
}

// Trial copies the account. The clock of the copy continues at that of the account, and jumps.
func (a *Account) Trial() (*Trial, error) { return trial(a.sim, a.Clock) }

// Copy copies the account again.
func (t *Trial) Copy() (*Trial, error) { return trial(t.sim, t.Clock) }

func trial(sim *awssim.AWS, beside *clock.Clock) (*Trial, error) {
	fork, err := sim.Fork(beside.Beside)
	if err != nil {
		return nil, err
	}
	return &Trial{Clock: fork.Clock(), sim: fork}, nil
}

// booting is when machines have booted and deleted their boot data.
const booting = 2 * time.Minute

// Described lists what the account has once its machines have booted, with attributes and tags,
// without values that differ from run to run, and without the records of locks: each run
// leaves another one.
func (t *Trial) Described() ([]string, error) {
	later, err := t.sim.After(booting)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(later.Described(), func(line string) bool { return strings.Contains(line, "/lock/") }), nil
}

// Kill kills a program at one of its calls.
type Kill struct {
	Call  int                             // the number of the call, from 1
	After bool                            // AWS has carried the call out
	Do    func(service, operation string) // called when it is killed
}

// Program is a program that uses a Trial.
type Program struct {
	Config     aws.Config
	Kubernetes cluster.Transport
	Helm       cluster.Helm
	Calls      func() int // the number of calls so far
}

// Program returns a new program, which is killed at a call; nil: it is not.
func (t *Trial) Program(kill *Kill) Program {
	p := t.sim.Process()
	if kill != nil {
		fault := awssim.KillBefore
		if kill.After {
			fault = awssim.KillAfter
		}
		p.Fault = func(n int, service, operation string) awssim.Fault {
			if n != kill.Call {
				return awssim.None
			}
			defer kill.Do(service, operation)
			return fault
		}
	}
	return Program{p.Config(), func(to cluster.Access) http.RoundTripper { return p.Kubernetes(kube.Access(to)) }, Helm(), p.Calls}
}

// Helm returns a simulated helm: it records releases, and downloads no chart.
func Helm() cluster.Helm { return &helmsim.Helm{} }
