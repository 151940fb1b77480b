// Package ec2 is the EC2 of the simulated AWS. A kind of resource is a file.
package ec2

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is EC2.
type Service struct {
	*core.Account
	state *State
	iam   *iam.Service

	// UserOfTemplate names what keeps a launch template from being deleted; ""
	// is nothing.
	UserOfTemplate func(id string) string
}

// New registers the operations of EC2 with an account.
func New(a *core.Account, s *State, i *iam.Service) *Service {
	svc := &Service{Account: a, state: s, iam: i, UserOfTemplate: func(string) string { return "" }}
	a.OnThrottle("EC2", svc.throttle)
	svc.simulate()
	svc.Publish(ImagesIn(a.Region))
	return svc
}
