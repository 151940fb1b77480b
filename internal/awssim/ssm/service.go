// Package ssm simulates Parameter Store.
package ssm

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// Service is the simulated Systems Manager, with parameters only.
type Service struct {
	*core.Account
	state *State

	// Public returns the value of a public parameter of AWS.
	Public func(name string) (value string, ok bool)
}

// New registers the operations of Parameter Store.
func New(a *core.Account, s *State) *Service {
	core.Fill(&s.Parameters)
	svc := &Service{Account: a, state: s, Public: func(string) (string, bool) { return "", false }}
	svc.simulate()
	return svc
}
