package reconcile

import (
	"errors"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// refusalFor returns a RefusedError with the reasons; nil if there are none.
func refusalFor(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	e := &plan.RefusedError{}
	for _, reason := range reasons {
		e.Reasons = append(e.Reasons, errors.New(reason))
	}
	return e
}
