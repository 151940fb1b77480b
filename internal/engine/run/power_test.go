package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// powerOf opens a cluster by its name, and collects the warnings.
func powerOf(m *manifest.Cluster, p *awssim.Process, warnings *[]string) *run.Cluster {
	return run.OpenByName(m.Name, cluster.Target{
		Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Cost: true, LockTTL: time.Minute,
		Warn: func(text string) {
			if warnings != nil {
				*warnings = append(*warnings, text)
			}
		},
	})
}

// instanceStates counts the instances of an account by their state.
func instanceStates(a *awssim.AWS) map[string]int {
	n := map[string]int{}
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			n[string(i.State(time.Now()))]++
		}
	})
	delete(n, "terminated")
	return n
}

func mustStop(t *testing.T, m *manifest.Cluster, a *awssim.AWS) cluster.Result {
	t.Helper()
	res, err := powerOf(m, a.Process(), nil).Stop(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
	return res
}

func mustStart(t *testing.T, m *manifest.Cluster, a *awssim.AWS) cluster.Result {
	t.Helper()
	res, err := powerOf(m, a.Process(), nil).Start(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
	return res
}

// A cluster is stopped, and started again after longer than its join token is valid.
func TestStopAndStart(t *testing.T) {
	for file, want := range map[string]map[string]int{
		"three-zones.yaml":  {"stopped": 6},
		"machine-pool.yaml": {"stopped": 1},
		"bastion.yaml":      {"stopped": 3},
		"classic-elb.yaml":  {"stopped": 2},
		"eks-addons.yaml":   {},
	} {
		t.Run(file, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				time.Sleep(10 * time.Minute)
				before := instanceStates(a)
				time.Sleep(time.Hour)
				planned, err := powerOf(m, a.Process(), nil).PlanStop(t.Context())
				require.NoError(t, err)
				require.NotNil(t, planned.Cost)
				assert.Less(t, planned.Cost.After, planned.Cost.Before)
				assert.Positive(t, planned.Cost.After, "the network is still there")
				assert.Equal(t, before, instanceStates(a), "a plan changes nothing")

				res := mustStop(t, m, a)
				assert.Equal(t, enginetest.Steps(planned), enginetest.Steps(res.Plan))
				assert.Equal(t, want, instanceStates(a))
				res = mustStop(t, m, a)
				assert.True(t, res.Plan.Empty(), "%v", enginetest.Steps(res.Plan))

				time.Sleep(72 * time.Hour)
				var stopped *plan.StoppedError
				_, err = enginetest.Open(m, a.Process()).Plan(t.Context())
				require.ErrorAs(t, err, &stopped)
				writes := len(enginetest.Writes(a.Calls()))
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorAs(t, err, &stopped)
				assert.Contains(t, stopped.Error(), "cluster start "+m.Name)
				assert.Equal(t, want, instanceStates(a))
				for _, w := range enginetest.Writes(a.Calls())[writes:] {
					assert.Contains(t, w, "Parameter", "only the lock is written")
				}

				mustStart(t, m, a)
				assert.Equal(t, before, instanceStates(a))
				res = mustStart(t, m, a)
				assert.True(t, res.Plan.Empty(), "%v", enginetest.Steps(res.Plan))
				time.Sleep(10 * time.Minute)
				p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
				require.NoError(t, err)
				assert.True(t, p.Empty(), "%v", enginetest.Steps(p))
				enginetest.MustDelete(t, m, a)
			})
		})
	}
}

// The control plane is stopped after all workers, and starts before them.
func TestOrderOfStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 2)
		a := enginetest.Alive(t, m)
		calls := len(a.Calls())
		mustStop(t, m, a)
		mustStart(t, m, a)
		var order []string
		for _, c := range enginetest.Since(a, calls) {
			if c.Operation == "StopInstances" || c.Operation == "StartInstances" {
				order = append(order, c.Operation)
			}
		}
		assert.Equal(t, []string{"StopInstances", "StopInstances", "StartInstances", "StartInstances"}, order, "one call for the workers, one for the control plane")
		enginetest.RequireHealthy(t, a, 3, 2)
	})
}

