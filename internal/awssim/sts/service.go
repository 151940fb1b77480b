// Package sts is the STS of the simulated AWS. What it answers IAM keeps.
package sts

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is STS.
type Service struct {
	*core.Account
	iam *iam.Service
}

// New registers the operations of STS with an account.
func New(a *core.Account, i *iam.Service) *Service {
	svc := &Service{Account: a, iam: i}
	svc.simulate()
	return svc
}
