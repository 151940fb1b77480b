// Package eventbridge simulates Amazon EventBridge: rules of the default event bus.
package eventbridge

import (
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/sqs"
)

// Service is the simulated EventBridge.
type Service struct {
	*core.Account
	state *State
	sqs   *sqs.Service
}

// New registers the operations of EventBridge.
func New(a *core.Account, s *State, queues *sqs.Service) *Service {
	core.Fill(&s.Rules)
	svc := &Service{Account: a, state: s, sqs: queues}
	svc.simulate()
	a.Limit(eventbridge.ServiceID, limits())
	return svc
}
