// Package ssm is the Parameter Store of the simulated AWS.
package ssm

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// Service is Systems Manager, as far as parameters go.
type Service struct {
	*core.Account
	state *State

	// Public returns the value of a parameter that AWS publishes for everybody.
	Public func(name string) (value string, ok bool)
}

// New registers the operations of Parameter Store with an account.
func New(a *core.Account, s *State) *Service {
	core.Fill(&s.Parameters)
	svc := &Service{Account: a, state: s, Public: func(string) (string, bool) { return "", false }}
	svc.simulate()
	return svc
}