// A stopped cluster can be deleted, also by name.
func TestDeleteOfStopped(t *testing.T) {
	for _, byName := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Sized(t, 1, 1)
			a := enginetest.Alive(t, m)
			mustStop(t, m, a)
			c := enginetest.Open(m, a.Process())
			if byName {
				c = enginetest.ByName(m.Name, a)
			}
			_, err := c.Delete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			assert.Empty(t, instanceStates(a))
			enginetest.MustApply(t, m, a)
		})
	}
}

// If something was lost while the cluster was stopped, "cluster start" starts its machines and fails. Another run then repairs the cluster, or says
// why it cannot.
func TestLossWhileStopped(t *testing.T) {
	deregister := func(s *awssim.State) {
		for _, g := range s.ELB.TargetGroups {
			g.Targets = []*elb.Target{}
		}
	}
	terminate := func(s *awssim.State) {
		for n := range 2 {
			i := enginetest.MachineOf(s, fmt.Sprintf("machine/three-zones-control-plane/%d", n))
			i.Terminating, i.Terminated = time.Now(), time.Now()
		}
	}
	for name, x := range map[string]struct {
		lose  func(*awssim.State)
		fails any // the error of create; nil for none
	}{
		"targets": {deregister, nil}, "the quorum": {terminate, new(*plan.LostQuorumError)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Sized(t, 3, 2)
				a := enginetest.Alive(t, m)
				time.Sleep(time.Hour)
				mustStop(t, m, a)
				a.Edit(x.lose)
				a.Inventory()
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.StoppedError))
				began := time.Now()
				_, err = powerOf(m, a.Process(), nil).Start(t.Context(), cluster.Options{})
				require.Error(t, err)
				if x.fails != nil { // and what cannot come is not waited for
					require.ErrorAs(t, err, new(*plan.NoQuorumError))
					require.Equal(t, plan.RepeatAfterChange, run.Repeats(err))
					require.Less(t, time.Since(began), 4*time.Minute)
				}
				time.Sleep(time.Hour)
				_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
				if x.fails != nil {
					require.ErrorAs(t, err, x.fails)
					return
				}
				require.NoError(t, err)
				enginetest.RequireHealthy(t, a, 3, 2)
				enginetest.RequireDone(t, m, a)
				mustStop(t, m, a)
				mustStart(t, m, a)
			})
		})
	}
}

// Somebody may start the machines of a stopped cluster with another tool.
func TestStartedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 2)
		a := enginetest.Alive(t, m)
		mustStop(t, m, a)
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				i.Stopped = time.Time{}
			}
		})
		a.Inventory()
		time.Sleep(10 * time.Minute)
		for range 2 {
			res, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.True(t, res.Plan.Empty(), "%v", enginetest.Steps(res.Plan))
		}
		mustStop(t, m, a)
	})
}

// What EC2 would not stop, or what might not start again, is found before the first write.
func TestStopIsRefused(t *testing.T) {
	for name, x := range map[string]struct {
		edit func(s *awssim.State)
		want string
	}{
		"spot": {func(s *awssim.State) { enginetest.MachineOf(s, "machine/three-zones-md-0/0").Spot = true }, "it is a Spot Instance of a one-time request"},
		"stop protection": {
			func(s *awssim.State) { enginetest.MachineOf(s, "machine/three-zones-md-0/0").StopProtected = true }, "--no-disable-api-stop turns it off",
		},
		"control plane with instance store": {
			func(s *awssim.State) {
				enginetest.MachineOf(s, "machine/three-zones-control-plane/0").Type = "m5d.large"
			}, "etcd may be there",
		},
		"a machine that is stopped": {
			func(s *awssim.State) {
				enginetest.MachineOf(s, "machine/three-zones-control-plane/0").Stopped = time.Now()
			}, "of the control plane is stopped",
		},
		"a machine that is lost": {
			func(s *awssim.State) {
				enginetest.MachineOf(s, "machine/three-zones-control-plane/0").Terminating = time.Now()
			}, "etcd is not healthy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Sized(t, 3, 2)
				a := enginetest.Alive(t, m)
				a.Edit(x.edit)
				time.Sleep(time.Minute)
				calls := len(a.Calls())
				_, err := powerOf(m, a.Process(), nil).Stop(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				assert.Contains(t, err.Error(), x.want)
				for _, c := range enginetest.Since(a, calls) {
					assert.NotEqual(t, "StopInstances", c.Operation)
				}
				_, err = powerOf(m, a.Process(), nil).PlanStop(t.Context())
				require.ErrorAs(t, err, new(*plan.RefusedError))
			})
		})
	}
}

