// Package cloudformation is the CloudFormation of the simulated AWS, for
// stacks of IAM's resources.
package cloudformation

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is CloudFormation.
type Service struct {
	*core.Account
	state *State
	iam   *iam.Service
}

// New registers the operations of CloudFormation with an account.
func New(a *core.Account, s *State, i *iam.Service) *Service {
	core.Fill(&s.Stacks)
	svc := &Service{Account: a, state: s, iam: i}
	svc.simulate()
	return svc
}
