package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forge adds a line break and more to the tags of a simulated account, and the tag of another
// cluster to all of them.
func forge(x any) {
	switch x := x.(type) {
	case map[string]any:
		if tags, ok := x["Tags"].(map[string]any); ok {
			for _, key := range []string{"Name", "clusterawsadm/resource"} {
				if value, ok := tags[key].(string); ok {
					tags[key] = value + "\nFORGED \u202e\u2028"
				}
			}
			tags["sigs.k8s.io/cluster-api-provider-aws/cluster/evil\nFORGED"] = "owned"
			tags["x\nFORGED"] = "y\nFORGED"
		}
		for _, value := range x {
			forge(value)
		}
	case []any:
		for _, value := range x {
			forge(value)
		}
	}
}

// A line break in a tag does not make a line of output, which another program, such as xargs,
// would take for a name.
func TestLineBreaksInTags(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	s := newShell(t)
	file := s.generated(t)
	run := func(args ...string) (lines []string) {
		s.run(append(append([]string{"cluster"}, args...), "--simulate", "--simulate-state", state)...)
		return strings.Split(s.out.String()+s.err.String(), "\n")
	}
	run("create", "-f", file, "--yes", "--wait", "infrastructure")
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	var account map[string]any
	require.NoError(t, json.Unmarshal(text, &account))
	forge(account)
	text, err = json.Marshal(account)
	require.NoError(t, err)
	for _, args := range [][]string{
		{"list"},
		{"list", "-o", "name"},
		{"list", "-o", "wide"},
		{"list", "-o", "jsonpath={.clusters[*].name}"},
		{"describe", "demo"},
		{"describe", "demo", "-o", "name"},
		{"describe", "demo", "-o", "wide"},
		{"plan", "-f", file, "--full"},
		{"import", "demo"},
		{"delete", "demo", "--dry-run"},
		{"delete", "demo", "--yes", "--progress", "plain"},
	} {
		require.NoError(t, os.WriteFile(state, text, 0o600))
		lines := run(args...)
		assert.Greater(t, len(lines), 1, args)
		for _, line := range lines {
			assert.False(t, strings.HasPrefix(strings.TrimLeft(line, "│├└─ "), "FORGED"), "%s: %q", args, line)
			assert.NotContains(t, line, "\u202e", args)
		}
	}
}
