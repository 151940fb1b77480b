// Package ec2 simulates EC2, with one file for each kind of resource.
package ec2

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// Service is the simulated EC2.
type Service struct {
	*core.Account
	state  *State
	tables []table // of the state
	iam    *iam.Service

	// Usable returns why volumes cannot be encrypted with a KMS key; nil if they can.
	Usable func(key string) error
	// UserOfTemplate returns what prevents the deletion of a launch template; "" for
	// nothing.
	UserOfTemplate func(id string) string
}

// New registers the operations of EC2.
func New(a *core.Account, s *State, i *iam.Service) *Service {
	svc := &Service{
		Account: a, state: s, iam: i, tables: s.tables(), UserOfTemplate: func(string) string { return "" },
		Usable: func(string) error { return nil },
	}
	a.Limit(ec2.ServiceID, limits())
	core.Fill(&s.Elsewhere)
	core.Fill(&s.KeyPairs)
	core.Fill(&s.PlacementGroups)
	core.Fill(&s.Partitions)
	core.Fill(&s.Reservations)
	core.Fill(&s.Hosts)
	core.Fill(&s.Keys)
	core.Fill(&s.Tokens)
	svc.simulateCatalog()
	svc.simulateTags()
	for _, t := range svc.tables {
		t.fill()
		if k := t.kind(); k.simulate != nil {
			k.simulate(svc)
		}
	}
	svc.Publish(ImagesIn(a.Region))
	return svc
}

// Settle applies the changes whose time has come.
func (svc *Service) Settle() {
	for _, t := range svc.tables {
		if k := t.kind(); k.settle != nil {
			k.settle(svc)
		}
	}
}
