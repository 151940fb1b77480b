package ec2_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// TestLife creates and deletes clusters that have the resources of this package. While a cluster exists, it changes each field of the resources,
// as somebody could do in the AWS console. The next run has to restore the field, or to be refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(
		t, ec2.Kinds(),
		"quickstart.yaml", "three-zones.yaml", "ipv6.yaml", "two-zones.yaml", "flatcar.yaml",
		"flow-logs.yaml", "bastion.yaml", "machine-pool.yaml", "wavelength.yaml", "byo-vpc.yaml",
		"spot-volumes-placement.yaml",
	)
}
