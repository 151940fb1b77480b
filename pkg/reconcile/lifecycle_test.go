package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// each runs a test for every example, each in its own account with the existing resources
// of the example.
func each(t *testing.T, o awssim.Options, do func(t *testing.T, a *awssim.AWS, m *manifest.Cluster)) {
	t.Helper()
	eachOf(t, examples(t), o, do)
}

// eachOf does the same for some examples.
func eachOf(t *testing.T, files []string, o awssim.Options, do func(t *testing.T, a *awssim.AWS, m *manifest.Cluster)) {
	t.Helper()
	for _, file := range files {
		t.Run(name(file), func(t *testing.T) {
			t.Parallel()
			m := quick(load(t, file, nil))
			synctest.Test(t, func(t *testing.T) {
				mine := o
				mine.Region = m.Region
				a := awssim.New(mine)
				prepare(t, file, a, m)
				do(t, a, m)
			})
		})
	}
}

// quick sets a key algorithm that is quick.
func quick(m *manifest.Cluster) *manifest.Cluster {
	if cp := m.ControlPlane; cp != nil {
		cp.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
	}
	for _, x := range m.Machines {
		if x.ControlPlane {
			x.Bootstrap.Spec.ClusterConfiguration.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
		}
	}
	return m
}

// writes lists the calls that change something, without those of the lock, which come
// before the run knows whether there are changes.
func writes(calls []awssim.Call) (out []string) {
	for _, c := range calls {
		if c.Service != "SSM" && !slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "Simulate", "AssumeRole", "GET "}, func(p string) bool { return strings.HasPrefix(c.Operation, p) }) {
			out = append(out, c.Operation)
		}
	}
	return out
}

// A cluster is planned, applied, planned again, and deleted: the first plan contains all
// resources, and writes nothing; the second plan is empty; and the account after the
// deletion is as it was before, including tags.
func TestLifecycle(t *testing.T) {
	each(t, awssim.Options{Lag: lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before, detailed, calls := a.Inventory(), a.Detailed(), len(a.Calls())
		p := mustPlan(t, m, a)
		require.Empty(t, writes(since(a, calls)))
		require.Equal(t, detailed, a.Detailed())
		for _, s := range p.Steps {
			require.Contains(t, []plan.Action{plan.Create, plan.Existing, plan.Leave}, s.Action, s.Resource)
		}
		applied := mustApply(t, m, a)
		require.Equal(t, p.Steps, applied.Plan.Steps)
		requireNoChange(t, m, a)
		_, err := open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		mustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
		require.Equal(t, detailed, a.Detailed())
		p, err = open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		for _, s := range p.Steps {
			require.False(t, s.Does(), "%s: %s", s.Resource, s.Action)
		}
	})
}
