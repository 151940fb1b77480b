// Package awssim is a simulated AWS account inside the process. Real SDK clients call it,
// with their retries, pagination and waiters.
//
// It keeps the state of an account, takes the time that AWS takes, and rejects calls that
// AWS rejects. Where the behaviour of AWS is not known, it is the stricter alternative.
// An operation or a parameter that is not supported fails with "not simulated".
//
// This package connects the services. Each service is a package below, based on package
// core; package kubernetes has the clusters in the account.
package awssim

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/cloudformation"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/kubernetes"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/pricing"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/servicequotas"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/sqs"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/sts"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/tagging"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// AWS is a simulated account in one region. Images, snapshots and the list of regions
// exist in all regions.
type AWS struct {
	account    *core.Account
	state      *State
	kubernetes *kubernetes.Service
	events     *eventbridge.Service
	services   []inventory
}

// State is the state of the account. It can be saved to a file and loaded: times are
// absolute, by the clock of the simulation.
type State struct {
	core.State
	EC2     ec2.State
	ELB     elb.State
	IAM     iam.State
	KMS     kms.State
	S3      s3.State
	Secrets secretsmanager.State
	SSM     ssm.State
	EKS     eks.State
	SQS     sqs.State

	EventBridge eventbridge.State

	CloudFormation cloudformation.State

	AutoScaling autoscaling.State

	Kubernetes kubernetes.State
}

// exampleKey is the ID of the KMS key that Options.EKSRoles adds.
const exampleKey = "1234abcd-12ab-34cd-56ef-1234567890ab"

// inventory is a service that lists its resources.
type inventory interface {
	Inventory() []string
	Detailed() []string
}

// New returns an account as AWS creates it: empty except for default resources and,
// unless Options.Bare is set, the stack of CAPA's bootstrap.
func New(o Options) *AWS {
	o.Region = region(o)
	a, cfn := open(o, &State{State: core.State{Number: o.Number}, EC2: ec2.NewState(o.Clock.Now(), o.Region)})
	if !o.Bare {
		cfn.CreateBootstrapStack()
	}
	if o.EKSRoles {
		a.state.IAM.Roles[iam.DriverRole] = iam.NewDriverRole(a.account.Partition(), a.account.Now())
		a.state.IAM.Roles[iam.AppRole] = &iam.Role{Name: iam.AppRole, Path: "/", Service: "pods.eks.amazonaws.com", Born: a.account.Now()}
		for _, r := range iam.AutoRoles(a.account.Partition(), a.account.Now()) {
			a.state.IAM.Roles[r.Name] = r
		}
		for _, name := range iam.PeopleRoles() {
			a.state.IAM.Roles[name] = &iam.Role{Name: name, Path: "/", Born: a.account.Now()}
		}
		a.state.KMS.Keys[a.account.RegionalARN("kms", "key/"+exampleKey)] = &kms.Key{}
	}
	return a
}

// Load returns an account from a file that Save has written. Its clock is that of the options.
func Load(r io.Reader, o Options) (*AWS, error) {
	o.Region = region(o)
	s := &State{}
	if err := json.NewDecoder(r).Decode(s); err != nil {
		return nil, err
	}
	if s.Now.IsZero() { // Save writes it
		return nil, errors.New("the file has another content")
	}
	fill(reflect.ValueOf(s).Elem())
	a, _ := open(o, s)
	return a, nil
}

// fill makes the maps of a state that a file does not have: the version that wrote it did
// not simulate these resources.
func fill(state reflect.Value) {
	for i := range state.NumField() {
		switch f := state.Field(i); {
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]():
			fill(f)
		case f.Kind() == reflect.Map && f.IsNil() && f.CanSet():
			f.Set(reflect.MakeMap(f.Type()))
		}
	}
}

func region(o Options) string {
	if o.Region == "" {
		return "us-east-1"
	}
	return o.Region
}

