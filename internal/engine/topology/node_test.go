package topology_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// cordon cordons a Node, as kubectl does.
func cordon(a *awssim.AWS, node string) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		spec, _ := c.Get("/api/v1/nodes/" + node)["spec"].(kubesim.Object)
		spec["unschedulable"] = true
	})
}

// requireCordoned requires that exactly these Nodes are cordoned, and that no Node has an
// annotation of this program.
func requireCordoned(t *testing.T, a *awssim.AWS, want ...string) {
	t.Helper()
	have := []string{}
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		for _, o := range c.All("Node") {
			if spec, _ := o["spec"].(kubesim.Object); spec["unschedulable"] == true {
				have = append(have, kubesim.Value(o, "metadata", "name"))
			}
			meta, _ := o["metadata"].(kubesim.Object)
			require.NotContains(t, fmt.Sprint(meta["annotations"]), "clusterawsadm/")
			require.NotEmpty(t, kubesim.Value(o, "metadata", "labels", "kubernetes.io/hostname"))
		}
	})
	require.ElementsMatch(t, want, have)
}

// givenUp starts to remove a worker whose pods may not be evicted.
func givenUp(t *testing.T, a *awssim.AWS) (node string) {
	t.Helper()
	node = enginetest.Leaving(a, goes)
	budget(a, 6)
	_, err := draining(enginetest.Sized(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.ErrorContains(t, err, "disruption budget")
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		require.Contains(t, fmt.Sprint(c.Get("/api/v1/nodes/"+node)), "clusterawsadm/retired")
		require.Contains(t, fmt.Sprint(c.Get("/api/v1/nodes/" + node)["spec"]), "unschedulable:true")
	})
	return node
}

// A Node whose drain was cancelled is uncordoned when its machine stays.
func TestNodeThatStaysAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 2))
		other := enginetest.Leaving(a, "machine/three-zones-md-0/0")
		cordon(a, other)
		node := givenUp(t, a)
		m := enginetest.Sized(t, 1, 2)
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.Len(t, enginetest.Steps(p), 1)
		assert.Contains(t, enginetest.Steps(p)[0], `update node/three-zones-md-0/1 [unschedulable from "true" to "false" annotation clusterawsadm/retired from "i-`)
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		requireCordoned(t, a, other)
		require.NotEqual(t, other, node)
		enginetest.RequireDone(t, m, a)
		budget(a, 1)
		scaleIn(t, a) // and it can be drained another time
	})
}

// A Node that somebody else had cordoned stays cordoned.
func TestEarlierCordonStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 2))
		cordon(a, enginetest.Leaving(a, goes))
		node := givenUp(t, a)
		m := enginetest.Sized(t, 1, 2)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		requireCordoned(t, a, node)
		enginetest.RequireDone(t, m, a)
	})
}

// A run that waits only for the API server uncordons the Nodes of the control plane.
func TestControlPlaneThatStaysAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 2, 1))
		onNode(a, enginetest.Leaving(a, "machine/three-zones-control-plane/1"), "default", "stuck", kubesim.Object{})
		_, err := draining(enginetest.Sized(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "to be detached: pv-stuck")
		m := enginetest.Sized(t, 2, 1)
		res, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		require.Equal(t, 1, res.Plan.CountKind("node", plan.Update))
		requireCordoned(t, a)
	})
}

