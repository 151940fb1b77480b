package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// waiting returns the cluster for a new process that waits for Nodes.
func waiting(m *manifest.Cluster, p *awssim.Process, wait reconcile.Wait) *reconcile.Cluster {
	return reconcile.OpenModel(m, reconcile.Target{Config: p.Config(), Owner: "test", Transport: transport(p), Wait: wait})
}

// addNetwork installs what a Node needs to become ready: a pod network, and a cloud
// controller manager.
func addNetwork(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			for _, name := range []string{"calico-node", "aws-cloud-controller-manager"} {
				c.Put(c.Up, kubesim.Object{
					"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": kubesim.Object{"name": name, "namespace": "kube-system"},
					"spec": kubesim.Object{"template": kubesim.Object{"spec": kubesim.Object{"volumes": []any{
						kubesim.Object{"name": "cni", "hostPath": kubesim.Object{"path": "/etc/cni/net.d"}},
					}}}},
				})
			}
		}
	})
}

// TestWaitForAPI creates a cluster and waits until its API server responds and its
// control plane has joined.
func TestWaitForAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := load(t, "../../configs/three-zones.yaml", nil)
		a := account(m, lag)
		began := time.Now()
		res, err := waiting(m, a.Process(), reconcile.APIServer).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
		require.NoError(t, err)
		assert.NotEmpty(t, res.Endpoint)
		t.Logf("api after %s", time.Since(began))
		p, err := waiting(m, a.Process(), reconcile.APIServer).Plan(t.Context())
		require.NoError(t, err)
		for _, s := range p.Steps {
			assert.False(t, s.Does(), "%s: %s %v", s.Resource, s.Action, s.Diff)
		}
		assert.Equal(t, 3, p.CountKind("node", reconcile.Keep))
	})
}

// TestWaitForNodes creates a cluster while somebody installs a pod network, and waits
// until all Nodes are ready.
func TestWaitForNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := load(t, "../../configs/three-zones.yaml", nil)
		a := account(m, lag)
		began := time.Now()
		go func() {
			time.Sleep(8 * time.Minute)
			addNetwork(a)
		}()
		_, err := waiting(m, a.Process(), reconcile.NodesReady).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
		require.NoError(t, err)
		assert.Greater(t, time.Since(began), 8*time.Minute)
		assert.Less(t, time.Since(began), 9*time.Minute)
		_, err = waiting(m, a.Process(), reconcile.NodesReady).Delete(t.Context(), reconcile.Options{Observe: tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { assert.Empty(t, s.Kubernetes) })
	})
}
