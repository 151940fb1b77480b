package run_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A pod that asks for more than the largest machine has is never scheduled: the plan says so, and the run waits in vain. One that asks for less
// causes no warning.
func TestPodsLargerThanMachines(t *testing.T) {
	for _, x := range []struct{ cpu, memory, warning string }{
		{"900m", "512Mi", ""},
		{"1500m", "4Gi", ""},
		{"3", "1Gi", "it requests 3 CPU and 1024 MiB of memory, and a t3.large has 2 CPUs and 8192 MiB"},
		{"1", "8Gi", "it requests 1 CPU and 8192 MiB of memory"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, "resource-sets.yaml")
			addPods(m, x.cpu, x.memory)
			a := enginetest.Prepared(t, m)
			var warnings []string
			target := enginetest.RollingTarget(a.Process())
			target.Wait, target.Warn = plan.NodesReady, func(w string) { warnings = append(warnings, w) }
			_, err := run.Open(m, target).Plan(t.Context())
			require.NoError(t, err)
			all := strings.Join(warnings, "\n")
			_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			if x.warning == "" {
				assert.NotContains(t, all, "room for a pod")
				require.NoError(t, err)
				return
			}
			assert.Contains(t, all, "no machine of the manifest has room for a pod of Deployment kube-system/large (resource-sets.yaml:")
			assert.Contains(t, all, x.warning)
			require.ErrorAs(t, err, new(*plan.TimeoutError))
			require.ErrorContains(t, err, "large")
		})
	}
}

// addPods adds a Deployment with such requests to the first resource set.
func addPods(m *manifest.Cluster, cpu, memory string) {
	set := m.ResourceSets[0]
	d := *set.Documents[0]
	labels := map[string]any{"app": "large"}
	d.Object = map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "large", "namespace": "kube-system"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "large", "image": "registry.k8s.io/pause:3.10", "resources": map[string]any{"requests": map[string]any{"cpu": cpu, "memory": memory}},
			}}},
		}},
	}
	m.ResourceSets[0].Documents = append(m.ResourceSets[0].Documents, &d)
}

// A run waits until the Pods of add-ons are ready and their Jobs are complete. Afterwards a plan is empty, also with a suspended Job.
func TestPodsAndJobsOfAddons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "resource-sets.yaml")
		spec := map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "registry.k8s.io/pause:3.10"}}}
		template := map[string]any{"spec": spec}
		for _, o := range []map[string]any{
			{"apiVersion": "v1", "kind": "Pod", "spec": spec},
			{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": template}},
			{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": template, "suspend": true}},
		} {
			d := *m.ResourceSets[0].Documents[0]
			o["metadata"] = map[string]any{"name": fmt.Sprintf("x%d", len(m.ResourceSets[0].Documents)), "namespace": "default"}
			d.Object = o
			m.ResourceSets[0].Documents = append(m.ResourceSets[0].Documents, &d)
		}
		a := enginetest.Prepared(t, m)
		target := enginetest.RollingTarget(a.Process())
		target.Wait = plan.NodesReady
		_, err := run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		p, err := run.Open(m, target).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", enginetest.Steps(p))
	})
}
