package cloudformation

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// adopt completes stacks of another account, of which this one is a copy: CloudFormation lists
// their resources without the properties, which are those of the template. The resources of a
// template that is not simulated stay incomplete, and an update of the stack is refused.
func (svc *Service) adopt() {
	for _, s := range core.ByKey(svc.state.Stacks) {
		if !s.Copied {
			continue
		}
		s.Copied = false
		t, err := parseTemplate(s.Template)
		if err != nil {
			continue
		}
		for id, d := range t.resources {
			r := s.Resources[id]
			if r == nil {
				continue // its creation has failed
			}
			r.Declared, r.Needs = canonical(d.properties), d.needs
		}
		for _, r := range s.Resources {
			if v, err := resolve(uncanonical(r.Declared), svc.lookup(s)); err == nil {
				r.Applied = canonical(v)
			}
		}
	}
}
