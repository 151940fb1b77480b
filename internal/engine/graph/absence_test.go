package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

func all(graph.Resource) bool { return false }

// What Delete has deleted is looked for again, also with resources that it refers to.
func TestLookAgain(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("used", "v")
		graph.Use(b.g, "used", b.find("used"), graph.From(""))
		vpc := b.add(b.toy("vpc"))
		b.add(b.toy("subnet", graph.Exists(vpc)))
		b.mustApply()
		e := b.engine()
		require.NoError(t, e.Delete(t.Context(), b.g))
		absent, left, err := e.LookAgain(t.Context(), b.g, all)
		require.NoError(t, err)
		require.Empty(t, left)
		require.Len(t, absent, 2)
		for i, name := range []string{"vpc", "subnet"} {
			require.Equal(t, plan.ID(name), absent[i].Resource.ID())
			require.Equal(t, "id-"+name, absent[i].CloudID)
			require.Equal(t, plan.Unknown, absent[i].Resource.CloudID(), "the graph is as before")
		}
	})
}

// AWS may still show what it has deleted, but not for ever.
func TestLookAgainWaits(t *testing.T) {
	in(t, func(t *testing.T, b *bench) {
		b.put("late", "v")
		b.put("stays", "v")
		late := b.toy("late")
		late.goes = 25 * time.Second
		b.add(late)
		stays := b.toy("stays")
		stays.returns = 1
		b.add(stays)
		require.NoError(t, b.x.Delete(t.Context(), b.g), "AWS has accepted the calls")
		began := time.Now()
		absent, left, err := b.x.LookAgain(t.Context(), b.g, all)
		require.NoError(t, err)
		require.Len(t, absent, 1)
		require.Equal(t, "id-late", absent[0].CloudID)
		require.WithinDuration(t, began.Add(30*time.Second), absent[0].At, time.Second)
		require.Len(t, left, 1)
		require.Equal(t, plan.ID("stays"), left[0].ID())
		require.Equal(t, time.Minute, time.Since(began))
	})
}
