package look_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestWaitForAPI creates a cluster and waits until its API server responds and its
// control plane has joined.
func TestWaitForAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "three-zones.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		began := time.Now()
		res, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.NotEmpty(t, res.Endpoint)
		t.Logf("api after %s", time.Since(began))
		p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
		require.NoError(t, err)
		for _, s := range p.Steps {
			assert.False(t, s.Does(), "%s: %s %v", s.Resource, s.Action, s.Diff)
		}
		assert.Equal(t, 3, p.CountKind("node", plan.Keep))
	})
}

// TestWaitForJoined creates a cluster without a pod network, and waits until all machines have
// joined. Meanwhile, a machine is shown as what its Node is.
func TestWaitForJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "quickstart.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		const worker, control = "machine/quickstart-md-0/0", "machine/quickstart-control-plane/0"
		shows := func(want map[plan.ID]string) (s cluster.Status) {
			t.Helper()
			for _, wait := range []plan.Wait{plan.NodesJoined, ""} {
				target := cluster.Target{Config: a.Process().Config(), Transport: enginetest.Transport(a.Process()), Wait: wait, AskCluster: true}
				c := run.Open(m, target)
				if wait == "" {
					c = run.OpenByName(m.Name, target)
				}
				var err error
				s, err = look.Status(t.Context(), c)
				require.NoError(t, err)
				for _, r := range s.Resources {
					if word, is := want[r.Resource]; is {
						assert.Contains(t, r.State+" "+r.Detail, word, "%s %q", r.Resource, wait)
					}
				}
			}
			return s
		}
		res, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Equal(t, cluster.Nodes{Joined: 1}, res.Nodes, "of the control plane")
		s := shows(map[plan.ID]string{control: "pending NotReady t3.large", worker: "pending not joined t3.large"})
		assert.Equal(t, cluster.APIReady, s.API.State)
		assert.Len(t, s.Nodes, 1)
		assert.False(t, s.Healthy())

		res, err = enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Equal(t, cluster.Nodes{Joined: 2}, res.Nodes)
		p, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, p.Empty())
		assert.Equal(t, 2, p.CountKind("node", plan.Keep))
		s = shows(map[plan.ID]string{control: "pending NotReady", worker: "pending NotReady"})
		assert.Equal(t, []string{"control-plane"}, s.Nodes[0].Roles)
		assert.False(t, s.Healthy())

		enginetest.AddNetwork(a)
		time.Sleep(5 * time.Minute)
		s = shows(map[plan.ID]string{control: "ok Ready t3.large", worker: "ok Ready t3.large"})
		assert.True(t, s.Nodes[1].Ready)
		assert.True(t, s.Healthy())

		a.Edit(func(s *awssim.State) { clear(s.Kubernetes) })
		s = shows(map[plan.ID]string{control: "ok running t3.large", worker: "ok running t3.large"})
		assert.Equal(t, cluster.APIUnavailable, s.API.State)
		assert.NotEmpty(t, s.API.Detail)
		assert.Empty(t, s.Nodes)
		assert.False(t, s.Healthy(), "nobody can say that its Nodes are")
	})
}

// TestJoinedFailsWithoutWorker checks that a worker that does not join fails a run that waits
// for it, and not one that waits for the control plane.
func TestJoinedFailsWithoutWorker(t *testing.T) {
	for wait, fails := range map[plan.Wait]bool{plan.APIServer: false, plan.NodesJoined: true} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, "quickstart.yaml", nil)
			a := enginetest.Account(m, enginetest.Lag)
			_, err := enginetest.Waiting(m, a.Process(), wait).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
				if e.Resource == "machine/quickstart-md-0/0" && e.What == plan.Done {
					a.Edit(func(s *awssim.State) {
						for _, i := range s.EC2.Instances {
							if i.ID == e.CloudID {
								i.Boot = &awssim.Boot{At: i.Running, Failed: "kubeadm: command not found"}
							}
						}
					})
				}
			}})
			if !fails {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(*plan.HalfwayError))
			assert.ErrorContains(t, err, "node/quickstart-md-0/0")
		})
	}
}

// TestWaitForNodes creates a cluster while somebody installs a pod network, and waits
// until all Nodes are ready.
func TestWaitForNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "three-zones.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		began := time.Now()
		go func() {
			time.Sleep(8 * time.Minute)
			enginetest.AddNetwork(a)
		}()
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Greater(t, time.Since(began), 8*time.Minute)
		assert.Less(t, time.Since(began), 9*time.Minute)
		_, err = enginetest.Waiting(m, a.Process(), plan.NodesReady).Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { assert.Empty(t, s.Kubernetes) })
	})
}

