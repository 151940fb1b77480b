//go:build e2e

package lives_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// judgement reports whether a call is permitted, with the input of the SDK.
type judgement func(service, op string, in any) bool

// life is the life of one cluster. The judgement sees all calls of the program, and none
// of controllers in the cluster.
type life struct {
	t      *testing.T
	a      *awssim.AWS
	permit judgement
}

// everyLife runs the life of every example, each with the judgement for its manifest, and
// the upgrades of a cluster of machines and of one of EKS.
func everyLife(t *testing.T, judge func(m *manifest.Cluster) judgement) {
	t.Helper()
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			m := enginetest.Quick(enginetest.Load(t, file, nil))
			permit := judge(m)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				life{t, a, permit}.whole(m, func() *manifest.Cluster { return enginetest.Quick(enginetest.Load(t, file, nil)) })
			})
		})
	}
	t.Run("upgrade of machines", func(t *testing.T) {
		t.Parallel()
		m := enginetest.Version(enginetest.Sized(t, 3, 2), "v1.34.2")
		permit := judge(m)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 3, 2), "v1.33.0"))
			_, err := enginetest.Rolling(m, life{t, a, permit}.process()).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
		})
	})
	t.Run("stop and start", func(t *testing.T) {
		t.Parallel()
		m := enginetest.Sized(t, 3, 2)
		permit := judge(m)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Alive(t, m)
			l := life{t, a, permit}
			_, err := enginetest.Rolling(m, l.process()).Stop(t.Context(), cluster.Options{})
			require.NoError(t, err)
			_, err = enginetest.Rolling(m, l.process()).Start(t.Context(), cluster.Options{})
			require.NoError(t, err)
		})
	})
	t.Run("upgrade of EKS", func(t *testing.T) {
		t.Parallel()
		m := enginetest.OfVersion(t, 34)
		permit := judge(m)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, enginetest.OfVersion(t, 32), a)
			a.Edit(func(s *awssim.State) { // whose details are read
				enginetest.Plane(s).Insights = map[string]*eks.Insight{"1": {ID: "1", Name: "Kubelet version skew", Version: "1.33", Status: "WARNING"}}
			})
			life{t, a, permit}.apply(m)
		})
	})
}

// whole creates a cluster, asks for its state, restores every field that somebody else
// has changed, deletes its workers, and then all of it; and then creates it again and
// deletes it by name. The second one has a tag that is removed.
func (l life) whole(m *manifest.Cluster, again func() *manifest.Cluster) {
	l.t.Helper()
	before := l.a.Inventory()
	_, err := enginetest.Open(m, l.process()).Plan(l.t.Context())
	require.NoError(l.t, err)
	l.apply(m)
	l.apply(m)
	_, err = look.Status(l.t.Context(), enginetest.Open(m, l.process()))
	require.NoError(l.t, err)
	time.Sleep(enginetest.Booting)
	tampering := enginetest.TamperingOf(l.t, m, l.a)
	for round := range tampering.Rounds {
		tampering.Round(l.t, l.a, round)
		l.apply(m)
		time.Sleep(5 * time.Minute)
		l.a.Edit(enginetest.Tidy)
		tampering.Identify(enginetest.MustPlan(l.t, m, l.a))
	}
	enginetest.Lives(l.t, l.a, m)
	smaller := again()
	smaller.Pools, smaller.Deployments = nil, nil
	l.apply(smaller)
	_, err = enginetest.Open(m, l.process()).Delete(l.t.Context(), enginetest.Everything)
	require.NoError(l.t, err)
	require.Equal(l.t, before, l.a.Inventory())

	m = again()
	m.Infra.Spec.AdditionalTags = infrav1.Tags(cloud.Tags(m.Infra.Spec.AdditionalTags).With(cloud.Tags{"former": "x"}))
	l.apply(m)
	m = again()
	l.apply(m)
	enginetest.Lives(l.t, l.a, m)
	named := cluster.Target{Config: l.process().Config(), Owner: "test"}
	_, err = look.Regions(l.t.Context(), named)
	require.NoError(l.t, err)
	_, err = look.List(l.t.Context(), named)
	require.NoError(l.t, err)
	_, err = look.Status(l.t.Context(), run.OpenByName(m.Name, named))
	require.NoError(l.t, err)
	_, err = run.OpenByName(m.Name, named).Delete(l.t.Context(), enginetest.Everything)
	require.NoError(l.t, err)
	require.Equal(l.t, before, l.a.Inventory())
}

// process returns a new program whose calls the judgement sees.
func (l life) process() *awssim.Process {
	p := l.a.Process()
	p.Permits = l.permit
	return p
}

func (l life) apply(m *manifest.Cluster) {
	l.t.Helper()
	_, err := enginetest.Open(m, l.process()).Apply(l.t.Context(), cluster.Options{Observe: enginetest.Tell(l.t)})
	require.NoError(l.t, err)
}
