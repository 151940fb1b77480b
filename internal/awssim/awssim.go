// Package awssim is an AWS that lives in the process. It answers the real SDK
// clients, so that retries, pagination and waiters are the real ones too.
//
// It is not a mock: it keeps the state of an account, takes its time as AWS
// does, and refuses what AWS refuses. Where it is unsure what AWS does it is
// the stricter of the two. What it does not know fails loudly: an operation or
// a parameter that is "not simulated".
//
// This package puts an account together. Each service of AWS is a package
// below, over package core; package kubernetes has the clusters in the account.
package awssim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/cloudformation"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/kubernetes"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/servicequotas"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/sts"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/tagging"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// AWS is a simulated account in one region. Images, snapshots and the list of
// regions it has everywhere.
type AWS struct {
	account    *core.Account
	state      *State
	kubernetes *kubernetes.Service
	services   []inventory
}

// State is everything the account holds. It can be written to a file and read
// back: times are absolute, by the simulation's clock.
type State struct {
	core.State
	EC2     ec2.State
	ELB     elb.State
	IAM     iam.State
	S3      s3.State
	Secrets secretsmanager.State
	SSM     ssm.State
	EKS     eks.State

	CloudFormation cloudformation.State

	AutoScaling autoscaling.State

	Kubernetes kubernetes.State
}

// inventory is a service that lists what it holds.
type inventory interface {
	Inventory() []string
	Detailed() []string
}

// New returns an account as AWS hands it out: empty, but for what every
// account has, and for the stack of CAPA's bootstrap unless it is to be bare.
func New(o Options) *AWS {
	o.Region = region(o)
	a, cfn := open(o, &State{EC2: ec2.NewState(o.Clock.Now(), o.Region)})
	if !o.Bare {
		cfn.CreateBootstrapStack()
	}
	return a
}

// Load returns an account as Save wrote it.
func Load(r io.Reader, o Options) (*AWS, error) {
	o.Region = region(o)
	s := &State{}
	if err := json.NewDecoder(r).Decode(s); err != nil {
		return nil, fmt.Errorf("simulated account: %w", err)
	}
	a, _ := open(o, s)
	return a, nil
}

func region(o Options) string {
	if o.Region == "" {
		return "us-east-1"
	}
	return o.Region
}

// open puts the services of an account together. A service knows those that it
// is built on; what it has to know of the others is a function that is set here.
func open(o Options, s *State) (*AWS, *cloudformation.Service) {
	account := core.New(o, &s.State)
	iams := iam.New(account, &s.IAM)
	stss := sts.New(account, iams)
	ec2s := ec2.New(account, &s.EC2, iams)
	elbs := elb.New(account, &s.ELB, ec2s)
	scaling := autoscaling.New(account, &s.AutoScaling, ec2s, elbs, iams)
	ekss := eks.New(account, &s.EKS, ec2s, scaling, iams)
	s3s := s3.New(account, &s.S3, iams)
	secrets := secretsmanager.New(account, &s.Secrets)
	ssms := ssm.New(account, &s.SSM)
	cfn := cloudformation.New(account, &s.CloudFormation, iams)
	servicequotas.New(account, ec2s)
	tagging.New(account, ec2s, ekss, elbs, s3s, secrets, ssms)
	if s.Kubernetes == nil {
		s.Kubernetes = kubernetes.State{}
	}
	clusters := kubernetes.New(account, s.Kubernetes, kubernetes.Services{EC2: ec2s, ELB: elbs, EKS: ekss, IAM: iams, S3: s3s, SecretsManager: secrets, SSM: ssms})

	ec2s.Publish(eks.ImagesIn(account.Region))
	ec2s.UserOfTemplate = ekss.UserOfTemplate
	ssms.Public = ekss.PublicParameter
	account.Role = stss.RoleOf
	account.Settle = func() {
		scaling.Settle()
		elbs.Settle()
		ekss.Settle()
		ec2s.Settle()
		cfn.Settle()
		clusters.Settle()
	}
	return &AWS{account: account, state: s, kubernetes: clusters, services: []inventory{scaling, cfn, ec2s, ekss, elbs, iams, s3s, ssms, secrets}}, cfn
}

// Saved returns the time at which a saved account was written: where its
// clock has to go on.
func Saved(r io.Reader) (time.Time, error) {
	var s struct{ Now time.Time }
	err := json.NewDecoder(r).Decode(&s)
	return s.Now, err
}

// Save writes the account.
func (a *AWS) Save(w io.Writer) (err error) {
	a.account.Do(func() {
		a.state.Now = a.account.Now()
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		err = e.Encode(a.state)
	})
	return err
}

// Edit changes the account without a call.
func (a *AWS) Edit(edit func(*State)) {
	a.account.Do(func() { edit(a.state) })
}

// Calls lists the calls that came in so far.
func (a *AWS) Calls() []Call { return a.account.Calls() }

// Inventory lists what the account holds besides what every account has: one
// line for each resource, its kind and its name, in order. What comes with
// another resource is not listed: main route tables, default security groups,
// interfaces and volumes that something uses. What has ended is not listed
// either; what is about to end is, and so are interfaces that linger.
func (a *AWS) Inventory() []string { return a.list(inventory.Inventory) }

// Detailed lists what Inventory lists, and the interfaces and volumes that
// something uses, each with its attributes, rules, routes and tags. Neither
// IDs nor addresses nor times are in it, so that two accounts compare equal when
// the same was created in them, in whatever order. Of secrets and user data it
// tells only that they exist.
func (a *AWS) Detailed() []string { return a.list(inventory.Detailed) }

func (a *AWS) list(of func(inventory) []string) (all []string) {
	a.account.Do(func() {
		for _, s := range a.services {
			all = append(all, of(s)...)
		}
	})
	slices.Sort(all)
	return all
}

// Process is one program that talks to the account. It can be killed: from
// then on none of its calls arrive.
type Process struct {
	*core.Process
	kubernetes *kubernetes.Service
}

// Process returns a new program that talks to the account.
func (a *AWS) Process() *Process { return &Process{core.NewProcess(a.account), a.kubernetes} }

// Config returns the configuration of a new program.
func (a *AWS) Config() aws.Config { return a.Process().Config() }

// Kubernetes carries requests to the API servers of the account's clusters, as
// seen from outside of their VPCs.
func (p *Process) Kubernetes(access kube.Access) http.RoundTripper {
	return p.kubernetes.Transport(p.Process, access)
}
