package topology_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// draining returns the cluster for a new process that drains Nodes.
func draining(m *manifest.Cluster, p *awssim.Process) *run.Cluster {
	return run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Drain: true})
}

// living returns an account with a cluster of 3 control planes and 3 workers that have
// joined and are ready, with pods of a Deployment on its workers.
func living(t *testing.T, control, workers int32, ccm bool) *awssim.AWS {
	t.Helper()
	m := enginetest.Sized(t, control, workers)
	a := enginetest.Account(m, enginetest.Lag)
	enginetest.Prepare(t, a, m)
	enginetest.MustApply(t, m, a)
	time.Sleep(5 * time.Minute)
	enginetest.AddNetwork(a)
	if !ccm {
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			delete(c.Objects, "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-cloud-controller-manager")
		})
	}
	time.Sleep(time.Minute)
	a.Inventory()
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		now := time.Now()
		c.Settle(now)
		for path, o := range c.Objects { // without a cloud controller manager, the test removes the taint
			if strings.HasPrefix(path, "/api/v1/nodes/") && !ccm {
				spec, _ := o["spec"].(kubesim.Object)
				taints, _ := spec["taints"].([]any)
				spec["taints"] = slices.DeleteFunc(taints, func(x any) bool { return strings.Contains(fmt.Sprint(x), "uninitialized") })
			}
		}
	})
	enginetest.AddPods(a)
	return a
}

// budget adds a PodDisruptionBudget with minAvailable to the Deployment.
func budget(a *awssim.AWS, least int) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		c.Put(time.Now(), kubesim.Object{
			"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": kubesim.Object{"name": "web-budget", "namespace": "default"},
			"spec": kubesim.Object{"minAvailable": float64(least), "selector": kubesim.Object{"matchLabels": kubesim.Object{"app": "web"}}},
		})
	})
}

// TestScaleDown removes workers and machines of the control plane from a living cluster,
// with and without a cloud controller manager.
func TestScaleDownInGoodOrder(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		t.Run(fmt.Sprint("ccm=", ccm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := living(t, 3, 3, ccm)
				enginetest.RequireHealthy(t, a, 3, 3)
				budget(a, 5) // one at a time
				w := &enginetest.Witness{T: t, A: a}
				m := enginetest.Sized(t, 1, 1)
				_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: w.Observe})
				require.NoError(t, err)
				time.Sleep(time.Minute)
				a.Inventory()
				enginetest.RequireHealthy(t, a, 1, 1)
				assert.Contains(t, strings.Join(w.Events, "\n"), "the disruption budget web-budget needs 5 healthy pods and has 5 currently")
				p, err := draining(m, a.Process()).Plan(t.Context())
				require.NoError(t, err)
				for _, s := range p.Steps {
					require.False(t, s.Does(), "%s: %s %v", s.Resource, s.Action, s.Diff)
				}
			})
		})
	}
}

// A budget that permits no eviction stops the run halfway, and is reported; after it is
// deleted, the next run continues.
func TestBudgetThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		budget(a, 6)
		m := enginetest.Sized(t, 1, 1)
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "drain/three-zones-md-0/1/")
		require.ErrorContains(t, err, "default/web-")
		require.ErrorContains(t, err, "the disruption budget web-budget needs 6 healthy pods and has 6 currently")
		require.ErrorAs(t, err, new(*plan.HalfwayError))
		require.Len(t, enginetest.NodeNames(a), 3)
		budget(a, 1)
		_, err = draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		a.Inventory()
		enginetest.RequireHealthy(t, a, 1, 1)
	})
}

// nodeDrainTimeout ends the wait, counted from when the Node was cordoned, also by an
// earlier run.
func TestDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		budget(a, 6)
		m := enginetest.Sized(t, 1, 1)
		limit := int32(20 * 60)
		m.Deployments[0].Object.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = &limit
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
		defer cancel()
		_, err := draining(m, a.Process()).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
		require.Error(t, err)
		began := time.Now()
		w := &enginetest.Witness{T: t, A: a}
		_, err = draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: w.Observe})
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 12*time.Minute)
		assert.Greater(t, time.Since(began), 7*time.Minute)
		assert.Contains(t, strings.Join(w.Events, "\n"), "the pods that remain after nodeDrainTimeout (20m0s): default/web-")
		require.Len(t, enginetest.NodeNames(a), 2)
	})
}

