package teardown_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// AWS does not delete a volume with its machine if DeleteOnTermination is off. A deletion lists it as kept, as often as it is asked, and deletes it
// with --delete-volumes: by file and by name.
func TestVolumesThatOutliveTheirMachines(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.MustApply(t, m, a)
				lasting := outliving(a)
				planned, err := way.open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				requireKept(t, planned, lasting)

				res, err := way.open(m, a.Process()).Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				requireKept(t, res.Plan, lasting)
				require.Len(t, a.Inventory(), 1)

				again, err := way.open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				requireKept(t, again, lasting)
				_, err = way.open(m, a.Process()).Delete(t.Context(), cluster.Options{Volumes: cluster.DeleteVolumes})
				require.NoError(t, err)
				require.Empty(t, a.Inventory())

				enginetest.MustApply(t, m, a)
				outliving(a)
				_, err = way.open(m, a.Process()).Delete(t.Context(), cluster.Options{Volumes: cluster.DeleteVolumes})
				require.NoError(t, err)
				require.Empty(t, a.Inventory(), "while it is attached, too")
			})
		})
	}
}

// outliving turns off that the volume of a worker is deleted with it.
func outliving(a *awssim.AWS) (volume string) {
	worker := enginetest.MachineWith(a, "node")
	a.Edit(func(s *awssim.State) {
		volume = s.EC2.Instances[worker].Volumes[0]
		s.EC2.Volumes[volume].DeleteWithInstance = false
	})
	return volume
}

// requireKept requires that a plan lists a volume as kept.
func requireKept(t *testing.T, p plan.Plan, volume string) {
	t.Helper()
	for _, s := range p.Steps {
		if s.CloudID == volume {
			require.Equal(t, plan.Keep, s.Action)
			require.Contains(t, s.Origin, "AWS does not delete it with its machine")
			return
		}
	}
	require.Fail(t, "not listed", "%v", enginetest.Steps(p))
}