// open connects the services of an account. A service has fields for the services below
// it; where it needs others, a function is set here.
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
	queues := sqs.New(account, &s.SQS)
	rules := eventbridge.New(account, &s.EventBridge, queues)
	cfn := cloudformation.New(account, &s.CloudFormation, iams)
	keys := kms.New(account, &s.KMS)
	ec2s.Usable, ekss.KeyARN, ssms.Usable = keys.Usable, keys.KeyARN, keys.Usable
	servicequotas.New(account, ec2s, ekss, elbs, rules)
	pricing.New(account)
	tagging.New(account, ec2s, ekss, elbs, s3s, secrets, ssms)
	if s.Kubernetes == nil {
		s.Kubernetes = kubernetes.State{}
	}
	clusters := kubernetes.New(account, s.Kubernetes, kubernetes.Services{EC2: ec2s, ELB: elbs, EKS: ekss, IAM: iams, S3: s3s, SecretsManager: secrets, SSM: ssms})

	ec2s.Publish(eks.ImagesIn(account.Region))
	ec2s.UserOfTemplate = ekss.UserOfTemplate
	ekss.HasNetwork, ekss.HasServices, ekss.HasJoined = clusters.HasNetwork, clusters.HasServices, clusters.HasJoined
	ssms.Public, ssms.Machines, ssms.Run = ekss.PublicParameter, clusters.Agents, clusters.RunScript
	account.Role = stss.RoleOf
	account.Settle = func() {
		scaling.Settle()
		elbs.Settle()
		ekss.Settle()
		ec2s.Settle()
		cfn.Settle()
		clusters.Settle()
	}
	return &AWS{
		account:    account,
		state:      s,
		kubernetes: clusters,
		events:     rules,
		services:   []inventory{scaling, cfn, ec2s, ekss, elbs, iams, s3s, ssms, secrets, queues, rules},
	}, cfn
}

// SavedRegion returns the region of a saved account; "" if it is not known. Older versions
// did not save the region: it is that of the subnets.
func SavedRegion(r io.Reader) (string, error) {
	var s struct {
		Region string
		EC2    struct {
			Subnets map[string]struct{ Zone string }
		}
	}
	if err := json.NewDecoder(r).Decode(&s); err != nil || s.Region != "" {
		return s.Region, err
	}
	shortest := "" // the name of a zone at the edge is longer
	for _, subnet := range s.EC2.Subnets {
		if shortest == "" || len(subnet.Zone) < len(shortest) {
			shortest = subnet.Zone
		}
	}
	return strings.TrimRight(shortest, "abcdef"), nil
}

// Save writes the account. It changes nothing: what has happened since the last call is applied
// by the next one, after Load.
func (a *AWS) Save(w io.Writer) (err error) {
	a.account.DoUnsettled(func() {
		a.state.Now, a.state.Region = a.account.Now(), a.account.Region
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

// Publish sends an event of an AWS service to the targets of the rules of EventBridge that match it, and returns how many have
// received it.
func (a *AWS) Publish(source, detailType string) (sent int) {
	a.account.Do(func() { sent = a.events.Publish(source, detailType) })
	return sent
}

// Serial returns the number of IDs that the account has created.
func (a *AWS) Serial() (n int) {
	a.account.Do(func() { n = a.account.Serial() })
	return n
}

// Calls lists the calls that the account has received.
func (a *AWS) Calls() []Call { return a.account.Calls() }

// Inventory lists the resources of the account except for default resources: one sorted
// line for each, with kind and name. Resources that come with another one are not listed:
// main route tables, default security groups, interfaces and volumes in use. Resources
// whose deletion has started are listed until it ends.
func (a *AWS) Inventory() []string { return a.list(inventory.Inventory) }

// Detailed is Inventory with interfaces and volumes in use, and with attributes, rules,
// routes and tags. It has no IDs, addresses or times, so that two accounts with the same
// resources compare equal. It does not contain secrets and user data, only that they
// exist.
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

// Process is one program that calls the account. After it is killed, no call of it
// arrives.
type Process struct {
	*core.Process
	kubernetes *kubernetes.Service
}

// Process returns a new program.
func (a *AWS) Process() *Process { return &Process{core.NewProcess(a.account), a.kubernetes} }

// Config returns the configuration of a new program.
func (a *AWS) Config() aws.Config { return a.Process().Config() }

// Handler serves the account over HTTP, in AWS's protocols, to clients that are one program.
func (p *Process) Handler() (*wire.Handler, error) { return wire.New(p.Process) }

// Kubernetes carries requests to the API servers of the account's clusters, as
// seen from outside of their VPCs.
func (p *Process) Kubernetes(access kube.Access) http.RoundTripper {
	return p.kubernetes.Transport(p.Process, access)
}
