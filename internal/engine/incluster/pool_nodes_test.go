package incluster_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const poolNodes = "nodes/machine-pool-mp-0"

// leadNowhere changes the boot data of a pool so that its machines do not find the API server.
func leadNowhere(m *manifest.Cluster) {
	m.Pools[0].Bootstrap.Kubeadm.Spec.JoinConfiguration.Discovery.BootstrapToken = bootstrapv1.BootstrapTokenDiscovery{
		Token: "abcdef.0123456789abcdef", APIServerEndpoint: "nowhere.example.com:6443", UnsafeSkipCAVerification: aws.Bool(true),
	}
}

// readyInPool counts the ready Nodes of the machines of the pool.
func readyInPool(a *awssim.AWS) (n int) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			for _, o := range c.All("Node") {
				var node corev1.Node
				raw, _ := json.Marshal(o)
				_ = json.Unmarshal(raw, &node) // the simulator wrote it
				i := s.EC2.Instances[node.Spec.ProviderID[strings.LastIndexByte(node.Spec.ProviderID, '/')+1:]]
				if i == nil || i.Tags["aws:autoscaling:groupName"] == "" || !i.Terminating.IsZero() {
					continue
				}
				for _, x := range node.Status.Conditions {
					if x.Type == corev1.NodeReady && x.Status == corev1.ConditionTrue {
						n++
					}
				}
			}
		}
	})
	return n
}

// least watches the pool while a function runs, and returns the smallest number of ready Nodes.
func least(a *awssim.AWS, do func()) (n int) {
	stop, done := make(chan struct{}), make(chan struct{})
	n = readyInPool(a)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Second):
				n = min(n, readyInPool(a))
			}
		}
	}()
	do()
	close(stop)
	<-done
	return n
}

func operations(a *awssim.AWS, op string) (n int) {
	for _, c := range a.Calls() {
		if c.Operation == op && c.Err == "" {
			n++
		}
	}
	return n
}

// A run waits for the Nodes of a pool, and counts them.
func TestPoolsJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		a := enginetest.Account(m, enginetest.Lag)
		res, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Equal(t, 3, res.Nodes.Joined, "one of the control plane, two of the pool")
		p, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", enginetest.Steps(p))
		before := len(a.Calls())
		_, err = enginetest.Waiting(m, a.Process(), plan.NodesJoined).Plan(t.Context())
		require.NoError(t, err)
		with := len(enginetest.Since(a, before))
		before = len(a.Calls())
		_, err = enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
		require.NoError(t, err)
		assert.LessOrEqual(t, with, len(enginetest.Since(a, before)), "the Nodes of pools take no more calls")
	})
}

// A pool whose machines do not join is not ready: the run says why, as that of a machine, and so
// does the next one.
func TestPoolThatDoesNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		leadNowhere(m)
		a := enginetest.Account(m, enginetest.Lag)
		for range 2 {
			_, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			end := new(plan.TimeoutError)
			require.ErrorAs(t, err, &end)
			require.ErrorContains(t, err, poolNodes)
			require.ErrorContains(t, err, "gave up after 10m0s waiting for Nodes to become 2 of 2 joined, is 0 of 2 joined")
			assert.Contains(t, strings.Join(end.Findings, "\n"), "the console of i-")
			assert.Contains(t, strings.Join(end.Findings, "\n"), "kubeadm join")
		}
		target := cluster.Target{Config: a.Config(), Transport: enginetest.Transport(a.Process()), Wait: plan.NodesJoined, AskCluster: true}
		s, err := look.Status(t.Context(), run.Open(m, target))
		require.NoError(t, err)
		assert.False(t, s.Healthy())
		for _, r := range s.Resources {
			if r.Resource == poolNodes || r.Resource == "auto-scaling-group/machine-pool-mp-0" {
				assert.Equal(t, "pending", r.State, r.Resource)
				assert.Contains(t, r.Detail, "0 of 2 joined", r.Resource)
			}
		}
		byName := run.OpenByName(m.Name, cluster.Target{Config: a.Config(), Transport: enginetest.Transport(a.Process()), AskCluster: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = look.AwaitCondition(ctx, byName, cluster.ConditionJoined, nil)
		require.ErrorContains(t, err, "auto-scaling-group/machine-pool-mp-0 (0 of 2)")
	})
}

