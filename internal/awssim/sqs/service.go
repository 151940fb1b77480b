// Package sqs simulates Amazon SQS.
package sqs

import (
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Service is the simulated SQS.
type Service struct {
	*core.Account
	state *State
}

// New registers the operations of SQS.
func New(a *core.Account, s *State) *Service {
	core.Fill(&s.Queues)
	svc := &Service{Account: a, state: s}
	svc.simulate()
	a.Limit(sqs.ServiceID, limits())
	return svc
}
