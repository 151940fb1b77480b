// Package cloudformation simulates CloudFormation, for stacks of IAM resources.
package cloudformation

import (
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is the simulated CloudFormation.
type Service struct {
	*core.Account
	state *State
	iam   *iam.Service
}

// New registers the operations of CloudFormation.
func New(a *core.Account, s *State, i *iam.Service) *Service {
	core.Fill(&s.Stacks)
	svc := &Service{Account: a, state: s, iam: i}
	svc.simulate()
	svc.adopt()
	a.Limit(cloudformation.ServiceID, limits())
	return svc
}
