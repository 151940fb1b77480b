// Package secretsmanager simulates Secrets Manager.
package secretsmanager

import (
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

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
	a.Limit(secretsmanager.ServiceID, limits())
	return svc
}
