// Package servicequotas is the Service Quotas of the simulated AWS.
package servicequotas

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// Service is Service Quotas.
type Service struct {
	*core.Account
	ec2 *ec2.Service
}

// New registers the operations of Service Quotas with an account.
func New(a *core.Account, e *ec2.Service) *Service {
	svc := &Service{Account: a, ec2: e}
	svc.simulate()
	return svc
}
