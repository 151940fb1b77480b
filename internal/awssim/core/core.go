// Package core is what all services of the simulated AWS stand on: the account,
// with its region, its clock and its IDs, the way of a call from a program to
// the function that answers it, and what answers of all services have in common.
//
// It knows no service. A service registers its operations with On, and reads
// the time and creates IDs with the Account.
package core

import (
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

// AccountID is the number of the simulated account.
const AccountID = "123456789012"

// Options say what the simulated account is like.
type Options struct {
	Region string       // empty: us-east-1
	Clock  *clock.Clock // nil: the machine's own; virtual in a synctest bubble
	// Lag is how long a new resource stays hidden from the calls that list and
	// describe, as AWS's eventual consistency may hide it.
	Lag time.Duration
	// LagRefs is how long a new resource stays unknown to the writing calls that
	// name it.
	LagRefs time.Duration
	// Latency is how long every call takes.
	Latency time.Duration
	// Page caps the length of every page; 0 leaves AWS's own limits.
	Page int
	// Inside says that the callers are in the VPCs of the clusters, and reach
	// their private addresses.
	Inside bool
	// Bare leaves out the stack that CAPA's bootstrap created, with its roles and
	// instance profiles, which an account has otherwise.
	Bare bool
}

// State is what the account itself keeps in the file of a saved account.
type State struct {
	Now    time.Time // when it was saved
	Serial int       // counts everything ever created
}

// Call is one call that came in.
type Call struct {
	Service, Operation string
	At                 time.Time
	Err                string // its error code, if it was refused
	Role               string // ARN of the assumed role that it was made in; "" for the account's user
}

// Account is a simulated account in one region. The services of one account
// share it.
type Account struct {
	Options

	// Settle brings about what time has brought about. It is called, with the
	// account locked, before every call is answered.
	Settle func()
	// Role returns the ARN of the assumed role that a call is made in.
	Role func(context.Context) string

	state    *State
	handlers map[reflect.Type]*handler
	throttle map[string]Throttle // by service

	mu    sync.Mutex
	calls []Call
	past  time.Time        // the moment that Settle is at; zero: the present
	rates map[string]*rate // token buckets, by class
}

// New returns an account that has no services yet.
func New(o Options, s *State) *Account {
	return &Account{
		Options: o, state: s, handlers: map[reflect.Type]*handler{}, throttle: map[string]Throttle{}, rates: map[string]*rate{},
		Settle: func() {}, Role: func(context.Context) string { return "" },
	}
}

// Do runs a function with the account locked and settled.
func (a *Account) Do(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Settle()
	f()
}

// Record keeps a call that came in. The account is locked.
func (a *Account) Record(c Call) {
	c.At = a.Now()
	a.calls = append(a.calls, c)
}

// Calls lists the calls that came in so far.
func (a *Account) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// Now is the time of the account.
func (a *Account) Now() time.Time {
	if !a.past.IsZero() {
		return a.past
	}
	return a.Clock.Now()
}

// SetPast moves the account to a moment in the past; the zero time is the
// present.
func (a *Account) SetPast(at time.Time) { a.past = at }

// Serial counts everything ever created.
func (a *Account) Serial() int { return a.state.Serial }

// NextSerial counts one more.
func (a *Account) NextSerial() int {
	a.state.Serial++
	return a.state.Serial
}

// ID creates an ID as EC2 does: "vpc-" and 17 hexadecimal digits. It is the
// same for the same history.
func (a *Account) ID(prefix string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", prefix, a.NextSerial()))
	return prefix + "-0" + hex.EncodeToString(sum[:8])
}

// Hash creates 16 hexadecimal digits.
func (a *Account) Hash() string { return strings.TrimPrefix(a.ID("hash"), "hash-0") }

// Visible reports whether a resource of that age shows up in lists. What has a
// date of its own, as images have, may be younger than a virtual clock.
func (a *Account) Visible(born time.Time) bool {
	age := a.Now().Sub(born)
	return age < 0 || age >= a.Lag
}

// Partition is the partition of the region.
func (a *Account) Partition() string {
	switch {
	case strings.HasPrefix(a.Region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(a.Region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// RegionalARN is the ARN of a resource in the account and the region.
func (a *Account) RegionalARN(service, resource string) string {
	return "arn:" + a.Partition() + ":" + service + ":" + a.Region + ":" + AccountID + ":" + resource
}