// fails runs an update whose new machines do not join.
func failsToReplace(t *testing.T, m *manifest.Cluster, a *awssim.AWS) *plan.TimeoutError {
	t.Helper()
	_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	end := new(plan.TimeoutError)
	require.ErrorAs(t, err, &end)
	require.ErrorContains(t, err, "auto-scaling-group/machine-pool-mp-0")
	return end
}

// An instance refresh ends with the first machines that do not join, and the next run goes on with
// a manifest that is corrected. There are never fewer ready Nodes than AWS's preferences allow.
func TestRefreshThatDoesNotJoin(t *testing.T) {
	for name, warmup := range map[string]int64{"after the warmup": 120, "within the warmup": 1200, "without a warmup": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, enginetest.MachinePool)
				m.Pools[0].Object.Spec.Replicas = aws.Int32(3)
				m.Pools[0].Scaling.Spec.RefreshPreferences.InstanceWarmup = &warmup
				a := enginetest.Alive(t, m)
				require.Equal(t, 3, readyInPool(a))
				leadNowhere(m)
				n := least(a, func() {
					end := failsToReplace(t, m, a)
					assert.Contains(t, strings.Join(end.Findings, "\n"), "kubeadm join")
					time.Sleep(30 * time.Minute) // AWS does not go on by itself
					_ = failsToReplace(t, m, a)  // nor does another run
				})
				assert.Equal(t, 2, n, "one machine at a time")
				assert.Equal(t, map[bool]int{true: 1}[warmup > 600], operations(a, "CancelInstanceRefresh"))
				assert.Equal(t, 1, operations(a, "StartInstanceRefresh"))

				m = enginetest.LoadQuick(t, enginetest.MachinePool)
				m.Pools[0].Object.Spec.Replicas = aws.Int32(3)
				m.Pools[0].Scaling.Spec.RefreshPreferences.InstanceWarmup = aws.Int64(60)
				m.Pools[0].Scaling.Spec.AWSLaunchTemplate.RootVolume.Size = 50
				n = least(a, func() {
					_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
					require.NoError(t, err)
				})
				assert.Equal(t, 2, n, "the machine without a Node is replaced first")
				time.Sleep(5 * time.Minute) // after the lifecycle hook of the last one
				assert.Equal(t, 3, readyInPool(a))
				enginetest.RequireDone(t, m, a)
			})
		})
	}
}

// A run that is killed at any call of a refresh that never joins leaves as many ready Nodes as the
// preferences allow, also if nobody looks for long, and the next run ends with the reason.
func TestRefreshThatDoesNotJoinMayDie(t *testing.T) {
	calls := 0
	for n := enginetest.First(19, 0); calls == 0 || n <= calls; n += enginetest.Stride(19) {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			a := enginetest.Alive(t, m)
			leadNowhere(m)
			p := a.Process()
			ready := least(a, func() {
				_ = enginetest.Spoilt(t, p, n, awssim.KillAfter, func(ctx context.Context) error {
					_, err := enginetest.Rolling(m, p).Apply(ctx, cluster.Options{})
					return err
				})
				if calls == 0 {
					whole := a.Process()
					_, _ = enginetest.Rolling(m, whole).Apply(t.Context(), cluster.Options{})
					calls = whole.Calls()
				}
				time.Sleep(30 * time.Minute)
				_ = failsToReplace(t, m, a)
			})
			require.Equal(t, 1, ready, "call %d", n)
		})
	}
}

// The version of a pool changes after that of the control plane: a kubelet may not be newer.
func TestPoolUpgradesAfterControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		a := enginetest.Alive(t, m)
		m = enginetest.LoadQuick(t, enginetest.MachinePool)
		m.ControlPlane.Object.Spec.Version, m.Version = "v1.35.0", "v1.35.0"
		m.Pools[0].Object.Spec.Template.Spec.Version = "v1.35.0"
		control := false
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			if told := enginetest.Tell(t); told != nil {
				told(e)
			}
			switch {
			case e.What == plan.Done && strings.HasPrefix(string(e.Resource), "node/machine-pool-control-plane/"):
				control = true
			case e.What == plan.Updating && strings.HasSuffix(string(e.Resource), "/machine-pool-mp-0"):
				assert.True(t, control, "%s before the control plane", e.Resource)
			}
		}})
		require.NoError(t, err)
		enginetest.RequireDone(t, m, a)
	})
}

