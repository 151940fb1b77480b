// Package awssim is an AWS that lives in the process. It answers the real SDK
// clients, so that retries, pagination and waiters are the real ones too.
//
// It is not a mock: it keeps the state of an account, takes its time over what
// AWS takes its time over, and says no where AWS does. Where it is unsure what
// AWS does it is the stricter of the two. What it does not know fails loudly:
// an operation or a parameter that is "not simulated".
package awssim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// Account is the number of the simulated account.
const Account = "123456789012"

// Options say what the simulated account is like.
type Options struct {
	Region string       // empty: us-east-1
	Clock  *clock.Clock // nil: the machine's own; virtual in a synctest bubble
	// Lag is how long a new thing stays hidden from the calls that list and
	// look, as AWS's eventual consistency may hide it.
	Lag time.Duration
	// LagRefs is how long a new thing stays unknown to the writing calls that
	// name it.
	LagRefs time.Duration
	// Latency is how long every call takes.
	Latency time.Duration
	// Page caps the length of every page; 0 leaves AWS's own limits.
	Page int
	// Inside says that those who call are in the VPCs of the clusters, and reach
	// their private addresses.
	Inside bool
	// Bare leaves out the stack that CAPA's bootstrap made, with its roles and
	// instance profiles, which an account has otherwise.
	Bare bool
}

// AWS is a simulated account in one region. Images, snapshots and the list of
// regions it has everywhere.
type AWS struct {
	o        Options
	handlers map[reflect.Type]*handler

	mu       sync.Mutex
	state    State
	calls    []Call
	services []taggedService
	past     time.Time        // the moment that settle is at; zero: the present
	rates    map[string]*rate // token buckets of the account, by class
}

// State is everything the account holds. It can be written to a file and read
// back: times are absolute, by the simulation's clock.
type State struct {
	Now     time.Time // when it was saved
	Serial  int       // counts everything ever made
	EC2     EC2State
	ELB     ELBState
	IAM     IAMState
	S3      S3State
	Secrets SecretsState
	SSM     SSMState
	EKS     EKSState

	CloudFormation CloudFormationState

	AutoScaling AutoScalingState

	Kubernetes map[string]*kubesim.Cluster // by the name at which its API server answers
}

// Call is one call that came in.
type Call struct {
	Service, Operation string
	At                 time.Time
	Err                string // its error code, if it was refused
	Role               string // ARN of the assumed role that it was made in; "" for the account's user
}

// New returns an account as AWS hands it out: empty, but for what every
// account has, and for the stack of CAPA's bootstrap unless it is to be bare.
func New(o Options) *AWS {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	a := &AWS{o: o, handlers: map[reflect.Type]*handler{}, rates: map[string]*rate{}}
	a.state = State{SSM: newSSMState(), S3: newS3State(), Secrets: newSecretsState()}
	a.state.IAM, a.state.EC2, a.state.ELB = newIAMState(), newEC2State(a.now(), o.Region), newELBState()
	a.simulateEC2()
	a.simulateELB()
	a.simulateIAM()
	a.simulateSTS()
	a.simulateS3()
	a.simulateSecrets()
	a.simulateSSM()
	a.simulateAutoScaling()
	a.simulateQuotas()
	a.simulateCloudFormation()
	a.simulateEKS()
	a.simulateTagging()
	a.state.fill()
	a.state.EC2.publish(slices.Concat(imagesOf(a.o.Region), eksImagesOf(a.o.Region)))
	if !o.Bare {
		a.makeStock()
	}
	return a
}

// fill makes room for what a file of before there was any does not have.
func (s *State) fill() {
	s.IAM.fill()
	fill(&s.CloudFormation.Stacks)
	fill(&s.EKS.Clusters)
	fill(&s.AutoScaling.Groups)
	fill(&s.EC2.LaunchTemplates)
	fill(&s.Kubernetes)
}

// Load returns an account as Save wrote it.
func Load(r io.Reader, o Options) (*AWS, error) {
	a := New(o)
	a.state = State{} // or what every account has would come back after its deletion
	if err := json.NewDecoder(r).Decode(&a.state); err != nil {
		return nil, fmt.Errorf("simulated account: %w", err)
	}
	a.state.fill()
	a.state.EC2.publish(slices.Concat(imagesOf(a.o.Region), eksImagesOf(a.o.Region)))
	return a, nil
}

// Saved returns the time at which a saved account was written: where its
// clock has to go on.
func Saved(r io.Reader) (time.Time, error) {
	var s struct{ Now time.Time }
	err := json.NewDecoder(r).Decode(&s)
	return s.Now, err
}

// Save writes the account.
func (a *AWS) Save(w io.Writer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	a.state.Now = a.now()
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(a.state)
}

// Edit changes the account behind everybody's back.
func (a *AWS) Edit(edit func(*State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	edit(&a.state)
}

// Calls lists the calls that came in so far.
func (a *AWS) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// settle brings about what time has brought about: what has finished dying is
// buried, and groups have launched what they had to. It is called, with the
// lock held, before every call is answered.
func (a *AWS) settle() {
	a.settleAutoScaling()
	a.settleELB()
	a.settleEKS()
	a.settleEC2()
	a.settleCloudFormation()
	a.settleEKSKubernetes()
	a.settleKubernetes()
	a.settleControllers()
}

// call answers one call, with the lock held.
func (a *AWS) call(ctx context.Context, service, op string, in any) (out any, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	at := len(a.calls)
	a.calls = append(a.calls, Call{Service: service, Operation: op, At: a.now(), Role: a.roleOf(ctx)})
	defer func() {
		if err != nil {
			a.calls[at].Err = err.Error()
			var api smithy.APIError
			if errors.As(err, &api) {
				a.calls[at].Err = api.ErrorCode()
			}
		}
	}()
	h, ok := a.handlers[reflect.TypeOf(in)]
	if !ok {
		return nil, fmt.Errorf("awssim: %s %s is not simulated", service, op)
	}
	if field := unmodelled(in, h.models); field != "" {
		return nil, fmt.Errorf("awssim: %s %s: parameter %s is not simulated", service, op, field)
	}
	region := cmp.Or(awsmiddleware.GetRegion(ctx), a.o.Region)
	if region != a.o.Region && !h.abroad && !slices.Contains([]string{"IAM", "STS"}, service) {
		return nil, fmt.Errorf("awssim: %s %s is not simulated in region %s", service, op, region)
	}
	if err := a.throttle(service, op, region, in); err != nil {
		return nil, err
	}
	return h.answer(ctx, in)
}

type taggedService interface{ Tagged() []Tagged }
