package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// changes calls do after each value in a JSON document was changed, and restores it. path says
// where it is.
func changes(path string, in any, set func(any), do func(path string)) {
	switch v := in.(type) {
	case map[string]any:
		for key, value := range v {
			changes(path+"."+key, value, func(to any) { v[key] = to }, do)
		}
		return
	case []any:
		for i, value := range v {
			changes(fmt.Sprintf("%s[%d]", path, i), value, func(to any) { v[i] = to }, do)
		}
		return
	case string:
		if path == ".made" { // another time
			set("2020-01-02T03:04:05Z")
		} else {
			set(v + "x")
		}
	case float64:
		set(v + 1)
	case bool:
		set(!v)
	default:
		return
	}
	do(path)
	set(in)
}

// A plan file in which one value was changed is neither printed nor carried out: those who
// approve what 'plan show' prints approve what 'create' does.
func TestChangedPlanFile(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	planned := filepath.Join(t.TempDir(), "demo.plan")
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--to", planned, "--wait", "infrastructure"), s.err.String())
	text, err := os.ReadFile(planned)
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(text, &document))
	write := func() {
		text, err := json.MarshalIndent(document, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(planned, text, 0o600))
	}
	tried := 0
	changes("", document, nil, func(path string) {
		tried++
		write()
		assert.Equal(t, env.Wrong, s.run("cluster", "plan", "show", planned), path)
		if tried%20 == 0 {
			assert.Equal(t, env.Wrong, s.run("cluster", "create", planned), path)
		}
	})
	require.Greater(t, tried, 300)
	write() // as it was, with other spaces
	require.Equal(t, 0, s.run("cluster", "plan", "show", planned), s.err.String())
	require.Equal(t, 0, s.run("cluster", "create", planned), s.err.String())
}

// What is written to a full disk fails, and nothing says that it was written. The device also
// stands for a file without an end.
func TestFullDisk(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--wait", "infrastructure"), s.err.String())
	for _, args := range [][]string{
		{"plan", "-f", file, "--to", full}, {"import", "demo", "--to", full},
	} {
		assert.Equal(t, env.Failed, s.run(append([]string{"cluster"}, args...)...), "%s\n%s", args, s.err.String())
		assert.Contains(t, s.err.String(), "no space left on device", args)
		assert.NotContains(t, s.err.String(), "wrote", args)
	}
	assert.NotZero(t, s.run("cluster", "backup", "demo", "--to", filepath.Join(t.TempDir(), "x"), "--passphrase-file", full))
	assert.Contains(t, s.err.String(), full+": the input is larger than 8 MiB")
}
