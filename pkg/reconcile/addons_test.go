package reconcile_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"clusterawsadm/internal/awssim"
	"clusterawsadm/internal/kubesim"
	"clusterawsadm/pkg/reconcile"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/manifest"
	"clusterawsadm/pkg/reconcile/topology"
)

const addonsExample = "../../configs/addons.yaml"

// Where objects of the example are.
const (
	flannelPath = "/apis/apps/v1/namespaces/kube-flannel/daemonsets/flannel"
	managerPath = "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-cloud-controller-manager"
	teamPath    = "/apis/example.com/v1/teams/platform"
)

// brought makes a cluster that waits for its nodes, as a new process.
func brought(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := waiting(m, a.Process(), topology.NodesReady).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
	require.NoError(t, err)
}

// stepsOf returns what a plan would do.
func stepsOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (steps []graph.Step) {
	t.Helper()
	p, err := waiting(m, a.Process(), topology.NodesReady).Plan(t.Context())
	require.NoError(t, err)
	for _, s := range p.Steps {
		if s.Does() {
			steps = append(steps, s)
		}
	}
	return steps
}

// inside hands the one cluster of an account to edit.
func inside(a *awssim.AWS, edit func(*kubesim.Cluster)) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			edit(c)
		}
	})
}

// TestAddons makes a cluster whose nodes become ready by what its
// ClusterResourceSets bring.
func TestAddons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, addonsExample, nil))
		a := account(m, lag)
		brought(t, m, a)
		assert.Empty(t, stepsOf(t, m, a))
		inside(a, func(c *kubesim.Cluster) {
			for _, path := range []string{flannelPath, managerPath, teamPath, "/apis/rbac.authorization.k8s.io/v1/clusterroles/flannel"} {
				assert.NotNil(t, c.Get(path), path)
			}
		})
	})
}
