package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// A plan ends with what the cluster costs, in each format, and in a file. --cost=off and the
// setting of that name switch it off.
func TestCostInPlans(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	plan := func(args ...string) string {
		require.Equal(t, 0, s.run(append([]string{"cluster", "plan", "-f", file, "--simulate"}, args...)...), s.err.String())
		return s.out.String()
	}
	assert.Contains(t, plan(), "\nCost: about $265 a month (t3.large × 2 $121.47, NAT gateways × 3 $98.55, ")
	assert.Contains(t, plan("--full"), "Not included: data transfer, ")
	assert.NotContains(t, plan("--cost=off"), "Cost:")
	assert.NotContains(t, s.err.String(), "cost")
	s.variables["CLUSTERAWSADM_COST"] = "off"
	assert.NotContains(t, plan(), "Cost:")
	delete(s.variables, "CLUSTERAWSADM_COST")

	var d render.PlanDocument
	require.NoError(t, json.Unmarshal([]byte(plan("-o", "json")), &d))
	require.NotNil(t, d.Cost)
	assert.InDelta(t, 264.75, d.Cost.After, 0.01)
	assert.Equal(t, "USD", d.Cost.Currency)
	found := false
	for _, i := range d.Cost.Items {
		if i.Resource == "nat-gateway/us-east-1a" {
			found = true
			assert.Equal(t, "hour", i.Unit)
			assert.InDelta(t, 0.045, i.UnitPrice, 0)
			assert.InDelta(t, 730, i.After.Quantity, 0)
			assert.InDelta(t, 32.85, i.After.Amount, 0)
			assert.Zero(t, i.Before)
		}
	}
	assert.True(t, found)
	assert.Contains(t, plan("-o", "yaml"), "\ncost:\n")

	saved := file + ".plan"
	plan("--to", saved)
	require.Equal(t, 0, s.run("cluster", "plan", "show", saved), s.err.String())
	assert.Contains(t, s.out.String(), "\nCost: about $265 a month (")
	s.simulated()
	s.terminal("n\n")
	require.Equal(t, 4, s.run("cluster", "create", "-f", file), s.err.String())
	assert.Contains(t, s.err.String(), "\nCost: about $265 a month (")
	require.Equal(t, 0, s.run("cluster", "create", saved, "--verbose"), s.err.String())
	assert.NotContains(t, s.err.String(), "GetProducts", "nobody looks at the plan")
	assert.Contains(t, plan(), "\nCost: about $265 a month, as before; ")
	require.Equal(t, 3, s.run("cluster", "plan", "-f", file, "--cost=maybe"))
	assert.Contains(t, s.err.String(), "must be one of on, off")
}

// TestMaxCost refuses clusters that are too dear, before anything is written.
func TestMaxCost(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", file, "--max-cost", "100"), s.err.String())
	assert.Contains(t, s.out.String(), "Plan: ", "the plan is shown all the same")
	assert.Regexp(
		t,
		`error: the cluster would cost USD \d+\.\d\d a month, and --max-cost allows 100.00: 'cluster plan --full' shows each position\n$`,
		s.err.String(),
	)
	require.Equal(t, env.Refused, s.run("cluster", "create", "-f", file, "--yes", "--max-cost", "100"), s.err.String())
	require.Equal(t, env.Failed, s.run("cluster", "describe", "demo"), "nothing was made")
	require.Equal(t, env.Wrong, s.run("cluster", "plan", "-f", file, "--max-cost", "100", "--cost", "off"))
	require.Equal(t, env.Wrong, s.run("cluster", "plan", "-f", file, "--max-cost=-1"))
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--max-cost", "1000"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--max-cost", "1000", "--wait", "infrastructure"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--max-cost", "100"), "nothing becomes dearer")
}
