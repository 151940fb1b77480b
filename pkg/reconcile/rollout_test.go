package reconcile_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"clusterawsadm/internal/awssim"
	"clusterawsadm/pkg/reconcile"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/manifest"
	"clusterawsadm/pkg/reconcile/topology"
)

// rolling returns the cluster as a new process sees it whose user wants its
// machines to be nodes, and to leave in good order.
func rolling(m *manifest.Cluster, p *awssim.Process) *reconcile.Cluster {
	return reconcile.Open(m, reconcile.Target{Config: p.Config(), Who: "test", Kubernetes: p.Kubernetes, Wait: topology.NodesReady, Drain: true})
}

// alive makes the cluster of a manifest with a pod network.
func alive(t *testing.T, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := account(m, lag)
	_, err := waiting(m, a.Process(), topology.APIServer).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
	require.NoError(t, err)
	addNetwork(a)
	_, err = rolling(m, a.Process()).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
	require.NoError(t, err)
	return a
}

// TestRolloutOfWorkers changes the type of workers: each is replaced by a new
// one, one at a time.
func TestRolloutOfWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := load(t, "../../configs/three-zones.yaml", nil)
		a := alive(t, m)
		m = load(t, "../../configs/three-zones.yaml", nil)
		m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		p, err := rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3, p.CountKind("machine", graph.Create), "%v", steps(p))
		assert.Equal(t, 3, p.CountKind("retired", graph.Remove), "%v", steps(p))
		_, err = rolling(m, a.Process()).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
		require.NoError(t, err)
		p, err = rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, p.Empty(), "%v", steps(p))
	})
}

// TestUpgrade brings a cluster to the next minor version: the control plane
// first, one machine at a time, then kube-proxy, then the workers.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := alive(t, version(load(t, "../../configs/three-zones.yaml", nil), "v1.33.0"))
		m := version(load(t, "../../configs/three-zones.yaml", nil), "v1.34.2")
		res, err := rolling(m, a.Process()).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
		require.NoError(t, err, "%v", steps(res.Plan))
		p, err := rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, p.Empty(), "%v", steps(p))
	})
}

// version changes the version of all machines of a manifest.
func version(m *manifest.Cluster, v string) *manifest.Cluster {
	m.Version, m.ControlPlane.Object.Spec.Version = v, v
	for _, d := range m.Deployments {
		d.Object.Spec.Template.Spec.Version = v
	}
	return m
}

// steps prints what a plan does.
func steps(p graph.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Does() {
			out = append(out, fmt.Sprintf("%s %s %v", s.Action, s.Node, s.Diff))
		}
	}
	return out
}
