package reconcile_test

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

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// draining returns the cluster for a new process that drains Nodes.
func draining(m *manifest.Cluster, p *awssim.Process) *reconcile.Cluster {
	return reconcile.OpenModel(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: transport(p), Drain: true})
}

// sized returns the example with other numbers of machines.
func sized(t *testing.T, control, workers int32) *manifest.Cluster {
	t.Helper()
	m := loadQuick(t, "../../configs/three-zones.yaml")
	m.ControlPlane.Object.Spec.Replicas, m.Deployments[0].Object.Spec.Replicas = &control, &workers
	return m
}

// inside edits the only Kubernetes cluster of the account.
func inside(a *awssim.AWS, edit func(c *kubesim.Cluster)) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			edit(c)
		}
	})
}

// living returns an account with a cluster of 3 control planes and 3 workers that have
// joined and are ready, with pods of a Deployment on its workers.
func living(t *testing.T, control, workers int32, ccm bool) *awssim.AWS {
	t.Helper()
	m := sized(t, control, workers)
	a := account(m, lag)
	prepare(t, "../../configs/three-zones.yaml", a, m)
	mustApply(t, m, a)
	time.Sleep(5 * time.Minute)
	addNetwork(a)
	if !ccm {
		inside(a, func(c *kubesim.Cluster) {
			delete(c.Objects, "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-cloud-controller-manager")
		})
	}
	time.Sleep(time.Minute)
	a.Inventory()
	inside(a, func(c *kubesim.Cluster) {
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
	addPods(a)
	return a
}

// addPods adds the pods of a Deployment to the workers.
func addPods(a *awssim.AWS) {
	inside(a, func(c *kubesim.Cluster) {
		now := time.Now()
		c.Put(now, kubesim.Object{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": kubesim.Object{"name": "web", "namespace": "default"},
			"spec": kubesim.Object{"replicas": 6.0, "template": kubesim.Object{"metadata": kubesim.Object{"labels": kubesim.Object{"app": "web"}}}},
		})
		for range 4 {
			c.Settle(now)
			now = now.Add(10 * time.Second)
		}
	})
	time.Sleep(time.Minute)
}

// budget adds a PodDisruptionBudget with minAvailable to the Deployment.
func budget(a *awssim.AWS, least int) {
	inside(a, func(c *kubesim.Cluster) {
		c.Put(time.Now(), kubesim.Object{
			"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": kubesim.Object{"name": "web-budget", "namespace": "default"},
			"spec": kubesim.Object{"minAvailable": float64(least), "selector": kubesim.Object{"matchLabels": kubesim.Object{"app": "web"}}},
		})
	})
}

// witness watches a run: etcd must always have a quorum.
type witness struct {
	t      *testing.T
	a      *awssim.AWS
	events []string
}

func (w *witness) observe(e plan.Event) {
	if tell := tell(w.t); tell != nil {
		tell(e)
	}
	w.events = append(w.events, fmt.Sprintf("%s %s %s", e.What, e.Resource, e.Detail))
	inside(w.a, func(c *kubesim.Cluster) {
		assert.True(w.t, c.Quorate(), "after %s %s", e.What, e.Resource)
	})
}

// nodeNames lists the Nodes.
func nodeNames(a *awssim.AWS) (names []string) {
	inside(a, func(c *kubesim.Cluster) {
		for path := range c.Objects {
			if name, ok := strings.CutPrefix(path, "/api/v1/nodes/"); ok {
				names = append(names, name)
			}
		}
	})
	return names
}

// requireHealthy requires that number of Nodes, exactly the members of the control plane
// in etcd, that all pods run, and that no pod of this program is left.
func requireHealthy(t *testing.T, a *awssim.AWS, control, workers int) {
	t.Helper()
	require.Len(t, nodeNames(a), control+workers)
	inside(a, func(c *kubesim.Cluster) {
		require.Len(t, c.Members, control)
		require.True(t, c.Quorate())
		running := 0
		for path, o := range c.Objects {
			require.NotContains(t, path, "pods/clusterawsadm-etcd")
			if strings.HasPrefix(path, "/api/v1/namespaces/default/pods/web") {
				running++
				require.NotNil(t, c.Objects["/api/v1/nodes/"+fmt.Sprint(o["spec"].(kubesim.Object)["nodeName"])])
			}
		}
		require.Equal(t, 6, running)
	})
}

// TestScaleDown removes workers and machines of the control plane from a living cluster,
// with and without a cloud controller manager.
func TestScaleDownInGoodOrder(t *testing.T) {
	for _, ccm := range []bool{true, false} {
		t.Run(fmt.Sprint("ccm=", ccm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := living(t, 3, 3, ccm)
				requireHealthy(t, a, 3, 3)
				budget(a, 5) // one at a time
				w := &witness{t: t, a: a}
				m := sized(t, 1, 1)
				_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: w.observe})
				require.NoError(t, err)
				time.Sleep(time.Minute)
				a.Inventory()
				requireHealthy(t, a, 1, 1)
				assert.Contains(t, strings.Join(w.events, "\n"), "the disruption budget web-budget needs 5 healthy pods and has 5 currently")
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
		m := sized(t, 1, 1)
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.ErrorContains(t, err, "drain/three-zones-md-0/1/")
		require.ErrorContains(t, err, "default/web-")
		require.ErrorContains(t, err, "the disruption budget web-budget needs 6 healthy pods and has 6 currently")
		require.ErrorAs(t, err, new(*plan.HalfwayError))
		require.Len(t, nodeNames(a), 3)
		budget(a, 1)
		_, err = draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		a.Inventory()
		requireHealthy(t, a, 1, 1)
	})
}

// nodeDrainTimeout ends the wait, counted from when the Node was cordoned, also by an
// earlier run.
func TestDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		budget(a, 6)
		m := sized(t, 1, 1)
		limit := int32(20 * 60)
		m.Deployments[0].Object.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = &limit
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
		defer cancel()
		_, err := draining(m, a.Process()).Apply(ctx, cluster.Options{Observe: tell(t)})
		require.Error(t, err)
		began := time.Now()
		w := &witness{t: t, a: a}
		_, err = draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: w.observe})
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 12*time.Minute)
		assert.Greater(t, time.Since(began), 7*time.Minute)
		assert.Contains(t, strings.Join(w.events, "\n"), "the pods that remain after nodeDrainTimeout (20m0s): default/web-")
		require.Len(t, nodeNames(a), 2)
	})
}

