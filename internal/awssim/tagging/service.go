// Package tagging is the Resource Groups Tagging API of the simulated AWS.
package tagging

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// Service is the Resource Groups Tagging API.
type Service struct {
	*core.Account
	services []Tagger
}

// Tagger is a service whose resources can have tags.
type Tagger interface{ Tagged() []core.Tagged }

// New registers the operations of the Tagging API with an account.
func New(a *core.Account, services ...Tagger) *Service {
	svc := &Service{Account: a, services: services}
	svc.simulate()
	return svc
}
