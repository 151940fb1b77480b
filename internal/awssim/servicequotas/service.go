// Package servicequotas simulates Service Quotas.
package servicequotas

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// Service is the simulated Service Quotas.
type Service struct {
	*core.Account
	ec2 *ec2.Service
}

// New registers the operations of Service Quotas.
func New(a *core.Account, e *ec2.Service) *Service {
	svc := &Service{Account: a, ec2: e}
	svc.simulate()
	return svc
}
