package elb_test

import (
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// An attribute of a Classic Load Balancer can be turned off, too: the SDK sends false.
func TestCrossZoneOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "classic-elb.yaml")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		off := enginetest.Rewritten(t, "classic-elb.yaml", "crossZoneLoadBalancing: true", "crossZoneLoadBalancing: false")
		enginetest.MustApply(t, off, a)
		enginetest.RequireNoChange(t, off, a)
	})
}
