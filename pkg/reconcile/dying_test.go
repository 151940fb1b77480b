package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// terminate begins to terminate a machine, as somebody does outside of a run: it is shutting-down for
// a while.
func terminate(a *awssim.AWS, machine string, takes time.Duration) {
	a.Edit(func(s *awssim.State) {
		if i := machineOf(s, machine); i != nil {
			i.Terminating, i.Terminated = time.Now(), time.Now().Add(takes)
		}
	})
	a.Inventory() // it has its effect on the cluster
}

// A machine of the control plane that is being terminated when the run begins is lost: its member is
// removed before another machine joins, and the plan says so.
func TestDyingControlPlane(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		t.Run(fmt.Sprint("ccm=", ccm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sized(t, 3, 2)
				a := alive(t, m)
				target := rollingTarget(a.Process())
				if !ccm {
					removeCloudControllerManager(a)
					target.Wait = plan.APIServer
				}
				terminate(a, "machine/three-zones-control-plane/1", time.Hour)
				p, err := reconcile.OpenModel(m, target).Plan(t.Context())
				require.NoError(t, err)
				planned := strings.Join(steps(p), "\n")
				assert.Regexp(t, `update etcd-members \[members from "maybe without a machine: that of i-\w+ \(ip-[^)]+\), which is shutting-down`, planned)
				assert.Contains(t, planned, "create machine/three-zones-control-plane/1")
				w := &witness{t: t, a: a}
				_, err = reconcile.OpenModel(m, target).Apply(t.Context(), cluster.Options{Observe: w.observe})
				require.NoError(t, err)
				assert.Regexp(t, `waiting etcd-members the member of etcd on ip-\S+ to be removed, whose machine i-\w+ is shutting-down`, strings.Join(w.events, "\n"))
				requireHealthy(t, a, 3, 2)
				p, err = reconcile.OpenModel(m, target).Plan(t.Context())
				require.NoError(t, err)
				require.True(t, p.Empty(), "%v", steps(p))
			})
		})
	}
}

// An upgrade replaces the machines that stay, and launches one in place of that which is being
// terminated.
func TestUpgradeWithADyingControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := alive(t, version(sized(t, 3, 1), "v1.33.0"))
		terminate(a, "machine/three-zones-control-plane/0", time.Hour)
		m := version(sized(t, 3, 1), "v1.34.2")
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&witness{t: t, a: a}).observe})
		require.NoError(t, err)
		requireHealthy(t, a, 3, 1)
		requireVersion(t, a, "v1.34.2")
		requireDone(t, m, a)
	})
}

// The replacement of an earlier run cannot join while the lost member is there: the next run removes
// that member.
func TestReplacementThatWaitsForALostMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sized(t, 3, 1)
		a := alive(t, m)
		terminate(a, "machine/three-zones-control-plane/2", 30*time.Second)
		time.Sleep(time.Minute)
		mustApply(t, m, a) // it uses no API server
		time.Sleep(3 * time.Minute)
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&witness{t: t, a: a}).observe})
		require.NoError(t, err)
		requireHealthy(t, a, 3, 1)
		requireDone(t, m, a)
	})
}

// A machine of the control plane that somebody has terminated counts for the quorum until its member
// is removed: it is removed before the members of machines that are too many.
func TestScaleInWithALostMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := alive(t, sized(t, 3, 1))
		terminate(a, "machine/three-zones-control-plane/1", time.Second)
		time.Sleep(time.Minute)
		m := sized(t, 1, 1)
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&witness{t: t, a: a}).observe})
		require.NoError(t, err)
		requireHealthy(t, a, 1, 1)
		requireDone(t, m, a)
	})
}

// A stopped machine keeps its member: the run is refused, and says how to start or replace it.
func TestStoppedControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sized(t, 3, 1)
		a := alive(t, m)
		var stopped string
		a.Edit(func(s *awssim.State) {
			i := machineOf(s, "machine/three-zones-control-plane/1")
			stopped, i.Stopped = i.ID, time.Now()
		})
		_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "start it with 'aws ec2 start-instances --instance-ids "+stopped+"'; or terminate it")
		inside(a, func(c *kubesim.Cluster) { require.Len(t, c.Members, 3) })
		a.Edit(func(s *awssim.State) { machineOf(s, "machine/three-zones-control-plane/1").Stopped = time.Time{} })
		a.Inventory()
		requireHealthy(t, a, 3, 1)
		requireDone(t, m, a)
	})
}

func removeCloudControllerManager(a *awssim.AWS) {
	inside(a, func(c *kubesim.Cluster) {
		for path := range c.Objects {
			if strings.HasPrefix(path, "/apis/apps/v1/") && strings.Contains(path, "cloud-controller") {
				delete(c.Objects, path)
			}
		}
	})
}