// Machines wait until the volumes of their pods are detached, up to the limit in the
// manifest.
func TestVolumesAreDetached(t *testing.T) {
	attach := func(a *awssim.AWS, pod string) {
		inside(a, func(c *kubesim.Cluster) {
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
		w := &witness{t: t, a: a}
		_, err := draining(sized(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: w.observe})
		require.NoError(t, err)
		assert.Contains(t, strings.Join(w.events, "\n"), "to be detached: pv-web-")
		require.Len(t, nodeNames(a), 2)
	})
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		attach(a, "")
		m := sized(t, 1, 1)
		limit := int32(120)
		m.Deployments[0].Object.Spec.Template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = &limit
		began := time.Now()
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		assert.Greater(t, time.Since(began), 2*time.Minute)
		require.Len(t, nodeNames(a), 2)
	})
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 1, 2, true)
		attach(a, "")
		m := sized(t, 1, 1)
		m.Deployments[0].Object.Spec.Template.Annotations = map[string]string{clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
		began := time.Now()
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 3*time.Minute)
		require.Len(t, nodeNames(a), 2)
	})
}

// If no API server responds, nothing is terminated, and the error names the flags that do
// not need it.
func TestDrainWithoutAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 3, 1, true)
		inside(a, func(c *kubesim.Cluster) { // two of three are terminated
			for _, m := range c.Members[:2] {
				m.Gone = true
			}
		})
		m := sized(t, 1, 1)
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.ErrorContains(t, err, "the API server: it answers with 500")
		require.ErrorContains(t, err, "--drain=false")
		require.Len(t, nodeNames(a), 4)
		mustApply(t, m, a) // without the API server
		mustDelete(t, m, a)
	})
}

// A member that etcd needs for its quorum stays, and so does its machine.
func TestQuorumIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := living(t, 3, 1, true)
		m := sized(t, 2, 1)
		var goes, ill string
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				if i.Tags["clusterawsadm/resource"] == "machine/three-zones-control-plane/2" {
					goes = i.Boot.Node
				}
			}
		})
		inside(a, func(c *kubesim.Cluster) { // one is unhealthy: without another one there is no quorum
			sick := c.Members[slices.IndexFunc(c.Members, func(m *kubesim.Member) bool { return m.Name != goes })]
			ill, sick.Gone = sick.Name, true
			c.Objects["/api/v1/namespaces/kube-system/pods/etcd-"+ill]["status"] = kubesim.Object{"phase": "Running"}
		})
		_, err := draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
		require.ErrorContains(t, err, "or it loses its quorum: "+ill+" is not")
		require.Len(t, nodeNames(a), 4)
		inside(a, func(c *kubesim.Cluster) {
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
		m := sized(t, 1, 1)
		a, err := awssim.Load(bytes.NewReader(account), awssim.Options{Region: m.Region, Lag: lag})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := a.Process()
		p.Fault = only(n, fault)
		p.Killed = cancel
		w := &witness{t: t, a: a}
		_, err = draining(m, p).Apply(ctx, cluster.Options{Observe: w.observe})
		calls = p.Calls()
		if fault == awssim.Throttled || n < 1 {
			require.NoError(t, err, "call %d", n)
		}
		if errors.As(err, new(*plan.RefusedError)) {
			require.Len(t, nodeNames(a), 5, "call %d", n)
		}
		_, err = draining(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: w.observe})
		require.NoError(t, err, "call %d", n)
		if len(nodeNames(a)) > 2 { // of a machine that was terminated by then: a run that waits for the API server finds it
			_, err = reconcile.OpenModel(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Transport: transport(a.Process()), Drain: true, Wait: plan.APIServer}).
				Apply(t.Context(), cluster.Options{Observe: w.observe})
			require.NoError(t, err, "call %d", n)
		}
		requireHealthy(t, a, 1, 1)
		requireNoChange(t, m, a)
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
			for n := first(i); n <= total; n += stride(1) {
				scaledDown(t, account, later, n, fault)
			}
		})
	}
}
