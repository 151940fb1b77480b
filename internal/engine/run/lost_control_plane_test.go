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

// loseAll terminates all machines of the control plane.
func loseAll(a *awssim.AWS, takes time.Duration) (ids []string) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "control-plane" && i.Terminating.IsZero() {
				i.Terminating, i.Terminated = time.Now(), time.Now().Add(takes)
				ids = append(ids, i.ID)
			}
		}
	})
	a.Inventory()
	return ids
}

// A run does not begin a second, empty cluster when all machines of the control plane are gone: neither
// while they are being terminated, nor after that, nor when AWS does not show them any more.
func TestLostControlPlaneIsRefused(t *testing.T) {
	for _, x := range []struct {
		name   string
		planes int32
		wait   time.Duration
		knows  bool // AWS shows the machines
	}{
		{"being terminated", 3, 0, true}, {"terminated", 3, 3 * time.Minute, true}, {"forgotten", 3, 2 * time.Hour, false}, {"one of one", 1, 3 * time.Minute, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Sized(t, x.planes, 1)
				a := enginetest.Alive(t, m)
				ids := loseAll(a, time.Minute)
				time.Sleep(x.wait)
				calls := len(a.Calls())
				_, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
				require.ErrorAs(t, err, new(*plan.RefusedError))
				res, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.Zero(t, res.Writes)
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				require.ErrorContains(t, err, "the control plane is lost: /clusterawsadm/three-zones/init says that the cluster was begun")
				require.ErrorContains(t, err, "cluster backup three-zones")
				require.ErrorContains(t, err, "--new-etcd=three-zones")
				for _, id := range ids {
					if x.knows {
						require.ErrorContains(t, err, id+" (three-zones-control-plane-")
					}
				}
				if !x.knows {
					require.ErrorContains(t, err, "AWS does not show it any more")
				}
				enginetest.MustDeleteAll(t, m, a)
			})
		})
	}
}

// newEtcd returns the cluster for a process that may begin a new etcd.
func newEtcd(t *testing.T, planes int32, p *awssim.Process, warn func(string)) *run.Cluster {
	t.Helper()
	target := enginetest.RollingTarget(p)
	target.NewEtcd, target.Warn = "three-zones", warn
	return run.Open(enginetest.Sized(t, planes, 2), target)
}

// With the name of the cluster, a run begins a new etcd, and replaces the workers, which do not join
// it. The next run has nothing to do.
func TestNewEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 2)
		a := enginetest.Alive(t, m)
		loseAll(a, time.Minute)
		time.Sleep(2 * time.Minute)
		var old []string
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				if i.Terminating.IsZero() {
					old = append(old, i.ID)
				}
			}
		})
		var warnings []string
		_, err := newEtcd(t, 3, a.Process(), func(text string) { warnings = append(warnings, text) }).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			if e.Resource == "api-server" && e.What == plan.Done {
				enginetest.AddNetwork(a) // the new cluster has none yet
			}
			if tell := enginetest.Tell(t); tell != nil {
				tell(e)
			}
		}})
		require.NoError(t, err)
		assert.Contains(t, strings.Join(warnings, "\n"), "all objects of the cluster are lost, except for the add-ons of the manifest")
		assert.Contains(
			t,
			strings.Join(warnings, "\n"),
			"2 workers are of the lost cluster: their kubelets do not register again, and stop their pods; the run replaces them",
		)
		a.Edit(func(s *awssim.State) {
			for _, id := range old {
				if i := s.EC2.Instances[id]; i != nil && i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "node" {
					assert.False(t, i.Terminating.IsZero(), "%s is of the lost cluster", id)
				}
			}
		})
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			assert.Len(t, c.Members, 3)
			assert.Len(t, c.All("Node"), 5)
		})
		enginetest.RequireDone(t, m, a)
		_, err = newEtcd(t, 3, a.Process(), nil).Plan(t.Context())
		require.NoError(t, err, "the same command again")
		enginetest.Lose(a, "machine/three-zones-control-plane/0") // the first machine of the new etcd: its replacement joins
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.RequireDone(t, m, a)
	})
}

