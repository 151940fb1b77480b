// Package ssm simulates Parameter Store and Run Command.
package ssm

import (
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Service is the simulated Systems Manager.
type Service struct {
	*core.Account
	state *State

	// Public returns the value of a public parameter of AWS.
	Public func(name string) (value string, ok bool)
	// Usable returns why Systems Manager cannot encrypt with a KMS key; nil if it can.
	Usable func(key string) error
	// Machines lists the instances that exist.
	Machines func() []Machine
	// Run runs a script on an instance.
	Run func(instance, script string) Result
}

// New registers the operations of Systems Manager.
func New(a *core.Account, s *State) *Service {
	core.Fill(&s.Parameters)
	svc := &Service{
		Account: a, state: s, Public: func(string) (string, bool) { return "", false },
		Usable:   func(string) error { return nil },
		Machines: func() []Machine { return nil }, Run: func(string, string) Result { return Result{Code: 127} },
	}
	svc.simulate()
	svc.simulateCommands()
	a.Limit(ssm.ServiceID, limits())
	return svc
}
