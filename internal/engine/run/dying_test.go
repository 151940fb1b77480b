package run_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A machine of the control plane that is being terminated when the run begins is lost: its member is
// removed before another machine joins, and the plan says so.
func TestDyingControlPlane(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		t.Run(fmt.Sprint("ccm=", ccm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Sized(t, 3, 2)
				a := enginetest.Alive(t, m)
				target := enginetest.RollingTarget(a.Process())
				if !ccm {
					enginetest.RemoveCloudControllerManager(a)
					target.Wait = plan.APIServer
				}
				enginetest.Terminate(a, "machine/three-zones-control-plane/1", time.Hour)
				p, err := run.Open(m, target).Plan(t.Context())
				require.NoError(t, err)
				planned := strings.Join(enginetest.Steps(p), "\n")
				assert.Regexp(t, `update etcd-members \[members from "maybe without a machine: that of i-\w+ \(ip-[^)]+\), which is shutting-down`, planned)
				assert.Contains(t, planned, "create machine/three-zones-control-plane/1")
				w := &enginetest.Witness{T: t, A: a}
				_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: w.Observe})
				require.NoError(t, err)
				assert.Regexp(t, `waiting etcd-members the member of etcd on ip-\S+ to be removed, whose machine i-\w+ is shutting-down`, strings.Join(w.Events, "\n"))
				enginetest.RequireHealthy(t, a, 3, 2)
				p, err = run.Open(m, target).Plan(t.Context())
				require.NoError(t, err)
				require.True(t, p.Empty(), "%v", enginetest.Steps(p))
			})
		})
	}
}

// An upgrade replaces the machines that stay, and launches one in place of that which is being
// terminated.
func TestUpgradeWithADyingControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 3, 1), "v1.33.0"))
		enginetest.Terminate(a, "machine/three-zones-control-plane/0", time.Hour)
		m := enginetest.Version(enginetest.Sized(t, 3, 1), "v1.34.2")
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 3, 1)
		enginetest.RequireVersion(t, a, "v1.34.2")
		enginetest.RequireDone(t, m, a)
	})
}

// The replacement of an earlier run cannot join while the lost member is there: the next run removes
// that member.
func TestReplacementThatWaitsForALostMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 1)
		a := enginetest.Alive(t, m)
		enginetest.Terminate(a, "machine/three-zones-control-plane/2", 30*time.Second)
		time.Sleep(time.Minute)
		enginetest.MustApply(t, m, a) // it uses no API server
		time.Sleep(3 * time.Minute)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 3, 1)
		enginetest.RequireDone(t, m, a)
	})
}

// A machine of the control plane that somebody has terminated counts for the quorum until its member
// is removed: it is removed before the members of machines that are too many.
func TestScaleInWithALostMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 3, 1))
		enginetest.Terminate(a, "machine/three-zones-control-plane/1", time.Second)
		time.Sleep(time.Minute)
		m := enginetest.Sized(t, 1, 1)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 1, 1)
		enginetest.RequireDone(t, m, a)
	})
}

// A stopped machine keeps its member: the run is refused, and says how to start or replace it.
func TestStoppedControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 1)
		a := enginetest.Alive(t, m)
		var stopped string
		a.Edit(func(s *awssim.State) {
			i := enginetest.MachineOf(s, "machine/three-zones-control-plane/1")
			stopped, i.Stopped = i.ID, time.Now()
		})
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "start it with 'aws ec2 start-instances --instance-ids "+stopped+"'; or terminate it")
		enginetest.Inside(a, func(c *kubesim.Cluster) { require.Len(t, c.Members, 3) })
		a.Edit(func(s *awssim.State) {
			enginetest.MachineOf(s, "machine/three-zones-control-plane/1").Stopped = time.Time{}
		})
		a.Inventory()
		enginetest.RequireHealthy(t, a, 3, 1)
		enginetest.RequireDone(t, m, a)
	})
}
