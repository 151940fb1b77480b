// Package elb simulates Elastic Load Balancing: network, application and Classic Load
// Balancers.
package elb

import (
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// Service is the simulated Elastic Load Balancing.
type Service struct {
	*core.Account
	state *State
	ec2   *ec2.Service
}

// New registers the operations of Elastic Load Balancing.
func New(a *core.Account, s *State, e *ec2.Service) *Service {
	core.Fill(&s.LoadBalancers)
	core.Fill(&s.TargetGroups)
	core.Fill(&s.Listeners)
	core.Fill(&s.Classic)
	svc := &Service{Account: a, state: s, ec2: e}
	svc.simulate()
	a.Limit(elasticloadbalancing.ServiceID, limits())
	a.Limit(elasticloadbalancingv2.ServiceID, limits())
	return svc
}
