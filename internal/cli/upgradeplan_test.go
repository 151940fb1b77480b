package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// TestUpgradePlan shows the upgrade of a cluster, as text and for programs.
func TestUpgradePlan(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--kubernetes-version", "v1.33.0")
	shown := func(want int, args ...string) string {
		t.Helper()
		require.Equal(t, want, s.run(append([]string{"cluster", "upgrade-plan"}, args...)...), s.err.String())
		return strings.ReplaceAll(s.out.String(), file, "demo.yaml")
	}
	before := shown(0, "-f", file)
	shown(1, "demo")
	assert.Contains(t, s.err.String(), "there is no cluster demo in us-east-1")

	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	golden.Assert(t, "upgrade-plan.txt", strings.Join([]string{before, shown(0, "-f", file), shown(0, "demo")}, "---\n"))
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(after), "the command does not edit")

	var u cluster.Upgrades
	require.NoError(t, json.Unmarshal([]byte(shown(0, "-f", file, "-o", "json", "--to", "v1.34.0")), &u))
	assert.Equal(t, "v1.34.0", u.Target)
	require.Len(t, u.Edits, 3)
	assert.Equal(t, "v1.34.0", u.Edits[1].New)
	assert.Contains(t, shown(0, "demo", "-o", "yaml"), "\nversionsKnown: true\n")

	shown(env.Refused, "-f", file, "--to", "v1.32")
	assert.Contains(t, s.err.String(), "Kubernetes cannot be downgraded")
	shown(env.Wrong, "-f", file, "--to", "newest")
	assert.Contains(t, s.err.String(), `"newest" is not a version of Kubernetes such as v1.34.2`)

	require.Equal(t, 0, s.run("cluster", "generate", "eks", "--flavor", "eks"), s.err.String())
	require.NoError(t, os.WriteFile(file, s.out.Bytes(), 0o600))
	golden.Assert(t, "upgrade-plan-eks.txt", shown(0, "-f", file))

	delete(s.variables, "NO_COLOR")
	s.OutIsTerminal = true
	assert.Contains(t, shown(0, "-f", file), "v1.34 → \x1b[32mv1.35\x1b[0m\n")
}
