// Package servicequotas simulates Service Quotas.
package servicequotas

import (
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eventbridge"
)

// Service is the simulated Service Quotas.
type Service struct {
	*core.Account
	ec2    *ec2.Service
	eks    *eks.Service
	elb    *elb.Service
	events *eventbridge.Service
}

// New registers the operations of Service Quotas.
func New(a *core.Account, e *ec2.Service, k *eks.Service, l *elb.Service, rules *eventbridge.Service) *Service {
	svc := &Service{Account: a, ec2: e, eks: k, elb: l, events: rules}
	svc.simulate()
	a.Limit(servicequotas.ServiceID, limits())
	return svc
}