// An autoscaler sets the number of machines: a new group starts with the replicas, as with CAPA, and
// later only what the group wants counts.
func TestPoolOfAnAutoscaler(t *testing.T) {
	for replicas, first := range map[int32]int32{2: 2, 0: 1, 9: 1} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
			m.Pools[0].Object.Spec.Replicas = &replicas
			a := enginetest.Account(m, enginetest.Lag)
			res, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			assert.Equal(t, first, poolOf(a, "machine-pool-mp-0").Desired)
			assert.Equal(t, int(first)+1, res.Nodes.Joined)
			a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired = 4 })
			res, err = enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			assert.Equal(t, 5, res.Nodes.Joined)
		})
	}
}

// A node group whose first nodes do not join fails: EKS waits for them, and says so.
func TestFirstNodesOfANodeGroupDoNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			if e.Resource.Kind() == "node-group" && e.What == plan.Waiting {
				doNotJoin(a)
			}
		}})
		require.ErrorContains(t, err, "AWS reports CREATE_FAILED: NodeCreationFailure: Instances failed to join the kubernetes cluster")
		enginetest.MustApply(t, m, a) // it is deleted and created again
		enginetest.RequireNoChange(t, m, a)
	})
}

// A pool that gets more machines is done when these have joined, too.
func TestMoreMachinesOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		a := enginetest.Account(m, enginetest.Lag)
		res, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		before := res.Nodes.Joined
		m.Pools[0].Object.Spec.Replicas = aws.Int32(*m.Pools[0].Object.Spec.Replicas + 1)
		res, err = enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, before+1, res.Nodes.Joined)
	})
}

// doNotJoin lets the nodes of node groups fail that have not joined.
func doNotJoin(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Tags["eks:nodegroup-name"] != "" && i.Boot == nil {
				i.JoinFails = 1
			}
		}
	})
}

// A node group that gets more nodes is ACTIVE before these have joined: the run waits for them.
func TestMoreNodesOfANodeGroupDoNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		m.Pools[0].Object.Spec.Replicas = aws.Int32(3)
		target := cluster.Target{Config: a.Config(), Owner: "test", Transport: enginetest.Transport(a.Process()), Wait: plan.NodesJoined, AskCluster: true}
		_, err := run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			if e.Resource.Kind() == "node-group" || e.Resource.Kind() == "nodes" {
				doNotJoin(a)
			}
		}})
		end := new(plan.TimeoutError)
		require.ErrorAs(t, err, &end)
		require.ErrorContains(t, err, "nodes/")
		assert.Contains(t, strings.Join(end.Findings, "\n"), "i-")
		s, err := look.Status(t.Context(), run.Open(m, target))
		require.NoError(t, err)
		for _, r := range s.Resources {
			if r.Resource.Kind() == "node-group" {
				assert.Equal(t, "pending", r.State)
				assert.Regexp(t, `^2 of 3 joined`, r.Detail)
			}
		}
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				if i.Boot != nil {
					i.Boot.Failed = ""
				}
			}
		})
		_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
	})
}

// A pool is replaced in as many parts as it takes.
func TestPoolInManyParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		m.Pools[0].Scaling.Spec.MaxSize, m.Pools[0].Object.Spec.Replicas = 9, aws.Int32(9)
		a := enginetest.Alive(t, m)
		m = enginetest.LoadQuick(t, enginetest.MachinePool)
		m.Pools[0].Scaling.Spec.MaxSize, m.Pools[0].Object.Spec.Replicas = 9, aws.Int32(9)
		m.Pools[0].Scaling.Spec.AWSLaunchTemplate.RootVolume.Size = 50
		n := least(a, func() {
			_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.NoError(t, err)
		})
		assert.GreaterOrEqual(t, n, 8)
		assert.Equal(t, 9, operations(a, "StartInstanceRefresh"))
		enginetest.RequireDone(t, m, a)
	})
}

// A pool without machines is ready.
func TestEmptyPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		m.Pools[0].Scaling.Spec.MinSize, m.Pools[0].Object.Spec.Replicas = 0, aws.Int32(0)
		a := enginetest.Account(m, enginetest.Lag)
		res, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, 1, res.Nodes.Joined)
	})
}

// A cluster whose pods run on Fargate has no machines that could join.
func TestFargateWithoutMachinesHasJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks-fargate.yaml"
		m := enginetest.LoadQuick(t, file)
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		byName := run.OpenByName(m.Name, cluster.Target{Config: a.Config(), Transport: enginetest.Transport(a.Process()), AskCluster: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, look.AwaitCondition(ctx, byName, cluster.ConditionJoined, nil))
	})
}