// A run that is killed at any write is continued by the same command, and reversed by the other one.
func TestStopMayDie(t *testing.T) {
	m := enginetest.LoadQuick(t, "machine-pool.yaml")
	for _, reverse := range []bool{false, true} {
		for n := enginetest.First(2, 0); n < 120; n += enginetest.Stride(2) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				time.Sleep(10 * time.Minute)
				before := instanceStates(a)
				p := a.Process()
				err = enginetest.Spoilt(t, p, n, awssim.KillAfter, func(ctx context.Context) error {
					_, err := powerOf(m, p, nil).Stop(ctx, cluster.Options{})
					return err
				})
				if err == nil && !reverse {
					return
				}
				time.Sleep(2 * time.Minute)
				if !reverse {
					mustStop(t, m, a)
					assert.Equal(t, map[string]int{"stopped": 1}, instanceStates(a))
				}
				p = a.Process()
				if !reverse {
					_ = enginetest.Spoilt(t, p, n, awssim.KillAfter, func(ctx context.Context) error {
						_, err := powerOf(m, p, nil).Start(ctx, cluster.Options{})
						return err
					})
					time.Sleep(2 * time.Minute)
				}
				mustStart(t, m, a)
				assert.Equal(t, before, instanceStates(a), "killed at call %d", n)
				time.Sleep(10 * time.Minute)
				enginetest.RequireNoChange(t, m, a)
			})
		}
	}
}

// Public addresses and certificates are warned of.
func TestWarningsOfStop(t *testing.T) {
	m := enginetest.LoadQuick(t, "bastion.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		time.Sleep(310 * 24 * time.Hour)
		var warnings []string
		_, err = powerOf(m, a.Process(), &warnings).PlanStop(t.Context())
		require.NoError(t, err)
		all := strings.Join(warnings, "\n")
		assert.Contains(t, all, "will be other ones after a start, unless they are Elastic IP addresses")
		assert.Contains(t, all, "the certificates that kubeadm made on machine i-")
		assert.Contains(t, all, "back up the cluster before: 'clusterawsadm cluster backup bastion'")
	})
}

// A start waits for machines that are still stopping: EC2 starts only what is stopped ("Instance state changes", EC2 user guide). Until then, no
// advice names a command that EC2 refuses.
func TestStartWhileMachinesStop(t *testing.T) {
	m := enginetest.LoadQuick(t, "three-zones.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		var ids []string
		a.Edit(func(s *awssim.State) {
			for id := range s.EC2.Instances {
				ids = append(ids, id)
			}
		})
		_, err = ec2.NewFromConfig(a.Config()).StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: ids})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"stopping": 6}, instanceStates(a))
		_, err = enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "aws ec2 wait instance-stopped")
		calls := len(a.Calls())
		mustStart(t, m, a)
		for _, c := range a.Calls()[calls:] {
			require.True(t, c.Operation != "StartInstances" || c.Err == "", c.Err)
		}
		require.Equal(t, map[string]int{"running": 6}, instanceStates(a))
	})
}
