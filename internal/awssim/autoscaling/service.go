// Package autoscaling simulates EC2 Auto Scaling.
package autoscaling

import (
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is the simulated EC2 Auto Scaling.
type Service struct {
	*core.Account
	state *State
	ec2   *ec2.Service
	elb   *elb.Service
	iam   *iam.Service
}

// New registers the operations of Auto Scaling.
func New(a *core.Account, s *State, e *ec2.Service, l *elb.Service, i *iam.Service) *Service {
	core.Fill(&s.Groups)
	svc := &Service{Account: a, state: s, ec2: e, elb: l, iam: i}
	svc.simulate()
	a.Limit(autoscaling.ServiceID, limits())
	return svc
}
