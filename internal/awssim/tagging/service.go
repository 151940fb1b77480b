// Package tagging simulates the Resource Groups Tagging API.
package tagging

import (
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Service is the simulated Resource Groups Tagging API.
type Service struct {
	*core.Account
	services []Tagger
}

// Tagger is a service with tagged resources.
type Tagger interface{ Tagged() []core.Tagged }

// New registers the operations of the Tagging API.
func New(a *core.Account, services ...Tagger) *Service {
	svc := &Service{Account: a, services: services}
	svc.simulate()
	a.Limit(resourcegroupstaggingapi.ServiceID, limits())
	return svc
}
