package autoscaling_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Clusters with the kinds of this package are created and deleted, and each field of these kinds that somebody changes
// is restored or refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(t, autoscaling.Kinds(), "machine-pool.yaml", "flatcar-pool.yaml", "self-healing.yaml")
}
