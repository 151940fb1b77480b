package elb_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Clusters with the kinds of this package are created and deleted, and each field of these kinds that somebody changes
// is restored or refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(
		t, elb.Kinds(),
		"quickstart.yaml", "classic-elb.yaml", "three-zones.yaml", "ipv6.yaml", "byo-load-balancer.yaml",
		"two-zones.yaml",
	)
}
