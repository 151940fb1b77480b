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
		"stale":     {{awssim.Old, 100}},
		"silent":    {{awssim.Silent, 25}},
		"slow":      nil, "capacity": nil, "denied": nil, "killed": nil, "expired": nil, "unsettled": nil,
		"launch": nil, "nat": nil,
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

// slow sets what is wrong with AWS itself: a call takes seconds and new resources are unknown for
// a while, or what is created fails.
func (f *Faults) slow(o *awssim.Options) {
	if f == nil {
		return
	}
	switch f.Profile {
	case "slow":
		o.Latency, o.Lag, o.LagRefs = 2*time.Second, 20*time.Second, 10*time.Second
	case "launch":
		o.LaunchFailure = "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
	case "nat":
		o.NATGatewayFailure = "InternalError: Network vpc ran into an internal error"
	}
}

// disturb sets the faults of a program. The serial number of the account decides at which call
// a program is killed, so that runs are killed at different ones; killed is called then.
func (f *Faults) disturb(p *awssim.Process, serial int, killed func()) {
	if f == nil {
		return
	}
	var mu sync.Mutex
	writes, calls, called := 0, 0, map[string]int{}
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
	expires := 40 + int(f.chance(60, "expire", serial)) //nolint:gosec // at most 99: each run gets further
	p.Refuse = func(service, op string) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; f.Profile == "expired" && calls > expires {
			return &smithy.GenericAPIError{Code: "ExpiredToken", Message: "The security token included in the request is expired"}
		}
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

// unsettled are answers of AWS to calls that refer to what was created a moment ago, and to what
// is busy.
func unsettled() map[string]smithy.GenericAPIError {
	return map[string]smithy.GenericAPIError{
		"RunInstances": {
			Code:    "InvalidParameterValue",
			Message: "Value (nodes) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
		},
		"RegisterTargets":        {Code: "InvalidTarget", Message: "The following targets are not in a running state and cannot be registered"},
		"CreateLoadBalancer":     {Code: "InvalidSubnet", Message: "VPC has no internet gateway"},
		"CreateRoute":            {Code: "InvalidParameterValue", Message: "The gateway is not attached to the VPC of the route table"},
		"CreateAutoScalingGroup": {Code: "ValidationError", Message: "Invalid IamInstanceProfile: Invalid IAM Instance Profile name"},
		"CreateCluster":          {Code: "InvalidParameterException", Message: "Role with arn is not authorized to perform sts:AssumeRole or the role is invalid"},
		"CreateNodegroup":        {Code: "InvalidRequestException", Message: "Cluster is not in ACTIVE status"},
		"PutParameter":           {Code: "TooManyUpdates", Message: "There are concurrent updates for a resource that supports one update at a time"},
	}
}

// refusal returns the answer of AWS if it refuses the n-th call of an operation: there is no
// capacity for the first launches, something is not known or is busy at the first call, or the
// caller lacks the permission for one of eight writing operations.
func (f *Faults) refusal(service, op string, n int) error {
	switch {
	case f.Profile == "capacity" && op == "RunInstances" && n <= 1+int(f.chance(4, op)): //nolint:gosec // at most 4
		return &smithy.GenericAPIError{
			Code:    "InsufficientInstanceCapacity",
			Message: "We currently do not have sufficient capacity in the Availability Zone you requested.",
		}
	case f.Profile == "unsettled" && n <= 2:
		if answer, ok := unsettled()[op]; ok {
			return &answer
		}
	case f.Profile == "denied" && !cloud.Reads(op) && f.chance(8, service, op) == 0:
		return &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation: " + op}
	}
	return nil
}
