package s3_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A bucket is not renamed: a second one would be made, and a deletion would find only that.
func TestRenamedBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "flatcar.yaml")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		name, calls := m.Infra.Spec.S3Bucket.Name, len(a.Calls())
		m.Infra.Spec.S3Bucket.Name = "another-bucket"
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "the cluster has the bucket "+name+", which S3 does not rename")
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
	})
}
