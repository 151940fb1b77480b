package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestWarningsOfOneSort: warnings of one sort are one line of every command for people, and each by itself for programs and as errors.
func TestWarningsOfOneSort(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "release.yaml")
	var apps strings.Builder
	for i := range 20 {
		fmt.Fprintf(&apps, "---\napiVersion: application.giantswarm.io/v1alpha1\nkind: App\nmetadata: {name: a%d}\n", i)
	}
	require.NoError(t, os.WriteFile(file, append(text, []byte(apps.String())...), 0o600))

	const line = ": 20 × App (a0, a1, a2, …): are for a management cluster and are ignored\n"
	for _, command := range [][]string{
		{"validate"}, {"plan", "--simulate"}, {"create", "--simulate", "--yes"}, {"delete", "--simulate", "--yes"},
	} {
		require.Equal(t, 0, s.run(append([]string{"cluster"}, append(command, "-f", file)...)...), s.err.String())
		assert.Equal(t, 1, strings.Count(s.err.String(), line), "%s: %s", command[0], s.err.String())
		assert.Equal(t, 1, strings.Count(s.err.String(), "management cluster"), "%s: %s", command[0], s.err.String())
	}

	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "-o", "json"), s.err.String())
	var valid struct{ Warnings []string }
	require.NoError(t, json.Unmarshal([]byte(s.out.String()), &valid))
	assert.Len(t, valid.Warnings, 20)
	require.Equal(t, 0, s.run("cluster", "create", "--simulate", "--yes", "--progress", "json", "-f", file), s.err.String())
	assert.Equal(t, 20, strings.Count(s.err.String(), "App in application.giantswarm.io/v1alpha1 is for a management cluster"))
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file, "--strict"))
	assert.Equal(t, 20, strings.Count(s.err.String(), "App in application.giantswarm.io/v1alpha1 is for a management cluster"))
}
