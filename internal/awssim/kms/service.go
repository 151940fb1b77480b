// Package kms simulates the encryption with keys of KMS.
package kms

import (
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Service is the simulated KMS. Unlike other services, it has keys in all regions.
type Service struct {
	*core.Account
	state *State
}

// New registers the operations of KMS.
func New(a *core.Account, s *State) *Service {
	core.Fill(&s.Keys)
	core.Fill(&s.Aliases)
	svc := &Service{Account: a, state: s}
	svc.simulate()
	a.Limit(kms.ServiceID, limits())
	return svc
}
