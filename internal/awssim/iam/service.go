// Package iam is the IAM of the simulated AWS: roles, instance profiles,
// policies, users, groups and OpenID Connect providers.
package iam

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// Service is IAM.
type Service struct {
	*core.Account
	state *State
}

// New registers the operations of IAM with an account.
func New(a *core.Account, s *State) *Service {
	s.fill()
	svc := &Service{Account: a, state: s}
	svc.simulate()
	return svc
}