// A cluster that has its control plane keeps its etcd.
func TestNewEtcdOfALivingClusterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 3, 2))
		_, err := newEtcd(t, 3, a.Process(), nil).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "the cluster has not lost its control plane (i-")
		target := enginetest.RollingTarget(a.Process())
		target.NewEtcd = "other"
		_, err = run.Open(enginetest.Sized(t, 3, 2), target).Plan(t.Context())
		require.ErrorContains(t, err, "--new-etcd names the cluster other, and this one is three-zones")
	})
}

// A machine of the control plane that AWS does not show yet, or that has lost its tags, is not lost.
func TestHiddenControlPlaneIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 1, 1)
		a := enginetest.Alive(t, m)
		var id string
		a.Edit(func(s *awssim.State) {
			i := enginetest.MachineOf(s, "machine/three-zones-control-plane/0")
			id, i.Born = i.ID, time.Now().Add(20*time.Second)
		})
		enginetest.RequireDone(t, m, a)
		a.Edit(func(s *awssim.State) {
			i := s.EC2.Instances[id]
			i.Tags = map[string]string{"Name": "renamed"}
		})
		_, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, id)
		require.ErrorContains(t, err, "aws ec2 create-tags --resources "+id)
		require.NotContains(t, err.Error(), "--new-etcd")
	})
}

// Without a quorum, a run is refused before it launches machines that cannot join. It names what is lost
// and what is left, and does not propose to terminate a stopped machine whose data is needed.
func TestLostQuorumIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 2)
		a := enginetest.Alive(t, m)
		time.Sleep(time.Hour)
		var ids []string
		for n := range 2 {
			enginetest.Terminate(a, fmt.Sprintf("machine/three-zones-control-plane/%d", n), time.Minute)
		}
		a.Edit(func(s *awssim.State) {
			for n := range 3 {
				ids = append(ids, enginetest.MachineOf(s, fmt.Sprintf("machine/three-zones-control-plane/%d", n)).ID)
			}
		})
		calls := len(a.Calls())
		var warnings []string
		target := enginetest.RollingTarget(a.Process())
		target.Warn = func(text string) { warnings = append(warnings, text) }
		res, err := run.Open(m, target).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		lost := new(plan.LostQuorumError)
		require.ErrorAs(t, err, &lost)
		require.Zero(t, res.Writes)
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
		assert.Equal(t, 3, lost.Members)
		assert.Equal(t, ids[2], lost.Left[0].ID)
		assert.Len(t, lost.Lost, 2)
		require.ErrorContains(t, err, "Do not terminate another machine of the control plane")
		require.ErrorContains(t, err, "--force-new-cluster")
		require.ErrorContains(t, err, "cluster backup three-zones")
		assert.Contains(
			t,
			strings.Join(warnings, "\n"),
			"machines of the control plane are missing, and the API server does not answer (it answers with 500 Internal Server Error)",
		)

		a.Edit(func(s *awssim.State) { s.EC2.Instances[ids[2]].Stopped = time.Now() })
		a.Inventory()
		_, err = enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "aws ec2 start-instances --instance-ids "+ids[2])
		require.NotContains(t, err.Error(), "or terminate it")
	})
}

// The only machine of the control plane has all data: it is not replaced while it is stopped.
func TestStoppedOnlyControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 1, 1)
		a := enginetest.Alive(t, m)
		a.Edit(func(s *awssim.State) {
			enginetest.MachineOf(s, "machine/three-zones-control-plane/0").Stopped = time.Now()
		})
		_, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.LostQuorumError))
		require.ErrorContains(t, err, "etcd needs its only member")
		_, err = enginetest.Open(m, a.Process()).Plan(t.Context()) // it does not use the API server
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "do not terminate it: without its data, etcd cannot have a quorum any more")
	})
}

