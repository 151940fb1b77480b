// Package s3 simulates S3.
package s3

import (
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is the simulated S3.
type Service struct {
	*core.Account
	state *State
	iam   *iam.Service
	asked string // region of the endpoint of the call that is handled; "": that of the account
}

// New registers the operations of S3.
func New(a *core.Account, s *State, i *iam.Service) *Service {
	core.Fill(&s.Buckets)
	svc := &Service{Account: a, state: s, iam: i}
	svc.simulate()
	a.Limit(s3.ServiceID, limits())
	return svc
}
