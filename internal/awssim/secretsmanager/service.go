// Package secretsmanager simulates Secrets Manager.
package secretsmanager

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// Service is the simulated Secrets Manager.
type Service struct {
	*core.Account
	state *State
}

// New registers the operations of Secrets Manager.
func New(a *core.Account, s *State) *Service {
	core.Fill(&s.Secrets)
	svc := &Service{Account: a, state: s}
	svc.simulate()
	return svc
}