// TestAwaitCondition waits in one process for a cluster that another one creates and deletes.
func TestAwaitCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "quickstart.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		ran := make(chan error, 1)
		go func() {
			_, err := enginetest.Waiting(m, a.Process(), plan.Infrastructure).Apply(t.Context(), cluster.Options{})
			ran <- err
		}()
		target := cluster.Target{Config: a.Process().Config(), Transport: enginetest.Transport(a.Process()), Wait: plan.NodesJoined, AskCluster: true}
		for _, c := range []*run.Cluster{run.Open(m, target), run.OpenByName(m.Name, target)} {
			var told []string
			tell := func(missing string) { told = append(told, missing) }
			require.NoError(t, look.AwaitCondition(t.Context(), c, cluster.ConditionAPI, tell))
			require.NoError(t, look.AwaitCondition(t.Context(), c, cluster.ConditionJoined, tell))
			s, err := look.Status(t.Context(), c)
			require.NoError(t, err)
			assert.Len(t, s.Nodes, 2)
			t.Log(told)
		}
		require.NoError(t, <-ran)

		c := run.OpenByName(m.Name, target)
		limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		err := look.AwaitCondition(limited, c, cluster.ConditionReady, nil)
		var late *plan.TimeoutError
		require.ErrorAs(t, err, &late)
		assert.Regexp(t, `^ready: not ready: ip-\S+, ip-\S+$`, late.Awaited.Error())
		require.Len(t, late.Findings, 2)
		assert.Regexp(t, `^node ip-\S+ is not ready: .*cni`, late.Findings[0])
		enginetest.AddNetwork(a)
		require.NoError(t, look.AwaitCondition(t.Context(), c, cluster.ConditionReady, nil))

		go func() {
			_, err := enginetest.Waiting(m, a.Process(), plan.Infrastructure).Delete(t.Context(), cluster.Options{})
			ran <- err
		}()
		require.NoError(t, look.AwaitCondition(t.Context(), c, cluster.ConditionDeleted, nil))
		require.NoError(t, <-ran)
	})
}

// A wait for a ready cluster does not end while pods of add-ons do not run, and its error says why they do not.
func TestAwaitPods(t *testing.T) {
	for image, want := range map[string]struct {
		awaited string
		byName  bool // the command knows of it without the manifest
	}{
		"registry.k8s.io/coredns/coredns:v1.12.1":                       {"Deployment kube-system/coredns", true},
		"registry.k8s.io/provider-aws/cloud-controller-manager:v1.34.0": {"DaemonSet kube-system/aws-cloud-controller-manager", false},
	} {
		t.Run(want.awaited, func(t *testing.T) {
			m := enginetest.LoadQuick(t, "resource-sets.yaml")
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.NodesReady).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = map[string]string{image: kubesim.Unpullable} })
				target := cluster.Target{Config: a.Process().Config(), Transport: enginetest.Transport(a.Process()), AskCluster: true}
				for name, c := range map[string]*run.Cluster{"manifest": run.Open(m, target), "name": run.OpenByName(m.Name, target)} {
					limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					require.NoError(t, look.AwaitCondition(limited, c, cluster.ConditionJoined, nil))
					err := look.AwaitCondition(limited, c, cluster.ConditionReady, nil)
					cancel()
					if name == "name" && !want.byName {
						require.NoError(t, err)
						continue
					}
					var late *plan.TimeoutError
					require.ErrorAs(t, err, &late, name)
					assert.Equal(t, "ready: not ready: "+want.awaited, late.Awaited.Error())
					require.Len(t, late.Findings, 1)
					assert.Contains(t, late.Findings[0], want.awaited+" cannot pull the image "+image)
				}
				enginetest.Inside(a, func(c *kubesim.Cluster) { c.Broken = nil })
				require.NoError(t, look.AwaitCondition(t.Context(), run.Open(m, target), cluster.ConditionReady, nil))
			})
		})
	}
}

// A name that no cluster has is not waited for longer than another process may need to create its first
// resource.
func TestAwaitNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: "us-east-1"})
		c := run.OpenByName("nope", cluster.Target{Config: a.Process().Config()})
		began := time.Now()
		require.ErrorIs(t, look.AwaitCondition(t.Context(), c, cluster.ConditionReady, nil), cluster.ErrNotFound)
		assert.InDelta(t, time.Minute.Seconds(), time.Since(began).Seconds(), 15)
		require.NoError(t, look.AwaitCondition(t.Context(), c, cluster.ConditionDeleted, nil))
		_, err := look.Kubeconfig(t.Context(), c, cluster.KubeconfigOptions{})
		require.ErrorIs(t, err, cluster.ErrNotFound)
	})
}

// TestAwaitConditionSaysWhy waits for a worker that cannot boot.
func TestAwaitConditionSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "quickstart.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			if e.Resource == "machine/quickstart-md-0/0" && e.What == plan.Done {
				a.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Instances {
						if i.ID == e.CloudID {
							i.Boot = &awssim.Boot{At: i.Running, Failed: "kubeadm: command not found"}
						}
					}
				})
			}
		}})
		require.NoError(t, err)
		target := cluster.Target{Config: a.Process().Config(), Transport: enginetest.Transport(a.Process()), AskCluster: true}
		limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var late *plan.TimeoutError
		require.ErrorAs(t, look.AwaitCondition(limited, run.OpenByName(m.Name, target), cluster.ConditionJoined, nil), &late)
		assert.Equal(t, "joined: not joined: machine/quickstart-md-0/0", late.Awaited.Error())
		assert.Contains(t, strings.Join(late.Findings, "\n"), "has no kubeadm: use one made for Cluster API")
	})
}
