package incluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// joins creates a cluster of three control planes and three workers, and returns after
// what time the API server has answered and the last machine has joined.
func joins(t *testing.T, networkFirst bool) (a *awssim.AWS, answers, last time.Duration) {
	t.Helper()
	m := enginetest.Load(t, enginetest.ThreeZones, nil)
	a = enginetest.Account(m, 0)
	target, began := enginetest.RollingTarget(a.Process()), time.Now()
	target.NetworkFirst = networkFirst
	_, err := run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
		if e.Resource == "api-server" && e.What == plan.Done {
			answers = time.Since(began)
			enginetest.AddNetwork(a)
		}
	}})
	require.NoError(t, err)
	enginetest.RequireDone(t, m, a)
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			last = max(last, i.Boot.Joined.Sub(began))
		}
	})
	return a, answers, last
}

// Machines boot while their NAT gateways are created, and wait for them by themselves.
func TestMachinesBootBesideTheNATGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, answers, last := joins(t, false)
		assert.LessOrEqual(t, answers, 2*time.Minute+56*time.Second)
		assert.LessOrEqual(t, last, 3*time.Minute+31*time.Second)
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				assert.False(t, i.Offline.IsZero(), "it has waited")
				assert.False(t, i.Late)
			}
		})
	})
}

// A flag keeps the order for images that need the network earlier.
func TestNetworkFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, answers, last := joins(t, true)
		assert.Greater(t, answers, 3*time.Minute+50*time.Second)
		assert.Greater(t, last, 4*time.Minute+20*time.Second)
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				assert.True(t, i.Offline.IsZero(), "it has a route from the beginning")
			}
		})
	})
}

// A run that dies before there are routes leaves machines that wait for them, however
// long the next run takes to come.
func TestMachinesWaitForTheNextRun(t *testing.T) {
	for _, pause := range []time.Duration{time.Minute, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, enginetest.ThreeZones, nil)
			a := enginetest.Account(m, enginetest.Lag)
			before := a.Inventory()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := a.Process()
			p.Killed, p.Fault = cancel, func(_ int, _, op string) awssim.Fault {
				if op == "DescribeNatGateways" && launched(a) {
					return awssim.KillBefore
				}
				return awssim.None
			}
			_, err := enginetest.Waiting(m, p, plan.APIServer).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
			require.Error(t, err)
			time.Sleep(pause)
			a.Edit(func(s *awssim.State) {
				require.Len(t, s.EC2.Instances, 6)
				for _, i := range s.EC2.Instances {
					require.Nil(t, i.Boot, "it has no route")
				}
			})
			_, err = enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.NoError(t, err)
			a.Edit(func(s *awssim.State) {
				require.Len(t, s.EC2.Instances, 6, "the machines of the first run")
				for _, i := range s.EC2.Instances {
					assert.Equal(t, pause > 15*time.Minute, i.Late)
				}
			})
			enginetest.MustDelete(t, m, a)
			require.Equal(t, before, a.Inventory())
		})
	}
}

// launched reports whether all machines run.
func launched(a *awssim.AWS) (all bool) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			all = !i.Running.IsZero() && len(s.EC2.Instances) == 6
		}
	})
	return all
}

// A NAT gateway that fails ends the run, although the machines wait for it.
func TestMachinesDoNotWaitForAFailedNATGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.ThreeZones, nil)
		a := enginetest.Account(m, enginetest.Lag)
		a.Edit(func(s *awssim.State) {
			s.EC2.NATGatewayFailure = "InternalError: Network interface could not be created"
		})
		began := time.Now()
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "failed: InternalError: Network interface could not be created")
		require.Less(t, time.Since(began), 5*time.Minute)
	})
}
