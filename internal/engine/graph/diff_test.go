package graph_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"
)

// A difference is recorded once, with its remedy; equal values are not.
func TestDiff(t *testing.T) {
	var d plan.Diff
	d.Set("same", 1, "1")
	d.Set("size", 1, 2)
	d.Fixed("zone", "a", "b")
	d.Fixed("subnet", "subnet-1", plan.Unknown)
	d.Await("state", "pending", "available")
	d.Tags(map[string]string{"Name": "x", "theirs": "y"}, map[string]string{"Name": "x", "role": "node"})
	d.Lines("rule", []string{"b", "a", "a"}, []string{"c", "b"})
	require.Equal(t, plan.Diff{
		{Field: "size", Have: "1", Want: "2", Remedy: plan.InPlace},
		{Field: "zone", Have: "a", Want: "b", Remedy: plan.Replace},
		{Field: "subnet", Have: "subnet-1", Want: plan.Unknown, Remedy: plan.ByItself},
		{Field: "state", Have: "pending", Want: "available", Remedy: plan.ByItself},
		{Field: "tag role", Want: "node", Remedy: plan.InPlace},
		{Field: "rule", Have: "a", Remedy: plan.InPlace},
		{Field: "rule", Want: "c", Remedy: plan.InPlace},
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
	var d plan.Diff
	d.Set("size", 1, 2)
	d.Fixed("zone", "a", "b")
	d.Advise("first")
	d.Fixed("subnet", "a", "b")
	d.Advise("second")
	require.Equal(t, []string{"", "first", "second"}, []string{d[0].Advice, d[1].Advice, d[2].Advice})
}

// Steps are counted by kind and by action.
func TestCountKind(t *testing.T) {
	p := plan.Plan{Steps: []plan.Step{
		{Resource: "subnet/a", Action: plan.Create}, {Resource: "subnet/b", Action: plan.Keep}, {Resource: "vpc", Action: plan.Create},
	}}
	require.Equal(t, 1, p.CountKind("subnet", plan.Create))
	require.Zero(t, p.CountKind("vpc", plan.Keep))
}
