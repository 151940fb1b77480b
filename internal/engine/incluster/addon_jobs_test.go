package incluster_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	jobPath = "/apis/batch/v1/namespaces/default/jobs/seed"
	jobYAML = `
apiVersion: batch/v1
kind: Job
metadata: {name: seed, namespace: default}
spec:
  ttlSecondsAfterFinished: 30
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: "seed:1"}]}}
`
)

// A Job that deletes itself after it has run is not created again, unless the manifest has another one.
func TestJobThatExpires(t *testing.T) {
	m, changed := withAddon(t, jobYAML), withAddon(t, strings.Replace(jobYAML, "seed:1", "seed:2", 1))
	saved := bare(t, m)
	for name, reconcile := range map[string]bool{"Reconcile": true, "ApplyOnce": false} {
		t.Run(name, func(t *testing.T) {
			for set := range m.ResourceSets {
				m.ResourceSets[set].Reconcile, changed.ResourceSets[set].Reconcile = reconcile, reconcile
			}
			synctest.Test(t, func(t *testing.T) {
				a := restored(t, m, saved)
				expired := func(m *manifest.Cluster) bool {
					for range 5 { // the requests of a plan let the controllers go on
						time.Sleep(time.Minute)
						_, _, err := judged(t, m, a)
						require.NoError(t, err)
					}
					gone := false
					enginetest.Inside(a, func(c *kubesim.Cluster) { gone = c.Get(jobPath) == nil })
					return gone
				}
				brought(t, m, a)
				enginetest.Inside(a, func(c *kubesim.Cluster) { require.NotNil(t, c.Get(jobPath)) })
				assert.Empty(t, stepsOf(t, m, a))
				require.True(t, expired(m))
				assert.Empty(t, stepsOf(t, m, a))
				brought(t, m, a)
				enginetest.Inside(a, func(c *kubesim.Cluster) { assert.Nil(t, c.Get(jobPath), "it was created again") })

				steps := stepsOf(t, changed, a)
				require.NotEmpty(t, steps)
				assert.Equal(t, "Job default/seed", steps[0].Diff[0].Field)
				brought(t, changed, a)
				enginetest.Inside(a, func(c *kubesim.Cluster) { assert.NotNil(t, c.Get(jobPath)) })
				require.True(t, expired(changed))
				assert.Empty(t, stepsOf(t, changed, a))
			})
		})
	}
}

// A run that was killed after it has applied the Job records it in the next one.
func TestJobThatIsNotRecorded(t *testing.T) {
	m := withAddon(t, jobYAML)
	saved := bare(t, m)
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		brought(t, m, a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			delete(c.Objects, "/api/v1/namespaces/kube-system/configmaps/clusterawsadm-jobs")
		})
		steps := stepsOf(t, m, a)
		require.Len(t, steps, 1)
		assert.Equal(t, plan.Change{Field: "Job default/seed", Have: "not recorded", Want: "as written", Remedy: plan.InPlace}, steps[0].Diff[0])
		brought(t, m, a)
		assert.Empty(t, stepsOf(t, m, a))
	})
}
