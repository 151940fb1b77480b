package s3_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Machines read their boot data with a link that works, or with a role that the bucket's policy names.
func TestMachinesReadTheirBootData(t *testing.T) {
	const (
		booted  = "set by the cloud controller manager" // which the example does not install
		refused = "connect: connection refused"
	)
	for name, tt := range map[string]struct {
		lasts *metav1.Duration
		want  string
	}{
		"role":                  {nil, booted},
		"link":                  {&metav1.Duration{Duration: time.Hour}, booted},
		"link of one second":    {&metav1.Duration{Duration: time.Second}, refused},
		"neither role nor link": {&metav1.Duration{}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, "flatcar.yaml", nil)
				m.Infra.Spec.S3Bucket.PresignedURLDuration = tt.lasts
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}
