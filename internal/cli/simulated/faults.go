package simulated

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Faults are failures of the simulated AWS. The same seed gives the same ones: whether a call
// fails depends on the seed, its operation and how often the program has called it.
type Faults struct {
	Seed    uint64
	Profile string
}

// share is how many of a thousand calls fail in one way.
type share struct {
	fault      awssim.Fault
	ofThousand uint64
}

// profiles are the kinds of faults of single calls.
func profiles() map[string][]share {
	return map[string][]share{
		"throttled": {{awssim.Throttled, 200}},
		"network":   {{awssim.LostBefore, 40}, {awssim.Unsent, 20}, {awssim.Broken, 40}},
		"lost":      {{awssim.LostAfter, 60}, {awssim.Cut, 40}},
		"mixed":     {{awssim.Throttled, 50}, {awssim.LostBefore, 20}, {awssim.LostAfter, 20}, {awssim.Broken, 30}},
		"slow":      nil, "capacity": nil, "denied": nil, "killed": nil,
	}
}

// Profiles lists the names of the profiles.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles())) }

// ParseFaults reads SEED or SEED:PROFILE. The default profile is mixed.
func ParseFaults(text string) (*Faults, error) {
	number, profile, given := strings.Cut(text, ":")
	if !given {
		profile = "mixed"
	}
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the seed must be a whole number from 0 on, is %q", number)
	}
	if _, ok := profiles()[profile]; !ok {
		return nil, fmt.Errorf("the profile must be one of %s, is %q", strings.Join(Profiles(), ", "), profile)
	}
	return &Faults{seed, profile}, nil
}

// chance returns a number below n that depends only on the seed and the words.
func (f *Faults) chance(n uint64, words ...any) uint64 {
	sum := sha256.Sum256(fmt.Appendln(nil, append([]any{f.Seed}, words...)...))
	return binary.BigEndian.Uint64(sum[:]) % n
}

// slow makes a call take seconds, and new resources be unknown for a while.
func (f *Faults) slow(o *awssim.Options) {
	if f != nil && f.Profile == "slow" {
		o.Latency, o.Lag, o.LagRefs = 2*time.Second, 20*time.Second, 10*time.Second
	}
}

// disturb sets the faults of a program. The serial number of the account decides at which call
// a program is killed, so that runs are killed at different ones; killed is called then.
func (f *Faults) disturb(p *awssim.Process, serial int, killed func()) {
	if f == nil {
		return
	}
	var mu sync.Mutex
	writes, called := 0, map[string]int{}
	last := 2 + int(f.chance(12, "kill", serial)) //nolint:gosec // at most 13; never the first, so that each run gets further
	p.Killed = killed
	p.Fault = func(_ int, service, op string) awssim.Fault {
		mu.Lock()
		defer mu.Unlock()
		called[service+op]++
		if f.Profile == "killed" {
			if !cloud.Reads(op) {
				writes++
			}
			if writes == last {
				return awssim.KillAfter
			}
			return awssim.None
		}
		return f.fault(service, op, called[service+op])
	}
	p.Refuse = func(service, op string) error {
		mu.Lock()
		defer mu.Unlock()
		return f.refusal(service, op, called[service+op])
	}
}

// fault returns the fault of the n-th call of an operation.
func (f *Faults) fault(service, op string, n int) awssim.Fault {
	at := f.chance(1000, service, op, n)
	for _, s := range profiles()[f.Profile] {
		if at < s.ofThousand {
			return s.fault
		}
		at -= s.ofThousand
	}
	return awssim.None
}

// refusal returns the answer of AWS if it refuses the n-th call of an operation: there is no
// capacity for the first launches, or the caller lacks the permission for one of eight
// writing operations.
func (f *Faults) refusal(service, op string, n int) error {
	switch {
	case f.Profile == "capacity" && op == "RunInstances" && n <= 1+int(f.chance(4, op)): //nolint:gosec // at most 4
		return &smithy.GenericAPIError{Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient capacity in the Availability Zone you requested."}
	case f.Profile == "denied" && !cloud.Reads(op) && f.chance(8, service, op) == 0:
		return &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation: " + op}
	}
	return nil
}
