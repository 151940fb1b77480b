package autoscaling_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestLife creates and deletes clusters that have the resources of this package. While a cluster exists, it changes each field of the resources,
// as somebody could do in the AWS console. The next run has to restore the field, or to be refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(t, autoscaling.Kinds(), "machine-pool.yaml", "flatcar-pool.yaml", "self-healing.yaml")
}

// The groups of a stopped cluster are empty, no autoscaler fills them, and they have their size again when it starts.
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		size := func() (out string) {
			a.Edit(func(s *awssim.State) {
				g := s.AutoScaling.Groups["machine-pool-mp-0"]
				out = fmt.Sprintf("%d to %d, %d of %d", g.Min, g.Max, len(g.Instances), g.Desired)
			})
			return out
		}
		power := func() *run.Cluster {
			p := a.Process()
			return run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Cost: true})
		}
		before := size()
		planned, err := power().PlanStop(t.Context())
		require.NoError(t, err)
		require.Less(t, planned.Cost.After, planned.Cost.Before)
		a.Edit(func(s *awssim.State) {
			s.AutoScaling.Groups["machine-pool-mp-0"].Suspended = map[string]bool{"Terminate": true}
		})
		_, err = power().PlanStop(t.Context())
		require.ErrorContains(t, err, "its process Terminate is suspended, so that its machines stay")
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Suspended = map[string]bool{} })
		_, err = power().Stop(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(t, "0 to 0, 0 of 0", size())
		started, err := power().Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(t, before, size())
		require.Greater(t, started.Plan.Cost.After, started.Plan.Cost.Before)
		again, err := power().Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.True(t, again.Plan.Empty(), "%v", enginetest.Steps(again.Plan))
		enginetest.MustDelete(t, m, a)
	})
}