// Machines wait until the volumes of their pods are detached, up to the limit in the
// manifest.
func TestVolumesAreDetached(t *testing.T) {
	attach := func(a *awssim.AWS, pod string) {
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for path, o := range c.Objects {
				if strings.HasPrefix(path, "/api/v1/namespaces/default/pods/web") {
					node := o["spec"].(kubesim.Object)["nodeName"]
					name := strings.TrimPrefix(path, "/api/v1/namespaces/default/pods/")
					meta := kubesim.Object{"name": "csi-" + name, "annotations": kubesim.Object{"kubesim/pod": pod + name}}
					c.Put(time.Now(), kubesim.Object{
						"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": meta,
						"spec": kubesim.Object{"nodeName": node, "source": kubesim.Object{"persistentVolumeName": "pv-" + name}},
					})
					if pod == "" {
						delete(meta, "annotations") // it is never detached
					}
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		attach(a, "default/")
		w := &enginetest.Witness{T: t, A: a}
		_, err := draining(enginetest.Sized(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: w.Observe})
		require.NoError(t, err)
		assert.Contains(t, strings.Join(w.Events, "\n"), "to be detached: pv-web-")
		require.Len(t, enginetest.NodeNames(a), 2)
	})
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		attach(a, "")
		m := enginetest.Sized(t, 1, 1)
		limit := int32(120)
		m.Deployments[0].Object.Spec.Template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = &limit
		began := time.Now()
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Greater(t, time.Since(began), 2*time.Minute)
		require.Len(t, enginetest.NodeNames(a), 2)
	})
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		attach(a, "")
		m := enginetest.Sized(t, 1, 1)
		m.Deployments[0].Object.Spec.Template.Annotations = map[string]string{clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
		began := time.Now()
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 3*time.Minute)
		require.Len(t, enginetest.NodeNames(a), 2)
	})
}

// If no API server responds, nothing is terminated, and the error names the flags that do
// not need it.
func TestDrainWithoutAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 3, 1, true)
		enginetest.Inside(a, func(c *kubesim.Cluster) { // two of three are terminated
			for _, m := range c.Members[:2] {
				m.Gone = true
			}
		})
		m := enginetest.Sized(t, 1, 1)
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "the API server: it answers with 500")
		require.ErrorContains(t, err, "--drain=false")
		require.Len(t, enginetest.NodeNames(a), 4)
		enginetest.MustApply(t, m, a) // without the API server
		enginetest.MustDelete(t, m, a)
	})
}

// A member that etcd needs for its quorum stays, and so does its machine.
func TestQuorumIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 3, 1, true)
		m := enginetest.Sized(t, 2, 1)
		var goes, ill string
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				if i.Tags["clusterawsadm/resource"] == "machine/three-zones-control-plane/2" {
					goes = i.Boot.Node
				}
			}
		})
		enginetest.Inside(a, func(c *kubesim.Cluster) { // one is unhealthy: without another one there is no quorum
			sick := c.Members[slices.IndexFunc(c.Members, func(m *kubesim.Member) bool { return m.Name != goes })]
			ill, sick.Gone = sick.Name, true
			c.Objects["/api/v1/namespaces/kube-system/pods/etcd-"+ill]["status"] = kubesim.Object{"phase": "Running"}
		})
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "or it loses its quorum: "+ill+" is not")
		require.Len(t, enginetest.NodeNames(a), 4)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			require.Len(t, c.Members, 3)
			require.True(t, c.Quorate())
		})
	})
}

// saved is a saved living cluster; later is the time of the save.
func saved(t *testing.T, control, workers int32) (account []byte, later time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := living(t, control, workers, false)
		var w bytes.Buffer
		require.NoError(t, a.Save(&w))
		account, later = w.Bytes(), time.Since(began)
	})
	return account, later
}

// scaledDown removes machines in a run whose n-th call fails, and runs again; it returns
// the number of calls.
func scaledDown(t *testing.T, account []byte, later time.Duration, n int, fault awssim.Fault) (calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(later)
		m := enginetest.Sized(t, 1, 1)
		a, err := awssim.Load(bytes.NewReader(account), awssim.Options{Region: m.Region, Lag: enginetest.Lag})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := a.Process()
		p.Fault = enginetest.Only(n, fault)
		p.Killed = cancel
		w := &enginetest.Witness{T: t, A: a}
		_, err = draining(m, p).Apply(ctx, cluster.Options{Observe: w.Observe})
		calls = p.Calls()
		if fault == awssim.Throttled || n < 1 {
			require.NoError(t, err, "call %d", n)
		}
		if errors.As(err, new(*plan.RefusedError)) {
			require.Len(t, enginetest.NodeNames(a), 5, "call %d", n)
		}
		_, err = draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: w.Observe})
		require.NoError(t, err, "call %d", n)
		if len(enginetest.NodeNames(a)) > 2 { // of a machine that was terminated by then: a run that waits for the API server finds it
			_, err = run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Transport: enginetest.Transport(a.Process()), Drain: true, Wait: plan.APIServer}).
				Apply(t.Context(), cluster.Options{Observe: w.Observe})
			require.NoError(t, err, "call %d", n)
		}
		enginetest.RequireHealthy(t, a, 1, 1)
		enginetest.RequireNoChange(t, m, a)
	})
	return calls
}

// Whichever call of a run that removes machines fails, and in whatever way: etcd always
// has its quorum, and the next run completes it.
func TestEveryCallOfALeaveMayFail(t *testing.T) {
	account, later := saved(t, 3, 2)
	total := scaledDown(t, account, later, 0, awssim.None)
	for i, fault := range []awssim.Fault{awssim.Throttled, awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter, awssim.Broken} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n := enginetest.First(1, i); n <= total; n += enginetest.Stride(1) {
				scaledDown(t, account, later, n, fault)
			}
		})
	}
}
