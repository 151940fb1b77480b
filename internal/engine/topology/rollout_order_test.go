package topology_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestRolloutOfWorkers changes the type of workers: each is replaced by a new one, one at
// a time.
func TestRolloutOfWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "three-zones.yaml", nil)
		a := enginetest.Alive(t, m)
		m = enginetest.Load(t, "three-zones.yaml", nil)
		m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		requireReplaced(t, a, m, "made from another template", 3)
	})
}

// order watches an upgrade: no worker has the new version before the control plane and
// kube-proxy have it, and the numbers of machines and Nodes are within the limits of the
// manifest.
type order struct {
	*enginetest.Witness
	control, workers int // desired numbers
}

func (o *order) observe(e plan.Event) {
	o.Observe(e)
	o.A.Edit(func(s *awssim.State) {
		count := map[string]int{}
		for _, i := range s.EC2.Instances {
			if i.Terminating.IsZero() {
				count[i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"]]++
			}
		}
		assert.LessOrEqual(o.T, count["control-plane"], o.control+1, "%s %s", e.What, e.Resource)
		assert.GreaterOrEqual(o.T, count["control-plane"], o.control, "%s %s", e.What, e.Resource)
		assert.LessOrEqual(o.T, count["node"], o.workers+1, "%s %s", e.What, e.Resource)
		assert.GreaterOrEqual(o.T, count["node"], o.workers, "%s %s", e.What, e.Resource)
	})
	control, workers := serving(o.A)
	assert.GreaterOrEqual(o.T, control, o.control, "%s %s: API servers behind the load balancer", e.What, e.Resource)
	assert.GreaterOrEqual(o.T, workers, o.workers, "%s %s: nodes that take pods", e.What, e.Resource)
	enginetest.Inside(o.A, func(c *kubesim.Cluster) {
		versions := map[bool][]string{}
		for path, node := range c.Objects {
			if strings.HasPrefix(path, "/api/v1/nodes/") {
				labels, _ := node["metadata"].(kubesim.Object)["labels"].(kubesim.Object)
				info, _ := node["status"].(kubesim.Object)["nodeInfo"].(kubesim.Object)
				_, control := labels["node-role.kubernetes.io/control-plane"]
				versions[control] = append(versions[control], fmt.Sprint(info["kubeletVersion"]))
			}
		}
		if slices.Contains(versions[false], "v1.34.2") {
			assert.NotContains(o.T, versions[true], "v1.33.0", "%s %s: a kubelet is newer than an API server", e.What, e.Resource)
		}
	})
}

// TestUpgrade upgrades a cluster to the next minor version: the control plane first, one
// machine at a time, then kube-proxy, then the workers. Whichever call is the last of a
// process, the next one continues.
func TestUpgrade(t *testing.T) {
	account, later := upgradable(t)
	calls := upgraded(t, account, later, 0, awssim.None)
	deaths := 2
	if enginetest.Sweeping() {
		deaths = 12
	}
	for n := 5; n < calls; n += 1 + calls/deaths {
		for _, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter} {
			t.Run(fmt.Sprint(n, " ", fault), func(t *testing.T) {
				t.Parallel()
				upgraded(t, account, later, n, fault)
			})
		}
	}
}

// upgradable is a saved living cluster of an older version.
func upgradable(t *testing.T) (account []byte, later time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 3, 2), "v1.33.0"))
		enginetest.RequireVersion(t, a, "v1.33.0")
		var w bytes.Buffer
		require.NoError(t, a.Save(&w))
		account, later = w.Bytes(), time.Since(began)
	})
	return account, later
}

// upgraded upgrades a cluster in a run whose n-th call fails, and runs again; it returns
// the number of calls.
func upgraded(t *testing.T, account []byte, later time.Duration, n int, fault awssim.Fault) (calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(later)
		m := enginetest.Version(enginetest.Sized(t, 3, 2), "v1.34.2")
		a, err := awssim.Load(bytes.NewReader(account), awssim.Options{Region: m.Region, Lag: enginetest.Lag})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := a.Process()
		p.Fault = enginetest.Only(n, fault)
		p.Killed = cancel
		watch := &order{&enginetest.Witness{T: t, A: a}, 3, 2}
		_, err = enginetest.Rolling(m, p).Apply(ctx, cluster.Options{Observe: watch.observe})
		calls = p.Calls()
		if n > 0 {
			_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: watch.observe})
		}
		require.NoError(t, err, "call %d", n)
		enginetest.RequireHealthy(t, a, 3, 2)
		enginetest.RequireVersion(t, a, "v1.34.2")
		again, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, again.Empty(), "call %d: %v", n, enginetest.Steps(again))
	})
	return calls
}

// TestLostControlPlane replaces a machine of the control plane that somebody has
// terminated: its etcd member is removed before another one joins.
func TestLostControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 3, 2)
		a := enginetest.Alive(t, m)
		enginetest.Lose(a, "machine/three-zones-control-plane/1")
		res, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		require.Equal(t, 1, res.Plan.CountKind("etcd-members", plan.Update))
		enginetest.RequireHealthy(t, a, 3, 2)
		enginetest.RequireDone(t, m, a)
	})
}

// TestLostControlPlaneInUpgrade loses a machine of the control plane right before an
// upgrade: its etcd member is removed before the first new machine joins.
func TestLostControlPlaneInUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 3, 1), "v1.33.0"))
		enginetest.Lose(a, "machine/three-zones-control-plane/1")
		m := enginetest.Version(enginetest.Sized(t, 3, 1), "v1.34.2")
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 3, 1)
		enginetest.RequireVersion(t, a, "v1.34.2")
		enginetest.RequireDone(t, m, a)
	})
}

// TestSkippedMinor: an upgrade by two minor versions at once, and a downgrade, are
// refused before the first write.
func TestSkippedMinor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 1, 1), "v1.32.4"))
		for to, why := range map[string]string{"v1.34.2": "one minor version at a time: the next one is v1.33", "v1.31.0": "never downgraded: set spec.version back to v1.32.4"} {
			calls := len(a.Calls())
			_, err := enginetest.Rolling(enginetest.Version(enginetest.Sized(t, 1, 1), to), a.Process()).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, why)
			require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
		}
	})
}

// TestStrategies replaces workers by the strategy of their MachineDeployment.
func TestStrategies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 3))
		changed := func(edit func(*clusterv1.MachineDeployment)) *manifest.Cluster {
			m := enginetest.Sized(t, 1, 3)
			m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
			edit(m.Deployments[0].Object)
			return m
		}
		p, err := enginetest.Rolling(changed(func(d *clusterv1.MachineDeployment) {
			d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
		}), a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, p.Empty(), "with OnDelete nobody is replaced: %v", enginetest.Steps(p))
		for surge, peak := range map[int32]int{0: 3, 3: 6} {
			most, few := intstr.FromInt32(surge), intstr.FromString("40%")
			m := changed(func(d *clusterv1.MachineDeployment) {
				d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = &most
				d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = &few
			})
			m.Deployments[0].Template.Spec.Template.Spec.InstanceType = map[int32]string{0: "m5.large", 3: "m5.xlarge"}[surge]
			highest := 0
			_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(plan.Event) {
				a.Edit(func(s *awssim.State) {
					n := 0
					for _, i := range s.EC2.Instances {
						if i.Terminating.IsZero() && i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "node" {
							n++
						}
					}
					highest = max(highest, n)
					assert.GreaterOrEqual(t, n, 2, "40% of 3, rounded down, may be missing")
				})
			}})
			require.NoError(t, err)
			assert.Equal(t, peak, highest)
		}
	})
}
