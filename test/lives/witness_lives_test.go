//go:build e2e

package lives_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
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
	for _, file := range examples(t) {
		t.Run(name(file), func(t *testing.T) {
			t.Parallel()
			m := quick(load(t, file, nil))
			permit := judge(m)
			synctest.Test(t, func(t *testing.T) {
				a := account(m, lag)
				prepare(t, file, a, m)
				life{t, a, permit}.whole(m, func() *manifest.Cluster { return quick(load(t, file, nil)) })
			})
		})
	}
	t.Run("upgrade of machines", func(t *testing.T) {
		t.Parallel()
		m := version(sized(t, 3, 2), "v1.34.2")
		permit := judge(m)
		synctest.Test(t, func(t *testing.T) {
			a := alive(t, version(sized(t, 3, 2), "v1.33.0"))
			_, err := rolling(m, life{t, a, permit}.process()).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
		})
	})
	t.Run("upgrade of EKS", func(t *testing.T) {
		t.Parallel()
		m := ofVersion(t, 34)
		permit := judge(m)
		synctest.Test(t, func(t *testing.T) {
			a := prepared(t, eksAddons, m)
			mustApply(t, ofVersion(t, 32), a)
			life{t, a, permit}.apply(m)
		})
	})
}

// whole creates a cluster, asks for its state, restores every field that somebody else
// has changed, deletes its workers, and then all of it; and then creates it again and
// deletes it by name.
func (l life) whole(m *manifest.Cluster, again func() *manifest.Cluster) {
	l.t.Helper()
	before := l.a.Inventory()
	_, err := open(m, l.process()).Plan(l.t.Context())
	require.NoError(l.t, err)
	l.apply(m)
	l.apply(m)
	_, err = look.Status(l.t.Context(), open(m, l.process()))
	require.NoError(l.t, err)
	time.Sleep(booting)
	tampering := tamperingOf(l.t, m, l.a)
	for round := range tampering.rounds {
		tampering.round(l.t, l.a, round)
		l.apply(m)
		time.Sleep(5 * time.Minute)
		l.a.Edit(tidy)
	}
	lives(l.t, l.a, m)
	smaller := again()
	smaller.Pools, smaller.Deployments = nil, nil
	l.apply(smaller)
	_, err = open(m, l.process()).Delete(l.t.Context(), everything)
	require.NoError(l.t, err)
	require.Equal(l.t, before, l.a.Inventory())

	m = again()
	l.apply(m)
	lives(l.t, l.a, m)
	named := cluster.Target{Config: l.process().Config(), Owner: "test"}
	_, err = look.Regions(l.t.Context(), named)
	require.NoError(l.t, err)
	_, err = look.List(l.t.Context(), named)
	require.NoError(l.t, err)
	_, err = look.Status(l.t.Context(), run.OpenByName(m.Name, named))
	require.NoError(l.t, err)
	_, err = run.OpenByName(m.Name, named).Delete(l.t.Context(), everything)
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
	_, err := open(m, l.process()).Apply(l.t.Context(), cluster.Options{Observe: tell(l.t)})
	require.NoError(l.t, err)
}
