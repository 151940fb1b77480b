package ec2_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Clusters with the kinds of this package are created and deleted, and each field of these kinds that somebody changes
// is restored or refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(
		t, ec2.Kinds(),
		"quickstart.yaml", "three-zones.yaml", "ipv6.yaml", "two-zones.yaml", "flatcar.yaml",
		"flow-logs.yaml", "bastion.yaml", "machine-pool.yaml", "wavelength.yaml", "byo-vpc.yaml",
		"spot-volumes-placement.yaml",
	)
}
