package topology_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// onNode creates a pod on a Node with a volume that is never detached.
func onNode(a *awssim.AWS, node, namespace, name string, meta kubesim.Object) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		meta["name"], meta["namespace"] = name, namespace
		c.Put(time.Now(), kubesim.Object{
			"apiVersion": "v1",
			"kind":       "Pod",
			"metadata":   meta,
			"status":     kubesim.Object{"phase": "Running"},
			"spec": kubesim.Object{
				"nodeName": node,
				"volumes":  []any{kubesim.Object{"name": "data", "persistentVolumeClaim": kubesim.Object{"claimName": "data-" + name}}},
			},
		})
		c.Put(time.Now(), kubesim.Object{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": kubesim.Object{"name": "pv-" + name},
			"spec": kubesim.Object{"claimRef": kubesim.Object{"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "data-" + name}},
		})
		c.Put(time.Now(), kubesim.Object{
			"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": kubesim.Object{"name": "csi-" + name},
			"spec": kubesim.Object{"nodeName": node, "source": kubesim.Object{"persistentVolumeName": "pv-" + name}},
		})
	})
}

// scaleIn removes one of two workers, and returns the events.
func scaleIn(t *testing.T, a *awssim.AWS) string {
	t.Helper()
	w := &enginetest.Witness{T: t, A: a}
	_, err := draining(enginetest.Sized(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: w.Observe})
	require.NoError(t, err)
	require.Len(t, enginetest.NodeNames(a), 2)
	return strings.Join(w.Events, "\n")
}

const goes = "machine/three-zones-md-0/1"

// An unreachable machine is terminated without a wait for its volumes: no kubelet
// unmounts them.
func TestHungWorkerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		node := enginetest.Leaving(a, goes)
		onNode(a, node, "default", "stuck", kubesim.Object{})
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			status, _ := c.Get("/api/v1/nodes/" + node)["status"].(kubesim.Object)
			status["conditions"] = []any{kubesim.Object{"type": "Ready", "status": "Unknown"}}
		})
		began := time.Now()
		assert.NotContains(t, scaleIn(t, a), "to be detached")
		assert.Less(t, time.Since(began), 3*time.Minute)
	})
}

// A run does not wait for the volumes of pods that stay on the Node.
func TestVolumesOfSparedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		node := enginetest.Leaving(a, goes)
		onNode(a, node, "kube-system", "agent", kubesim.Object{"ownerReferences": []any{kubesim.Object{"kind": "DaemonSet", "name": "agent", "controller": true}}})
		onNode(a, node, "kube-system", "static", kubesim.Object{"annotations": kubesim.Object{"kubernetes.io/config.mirror": "x"}})
		onNode(a, node, "default", "spared", kubesim.Object{"labels": kubesim.Object{"cluster.x-k8s.io/drain": "Skip"}})
		began := time.Now()
		seen := scaleIn(t, a)
		assert.NotContains(t, seen, "to be detached")
		assert.NotContains(t, seen, "default/spared")
		assert.Less(t, time.Since(began), 3*time.Minute)
	})
}

// Volumes that are not attached yet do not delay a machine.
func TestVolumeThatIsNotAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		onNode(a, enginetest.Leaving(a, goes), "default", "gone", kubesim.Object{})
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			c.Get("/apis/storage.k8s.io/v1/volumeattachments/csi-gone")["status"] = kubesim.Object{"attached": false}
		})
		assert.NotContains(t, scaleIn(t, a), "to be detached")
	})
}

// A pod with the label for it is not evicted: the run waits until it has completed.
func TestPodThatCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/api/v1/namespaces/default/pods/job"
		a := living(t, 1, 2, true)
		node := enginetest.Leaving(a, goes)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "v1", "kind": "Pod", "status": kubesim.Object{"phase": "Running"}, "spec": kubesim.Object{"nodeName": node},
				"metadata": kubesim.Object{"name": "job", "namespace": "default", "labels": kubesim.Object{"cluster.x-k8s.io/drain": "Wait-Completed"}},
			})
		})
		began := time.Now()
		go func() {
			time.Sleep(5 * time.Minute)
			enginetest.Inside(a, func(c *kubesim.Cluster) {
				o := c.Get(path)
				if assert.NotNil(t, o) && assert.True(t, kubesim.Going(o).IsZero()) {
					o["status"] = kubesim.Object{"phase": "Succeeded"}
				}
			})
		}()
		assert.Contains(t, scaleIn(t, a), "1 pod to leave the Node: default/job (when it has completed)")
		assert.Greater(t, time.Since(began), 5*time.Minute)
	})
}

// A pod that cannot be evicted because its namespace is being deleted is deleted with it,
// and the other pods are evicted immediately.
func TestDrainWithTerminatingNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		node := enginetest.Leaving(a, goes)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			later := time.Now().Add(time.Minute)
			c.Put(
				time.Now(),
				kubesim.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": kubesim.Object{"name": "also", "deletionTimestamp": later.UTC().Format(time.RFC3339)}},
			)
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "v1", "kind": "Pod", "status": kubesim.Object{"phase": "Running"}, "spec": kubesim.Object{"nodeName": node},
				"metadata": kubesim.Object{"name": "first", "namespace": "also"},
			})
		})
		seen := scaleIn(t, a)
		assert.Contains(t, seen, "pods to leave the Node: also/first (its namespace is being deleted), default/web-")
		assert.Contains(t, seen, "1 pod to leave the Node: also/first (its namespace", "the others have gone before it")
		enginetest.Inside(a, func(c *kubesim.Cluster) { assert.Nil(t, c.Get("/api/v1/namespaces/also")) })
	})
}

// A missing permission to evict pods is reported immediately.
func TestNoEvictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Denied = []string{"pods/eviction"} })
		began := time.Now()
		_, err := draining(enginetest.Sized(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "evict default/web-")
		require.ErrorContains(t, err, "cannot write resource")
		assert.Less(t, time.Since(began), time.Minute)
		require.Len(t, enginetest.NodeNames(a), 3)
	})
}
