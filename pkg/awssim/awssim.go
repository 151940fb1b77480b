// Package awssim is a simulated AWS account for tests of Go programs that use the AWS SDK for
// Go v2.
//
// Clients of the SDK call the account inside the process, with their own retries, pagination
// and waiters; no network, credentials or mocks are needed. The account keeps its resources,
// takes the time that AWS takes, and refuses what AWS refuses. An operation or a parameter
// that it does not support is an error whose text ends in "is not simulated".
// docs/simulator.md lists the operations and their parameters.
//
// The account is made for programs that create Kubernetes clusters. It is no complete
// EC2: it has the parts that such programs need, in detail.
//
// # Time
//
// A NAT gateway takes minutes, as in AWS. In a bubble of testing/synctest these minutes pass
// at once, so that a test of them takes milliseconds. Without one, Options.Speed makes the
// account's clock run faster; a program that waits by its own clock then needs the account's,
// which is a cluster.Clock.
//
// # Compatibility
//
// The exported functions of this package change only with the major version of the module.
// What the account knows of AWS grows and becomes stricter with minor versions, so that a call
// which it accepted wrongly may be refused.
package awssim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Options configure an account. The zero value is an account in us-east-1 in which everything
// that was created is visible at once.
type Options struct {
	Region string // "" is us-east-1
	// Speed is how many times faster than real time the account's clock runs; 0 is 1. In a
	// bubble of testing/synctest leave it 0.
	Speed float64
	// Lag is how long calls that list or describe do not show a new resource: AWS is eventually
	// consistent. 0 is not at all; a minute is the longest that AWS usually takes.
	Lag time.Duration
	// Page limits the number of items in each answer, so that a test of pagination does not need
	// a thousand resources; 0 is AWS's own limits.
	Page int
	// Bare omits the IAM roles and instance profiles that
	// "clusterawsadm bootstrap iam create-cloudformation-stack" makes.
	Bare bool
}

// Account is a simulated AWS account in one region. It may be used by several goroutines at
// the same time.
type Account struct {
	sim     *awssim.AWS
	process *awssim.Process
	clock   *clock.Clock
	refuse  atomic.Pointer[func(service, operation string) error]
}

// New returns an account as AWS hands it over: with default resources, images, instance types
// and quotas, and, unless Options.Bare is set, the roles of Cluster API Provider AWS.
func New(o Options) *Account {
	var c *clock.Clock // nil is the system clock, and that of a bubble
	if o.Speed > 1 {
		c = clock.Fast(time.Now(), o.Speed)
	}
	return open(awssim.New(o.with(c)), c)
}

// Load returns an account that Save has written, or a command with --simulate. Its clock
// continues at the time at which it was saved. It is an error if Options.Region is another
// region than the account's.
func Load(r io.Reader, o Options) (*Account, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	region, err := awssim.SavedRegion(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("simulated account: %w", err)
	}
	if o.Region != "" && region != "" && region != o.Region {
		return nil, fmt.Errorf("simulated account: its region is %s, not %s", region, o.Region)
	}
	sim, err := awssim.Continue(data, func(at time.Time) *clock.Clock { return clock.Fast(at, o.Speed) }, o.with(nil))
	if err != nil {
		return nil, fmt.Errorf("simulated account: %w", err)
	}
	return open(sim, sim.Clock()), nil
}

func (o Options) with(c *clock.Clock) awssim.Options {
	return awssim.Options{Region: o.Region, Clock: c, Lag: o.Lag, Page: o.Page, Bare: o.Bare}
}

func open(sim *awssim.AWS, c *clock.Clock) *Account {
	a := &Account{sim: sim, process: sim.Process(), clock: c}
	a.process.Refuse = func(service, operation string) error {
		if refuse := a.refuse.Load(); refuse != nil {
			return (*refuse)(service, operation)
		}
		return nil
	}
	return a
}

// Save writes the account, as JSON. A file of it contains what the account keeps secret, such
// as private keys of clusters.
func (a *Account) Save(w io.Writer) error { return a.sim.Save(w) }

// Config returns a configuration for clients of the AWS SDK.
func (a *Account) Config() aws.Config { return a.process.Config() }

// Transport carries requests to the API servers of the account's clusters; it is meant for
// cluster.Target.
func (a *Account) Transport(to cluster.Access) http.RoundTripper {
	return a.process.Kubernetes(kube.Access(to))
}

// Handler serves the account to AWS clients in other processes, as "clusterawsadm simulate"
// does. It does not check signatures: listen on the loopback interface.
func (a *Account) Handler() (http.Handler, error) { return a.process.Handler() }

// Now returns the account's time.
func (a *Account) Now() time.Time { return a.clock.Now() }

// Sleep waits for d of the account's time. If the context ends before, it returns the cause.
func (a *Account) Sleep(ctx context.Context, d time.Duration) error { return a.clock.Sleep(ctx, d) }

// Inventory lists the account's resources: one sorted line for each, with its kind and name.
// Default resources are not in it, and resources that are being deleted are, until they are
// gone. Two equal inventories before and after a test show that it has left nothing.
func (a *Account) Inventory() []string { return a.sim.Inventory() }

// Call is a call that the account received.
type Call struct {
	Service   string // the ID of the service in the SDK: "EC2"
	Operation string // "CreateVpc"
	At        time.Time
	Code      string // the code of the error; "" if the call succeeded
}

// Calls lists all calls that the account received, the oldest first.
func (a *Account) Calls() []Call {
	all := a.sim.Calls()
	out := make([]Call, len(all))
	for i, c := range all {
		out[i] = Call{c.Service, c.Operation, c.At, c.Err}
	}
	return out
}

// Refuse makes the account refuse calls: refuse gets the service and the operation of each
// call, and returns its error, or nil. APIError returns an error with a code. A nil refuse
// ends it.
func (a *Account) Refuse(refuse func(service, operation string) error) {
	if refuse == nil {
		a.refuse.Store(nil)
		return
	}
	a.refuse.Store(&refuse)
}

// APIError returns an error as clients of the SDK receive it: errors.As finds a
// smithy.APIError in it.
func APIError(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultClient}
}
