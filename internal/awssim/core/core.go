// Package core is the base of all services of the simulated AWS: the account with its
// region, clock and IDs, the path of a call from a program to its handler, and helpers
// for all services.
//
// It does not depend on any service. A service registers its operations with On, and
// takes the time and new IDs from the account.
package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// AccountID is the ID of a simulated account without Options.Number.
const AccountID = "123456789012"

// Options configure the simulated account.
type Options struct {
	Region string       // empty: us-east-1
	Clock  *clock.Clock // nil: the system clock; virtual in a synctest bubble
	// Lag is how long a new resource is not visible in calls that list and describe,
	// because of AWS's eventual consistency.
	Lag time.Duration
	// LagRefs is how long a new resource is unknown to writing calls that refer to it.
	LagRefs time.Duration
	// Latency is how long every call takes.
	Latency time.Duration
	// NATGatewayFailure and LaunchFailure, if set, are why new NAT gateways fail, and new
	// instances are terminated before they run: code and message, separated by ": ".
	NATGatewayFailure, LaunchFailure string
	// Page limits the size of every page; 0 means AWS's own limits.
	Page int
	// Inside means that the callers are in the VPCs of the clusters, and can reach
	// private addresses.
	Inside bool
	// Number is the ID of a new account; "" is AccountID.
	Number string
	// Bare omits the stack of CAPA's bootstrap, with its roles and instance profiles.
	Bare bool
	// EKSRoles adds the roles of EKS to that stack: of control planes, node groups and
	// Fargate profiles. It also adds the role ebs-csi, for the EBS CSI driver,
	// and what the examples of this project name: the roles operators, developers and pipeline, and a KMS key.
	EKSRoles bool
}

// State is the part of a saved account that belongs to no service.
type State struct {
	Now    time.Time // when it was saved
	Region string
	Serial int    // number of IDs created so far
	Number string `json:",omitempty"` // ID of the account; "" is AccountID
}

// Call is one call that the account received.
type Call struct {
	Service, Operation string
	At                 time.Time
	Err                string // error code, if it was rejected
	Role               string // ARN of the assumed role of the caller; "" for the account's user
}

// Account is a simulated account in one region. The services of one account
// share it.
type Account struct {
	Options

	// Settle applies all changes whose time has come. It is called before every call,
	// with the account locked.
	Settle func()
	// Role returns the ARN of the assumed role of a call.
	Role func(context.Context) string

	state    *State
	handlers map[reflect.Type]*handler
	limits   map[string]Limits // by service

	mu    sync.Mutex
	calls []Call
	past  time.Time        // the time that Settle has reached; zero: the present
	rates map[string]*rate // token buckets, by class
	rests map[string]any   // the rests of listings, by token
	pages int              // the number of tokens so far
}

// New returns an account without services.
func New(o Options, s *State) *Account {
	return &Account{
		Options: o, state: s, handlers: map[reflect.Type]*handler{}, limits: map[string]Limits{}, rates: map[string]*rate{}, rests: map[string]any{},
		Settle: func() {}, Role: func(context.Context) string { return "" },
	}
}

// Do calls a function after Settle, with the account locked.
func (a *Account) Do(f func()) {
	a.DoUnsettled(func() {
		a.Settle()
		f()
	})
}

// DoUnsettled calls a function with the account locked. What has happened since the last call
// has not been applied.
func (a *Account) DoUnsettled(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// Number returns the ID of the account.
func (a *Account) Number() string { return cmp.Or(a.state.Number, AccountID) }

// Record records a call. The account is locked.
func (a *Account) Record(c Call) {
	c.At = a.Now()
	a.calls = append(a.calls, c)
}

// Calls lists the recorded calls.
func (a *Account) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// Now returns the time of the account.
func (a *Account) Now() time.Time {
	if !a.past.IsZero() {
		return a.past
	}
	return a.Clock.Now()
}

// SetPast moves the account to a moment in the past; the zero time is the
// present.
func (a *Account) SetPast(at time.Time) { a.past = at }

// Serial returns the number of IDs created so far.
func (a *Account) Serial() int { return a.state.Serial }

// NextSerial increments the serial number.
func (a *Account) NextSerial() int {
	a.state.Serial++
	return a.state.Serial
}

// ID returns a new ID in EC2's format: "vpc-" and 17 hexadecimal digits. The same
// sequence of calls gives the same IDs.
func (a *Account) ID(prefix string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", prefix, a.NextSerial()))
	return prefix + "-0" + hex.EncodeToString(sum[:8])
}

// Hash returns 16 hexadecimal digits.
func (a *Account) Hash() string { return strings.TrimPrefix(a.ID("hash"), "hash-0") }

// Visible reports whether a resource created at that time is visible in lists. A resource
// with a fixed date, such as an image, may be younger than a virtual clock.
func (a *Account) Visible(born time.Time) bool {
	age := a.Now().Sub(born)
	return age < 0 || age >= a.Lag
}

// Partition returns the partition of the region.
func (a *Account) Partition() string { return partition(a.Region) }

func partition(region string) string {
	switch before, _, _ := strings.Cut(region, "-"); {
	case before == "cn", before == "eusc":
		return "aws-" + before
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	case strings.Contains(region, "-iso"):
		_, suffix, _ := strings.Cut(region, "-iso")
		letter, _, _ := strings.Cut(suffix, "-")
		return strings.TrimSuffix("aws-iso-"+letter, "-")
	}
	return "aws"
}

// DNSSuffix returns the end of the host names of AWS in a region.
func DNSSuffix(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// RegionalARN returns the ARN of a resource in the account and the region.
func (a *Account) RegionalARN(service, resource string) string {
	return ARN(service, a.Region, a.Number(), resource)
}

// ARN returns the ARN of a resource in an account and a region.
func ARN(service, region, account, resource string) string {
	return strings.Join([]string{"arn", partition(region), service, region, account, resource}, ":")
}
