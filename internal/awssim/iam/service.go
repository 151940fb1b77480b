// Package iam simulates IAM: roles, instance profiles, policies, users, groups and OpenID
// Connect providers.
package iam

import (
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Service is the simulated IAM.
type Service struct {
	*core.Account
	state *State
}

// New registers the operations of IAM.
func New(a *core.Account, s *State) *Service {
	s.fill()
	svc := &Service{Account: a, state: s}
	svc.simulate()
	a.Limit(iam.ServiceID, limits())
	return svc
}
