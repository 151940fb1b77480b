package lives_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A cluster is planned, applied, planned again, and deleted: the first plan contains all
// resources, and writes nothing; the second plan is empty; and the account after the
// deletion is as it was before, including tags.
func TestLifecycle(t *testing.T) {
	enginetest.Each(t, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before, detailed, calls := a.Inventory(), a.Detailed(), len(a.Calls())
		p := enginetest.MustPlan(t, m, a)
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
		require.Equal(t, detailed, a.Detailed())
		for _, s := range p.Steps {
			require.Contains(t, []plan.Action{plan.Create, plan.Existing, plan.Leave}, s.Action, s.Resource)
		}
		applied := enginetest.MustApply(t, m, a)
		require.Equal(t, p.Steps, applied.Plan.Steps)
		enginetest.RequireNoChange(t, m, a)
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
		require.Equal(t, detailed, a.Detailed())
		p, err = enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		for _, s := range p.Steps {
			require.False(t, s.Does(), "%s: %s", s.Resource, s.Action)
		}
	})
}
