package lives_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Whatever somebody changes outside of a run, the next plan contains exactly that, and an
// apply restores it. In each round, one field of every resource is changed, each time
// another one.
func TestTamper(t *testing.T) {
	enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.RequireRestored(t, m, a, enginetest.AllKinds)
	})
}

// Changes that AWS does not permit are refused before the first write, and the plan shows
// them.
func TestConflicts(t *testing.T) {
	seen := map[string]bool{} // fields of all examples
	ran := 0
	var mu sync.Mutex
	t.Run("examples", func(t *testing.T) {
		enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
			mu.Lock()
			ran++
			mu.Unlock()
			enginetest.MustApply(t, m, a)
			enginetest.RequireConflicts(t, m, a, enginetest.AllKinds, func(field string) bool {
				mu.Lock()
				defer mu.Unlock()
				done := seen[field]
				seen[field] = true
				return !done
			})
		})
	})
	if ran < len(enginetest.Examples(t)) {
		return // -run has chosen some
	}
	for field := range enginetest.Conflicts() {
		require.True(t, seen[field], "no example has the field %q", field)
	}
}

// Every field in the table is in an example.
func TestTamperTableIsTight(t *testing.T) {
	unused := enginetest.Tampers()
	for _, file := range enginetest.Examples(t) {
		m := enginetest.Load(t, file, nil)
		g, err := enginetest.Open(m, enginetest.Account(m, 0).Process()).Graph()
		require.NoError(t, err)
		for _, n := range g.Resources() {
			for _, d := range n.Wanted() {
				delete(unused, enginetest.KeyOf(n.ID(), d.Field))
			}
		}
	}
	require.Empty(t, slices.Collect(maps.Keys(unused)))
}
