package s3_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// TestLife creates and deletes clusters that have the resources of this package. While a cluster exists, it changes each field of the resources,
// as somebody could do in the AWS console. The next run has to restore the field, or to be refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(t, s3.Kinds(), "flatcar.yaml", "flatcar-pool.yaml")
}
