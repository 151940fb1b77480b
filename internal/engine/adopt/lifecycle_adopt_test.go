package adopt_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A cluster whose resources have only Cluster API's tags is recognized: it gets the
// identity tags, and no other change.
func TestAdoption(t *testing.T) {
	enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		standing := a.Detailed()
		a.Edit(func(s *awssim.State) {
			for _, tags := range enginetest.AllTags(s) {
				delete(tags, "clusterawsadm/resource")
			}
		})
		for _, s := range enginetest.MustPlan(t, m, a).Steps {
			if s.Does() {
				require.Equal(t, plan.Update, s.Action, s.Resource)
				require.Equal(t, plan.Diff{{Field: "tag clusterawsadm/resource", Want: string(s.Resource), Remedy: plan.InPlace}}, s.Diff, s.Resource)
			}
		}
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		require.Equal(t, enginetest.Unnumbered(standing), enginetest.Unnumbered(a.Detailed()))
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}