// An API server that answers within a minute, such as after a reboot, is no sign of a lost quorum.
func TestQuorumComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 2)
		a := enginetest.Alive(t, m)
		time.Sleep(time.Hour)
		enginetest.Terminate(a, "machine/three-zones-control-plane/0", time.Minute)
		var second string
		enginetest.Inside(a, func(c *kubesim.Cluster) { second = c.Members[1].Name; c.Hang(time.Now(), second) })
		time.AfterFunc(30*time.Second, func() {
			enginetest.Inside(a, func(c *kubesim.Cluster) { c.Resume(time.Now(), second) })
		})
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 3, 2)
	})
}

// A stopped machine of the control plane is not replaced: etcd gets no new member while one does not answer. The plan says so.
func TestStoppedAndOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 3, 1))
		time.Sleep(time.Hour)
		var id string
		a.Edit(func(s *awssim.State) {
			i := enginetest.MachineOf(s, "machine/three-zones-control-plane/1")
			i.Stopped, id = time.Now(), i.ID
		})
		a.Inventory()
		m := enginetest.Sized(t, 3, 1)
		m.ControlPlane.Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		want := "it is stopped, and etcd gets no other member before it answers: start it with 'aws ec2 start-instances --instance-ids " + id +
			"'; or terminate it, and the next run launches another machine"
		_, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, want)
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))

		enginetest.Terminate(a, "machine/three-zones-control-plane/1", time.Minute)
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 3, 1)
	})
}

// neverJoins lets all attempts to join fail on machines that were launched in the last ten minutes.
func neverJoins(s *awssim.State) {
	for _, i := range s.EC2.Instances {
		if time.Since(i.Born) < 10*time.Minute {
			i.JoinFails = 1000
		}
	}
}

// A quorum is reported as lost even if the machines that are left are young, once a run has found the control plane ready. The advice depends
// on which machines have data.
func TestLostQuorumOfYoungMachines(t *testing.T) {
	const original = "Do not terminate another machine of the control plane"
	for name, x := range map[string]struct {
		age     time.Duration // of the cluster when it loses machines
		lost    []int         // that are lost at once, with a replacement that never joins for the first
		replace bool
		after   time.Duration // until the others are lost
		rest    []int
		advice  string
	}{
		"two of three, minutes after the creation":     {age: time.Minute, lost: []int{0, 1}, advice: original},
		"the first and the third":                      {age: 3 * time.Minute, lost: []int{0, 2}, advice: original},
		"all but a replacement that has never joined":  {age: time.Hour, lost: []int{2}, replace: true, after: time.Minute, rest: []int{0, 1}, advice: "aws ec2 terminate-instances --instance-ids i-"},
		"a replacement that did not join in two hours": {age: time.Hour, lost: []int{2}, replace: true, after: 2 * time.Hour, rest: []int{0, 1}, advice: "--new-etcd=three-zones"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Sized(t, 3, 1)
				a := enginetest.Alive(t, m)
				time.Sleep(x.age)
				for _, n := range x.lost {
					enginetest.Terminate(a, fmt.Sprintf("machine/three-zones-control-plane/%d", n), time.Minute)
				}
				if x.replace {
					_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
						if strings.HasPrefix(string(e.Resource), "machine/three-zones-control-plane/") && e.What == plan.Done {
							a.Edit(neverJoins)
						}
					}})
					require.Error(t, err)
				}
				time.Sleep(x.after)
				for _, n := range x.rest {
					enginetest.Terminate(a, fmt.Sprintf("machine/three-zones-control-plane/%d", n), time.Minute)
				}
				calls, began := len(a.Calls()), time.Now()
				_, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
				require.ErrorAs(t, err, new(*plan.LostQuorumError))
				require.ErrorContains(t, err, x.advice)
				_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, x.advice)
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				require.Less(t, time.Since(began), 4*time.Minute)
			})
		})
	}
}
