// Package sts simulates STS. Package iam stores its state.
package sts

import (
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is the simulated STS.
type Service struct {
	*core.Account
	iam *iam.Service
}

// New registers the operations of STS.
func New(a *core.Account, i *iam.Service) *Service {
	svc := &Service{Account: a, iam: i}
	svc.simulate()
	a.Limit(sts.ServiceID, limits())
	return svc
}
