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

// TestBackup backs up a cluster with a passphrase, and checks the file.
func TestBackup(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	folder := t.TempDir()
	passphrase, out := filepath.Join(folder, "passphrase"), filepath.Join(folder, "demo.backup")
	require.NoError(t, os.WriteFile(passphrase, []byte("correct horse\n"), 0o600))

	require.Equal(t, 3, s.run("cluster", "backup", "demo", "--to", out))
	assert.Contains(t, s.err.String(), "always encrypted: use --recipient")
	require.Equal(t, 3, s.run("cluster", "backup", "demo", "--to", out, "--recipient", "nonsense"))
	require.NoFileExists(t, out)

	require.Equal(t, 0, s.run("cluster", "backup", "demo", "--to", out, "--passphrase-file", passphrase, "-o", "json"), s.err.String())
	var taken, read map[string]any
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &taken))
	assert.Equal(t, "demo", taken["cluster"])
	assert.NotContains(t, s.err.String()+s.out.String(), "correct horse")
	require.Equal(t, 3, s.run("cluster", "backup", "demo", "--to", out, "--passphrase-file", passphrase))
	assert.Contains(t, s.err.String(), "exists: name another file with --to FILE")

	require.Equal(t, 0, s.run("cluster", "backup", "--verify", out, "--passphrase-file", passphrase, "-o", "json"), s.err.String())
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &read))
	assert.Equal(t, taken, read)
	require.Equal(t, 0, s.run("cluster", "backup", "--verify", out, "--passphrase-file", passphrase), s.err.String())
	assert.Contains(t, s.out.String(), "revision    ")
	require.NoError(t, os.WriteFile(passphrase, []byte("wrong\n"), 0o600))
	require.Equal(t, 1, s.run("cluster", "backup", "--verify", out, "--passphrase-file", passphrase))
	assert.Contains(t, s.err.String(), "decrypt")
	require.Equal(t, 3, s.run("cluster", "backup", "--verify", out))
	require.Equal(t, 4, s.run("cluster", "backup", "nowhere", "--to", strings.TrimSuffix(out, ".backup"), "--passphrase-file", passphrase))
}
