package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// A difference is recorded once, with its remedy; equal values are not.
func TestDiff(t *testing.T) {
	var d graph.Diff
	d.Set("same", 1, "1")
	d.Set("size", 1, 2)
	d.Fixed("zone", "a", "b")
	d.Fixed("subnet", "subnet-1", graph.Unknown)
	d.Await("state", "pending", "available")
	d.Tags(map[string]string{"Name": "x", "theirs": "y"}, map[string]string{"Name": "x", "role": "node"})
	d.Lines("rule", []string{"b", "a", "a"}, []string{"c", "b"})
	require.Equal(t, graph.Diff{
		{Field: "size", Have: "1", Want: "2", Remedy: graph.InPlace},
		{Field: "zone", Have: "a", Want: "b", Remedy: graph.Replace},
		{Field: "subnet", Have: "subnet-1", Want: graph.Unknown, Remedy: graph.Wait},
		{Field: "state", Have: "pending", Want: "available", Remedy: graph.Wait},
		{Field: "tag role", Want: "node", Remedy: graph.InPlace},
		{Field: "rule", Have: "a", Remedy: graph.InPlace},
		{Field: "rule", Want: "c", Remedy: graph.InPlace},
	}, d)
	require.True(t, d.HasTags())
	require.True(t, d.Has("nothing", "zone"))
	require.False(t, d.Has("same"))
	require.Equal(t, []string{"c"}, d.Added("rule"))
	require.Equal(t, []string{"a"}, d.Removed("rule"))
	require.Equal(t, `size from "1" to "2"`, d[0].String())
}

// Advise sets the advice of Fixed differences that have none yet.
func TestAdvice(t *testing.T) {
	var d graph.Diff
	d.Set("size", 1, 2)
	d.Fixed("zone", "a", "b")
	d.Advise("first")
	d.Fixed("subnet", "a", "b")
	d.Advise("second")
	require.Equal(t, []string{"", "first", "second"}, []string{d[0].Advice, d[1].Advice, d[2].Advice})
}

// Steps are counted by kind and by action.
func TestCountKind(t *testing.T) {
	p := graph.Plan{Steps: []graph.Step{
		{Resource: "subnet/a", Action: graph.Create}, {Resource: "subnet/b", Action: graph.Keep}, {Resource: "vpc", Action: graph.Create},
	}}
	require.Equal(t, 1, p.CountKind("subnet", graph.Create))
	require.Zero(t, p.CountKind("vpc", graph.Keep))
}