// Whichever call of a run that cancels a drain fails, the next one completes it.
func TestEveryCallOfAReturnMayFail(t *testing.T) {
	var (
		saved bytes.Buffer
		later time.Duration
	)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 2))
		givenUp(t, a)
		require.NoError(t, a.Save(&saved))
		later = time.Since(began)
	})
	returned := func(t *testing.T, n int, fault awssim.Fault) (calls int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(later)
			m := enginetest.Sized(t, 1, 2)
			a, err := awssim.Load(bytes.NewReader(saved.Bytes()), awssim.Options{Region: m.Region, Lag: enginetest.Lag})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := a.Process()
			p.Fault, p.Killed = enginetest.Only(n, fault), cancel
			_, err = enginetest.Rolling(m, p).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
			calls = p.Calls()
			if err != nil {
				_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			}
			require.NoError(t, err, "call %d", n)
			requireCordoned(t, a)
			enginetest.RequireDone(t, m, a)
		})
		return calls
	}
	total := returned(t, 0, awssim.None)
	for i, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter, awssim.LostAfter, awssim.Broken} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n := enginetest.First(1, i); n <= total; n += enginetest.Stride(1) {
				returned(t, n, fault)
			}
		})
	}
}

const (
	ofWorker = "map[node-restriction.kubernetes.io/tier:web node-role.kubernetes.io/worker: x.node-restriction.kubernetes.io/zone:safe]"
)

// Nodes get the labels of their machines that Cluster API synchronizes: after they have
// joined, also replacements.
func TestNodesGetLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(enginetest.Labelled(t, 1, 2), enginetest.Lag)
		var warnings []string
		p := a.Process()
		first := run.Open(enginetest.Labelled(t, 1, 2), cluster.Target{
			Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.APIServer, Warn: func(text string) { warnings = append(warnings, text) },
		})
		_, err := first.Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Contains(
			t,
			warnings,
			"nodes get the labels of their machines once they have joined, which this run does not wait for: three-zones-md-0; run again with --wait=joined",
		)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err = enginetest.Rolling(enginetest.Labelled(t, 1, 2), a.Process()).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
		require.Error(t, err) // there is no pod network
		require.ElementsMatch(t, []string{enginetest.OfControl, ofWorker, ofWorker}, enginetest.LabelsOf(a))
		enginetest.AddNetwork(a)
		m := enginetest.Labelled(t, 1, 2)
		m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		res, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Equal(t, 2, res.Plan.CountKind("machine", plan.Create))
		require.ElementsMatch(t, []string{enginetest.OfControl, ofWorker, ofWorker}, enginetest.LabelsOf(a))
		enginetest.RequireDone(t, m, a)
	})
}

// A missing label is added, a changed one is restored, and labels of others stay.
func TestLabelsAreMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Labelled(t, 1, 1)
		a := enginetest.Alive(t, m)
		node := enginetest.Leaving(a, "machine/three-zones-md-0/0")
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			meta, _ := c.Get("/api/v1/nodes/" + node)["metadata"].(kubesim.Object)
			labels, _ := meta["labels"].(kubesim.Object)
			delete(labels, "node-role.kubernetes.io/worker")
			labels["node-restriction.kubernetes.io/tier"], labels["mine"] = "db", "stays"
		})
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.Equal(
			t,
			[]string{`update node/three-zones-md-0/0 [label from "node-restriction.kubernetes.io/tier=db" to "node-restriction.kubernetes.io/tier=web" ` +
				`label from "" to "node-role.kubernetes.io/worker="]`},
			enginetest.Steps(p),
		)
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{enginetest.OfControl, strings.Replace(ofWorker, "map[", "map[mine:stays ", 1)}, enginetest.LabelsOf(a))
		enginetest.RequireDone(t, m, a)
	})
}

// TestLabelsInARollout waits for the Nodes of replaced machines, so that there is no
// remark about their labels.
func TestLabelsInARollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labelled := func() *manifest.Cluster {
			m := enginetest.Sized(t, 1, 2)
			m.Deployments[0].Object.Spec.Template.Labels = map[string]string{"node-role.kubernetes.io/db": ""}
			return m
		}
		a := enginetest.Alive(t, labelled())
		m := labelled()
		m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		killedAtLaunch(t, m, a, nil)
		target := enginetest.RollingTarget(a.Process())
		target.Warn = func(s string) { assert.NotContains(t, s, "labels") }
		_, err := run.Open(m, target).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.RequireDone(t, m, a)
	})
}
