// Package elb is the Elastic Load Balancing of the simulated AWS: network and
// application load balancers, and Classic ones.
package elb

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// Service is Elastic Load Balancing.
type Service struct {
	*core.Account
	state *State
	ec2   *ec2.Service
}

// New registers the operations of Elastic Load Balancing with an account.
func New(a *core.Account, s *State, e *ec2.Service) *Service {
	core.Fill(&s.LoadBalancers)
	core.Fill(&s.TargetGroups)
	core.Fill(&s.Listeners)
	core.Fill(&s.Classic)
	svc := &Service{Account: a, state: s, ec2: e}
	svc.simulate()
	return svc
}
