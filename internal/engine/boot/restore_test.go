package boot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first machine restores etcd before kubeadm init, which is not run if that fails. The password
// is in a file, and no other machine gets it.
func TestRestore(t *testing.T) {
	restore := &Restore{URL: "https://b.s3.amazonaws.com/k?X-Amz-Signature=s", SHA256: "0123", Password: "secret-of-the-snapshot"}
	for name, test := range cases(t) {
		if test.Role == Init {
			test.Restore = restore
		}
		data, err := Render(test)
		require.NoError(t, err, name)
		text := string(data.Content)
		if test.Role != Init {
			assert.NotContains(t, text, "restore-etcd", name)
			continue
		}
		if data.Format == Ignition {
			assert.Contains(t, text, restoreScriptPath, name)
			continue // the content of its files is encoded
		}
		for _, what := range []string{"bash " + restoreScriptPath + " /", " && kubeadm init --config ", "DirAvailable--var-lib-etcd"} {
			assert.Contains(t, text, what, "%s: %s", name, what)
		}
	}
	assert.NotContains(t, restore.String(), "secret")
}

// The script is fine for shellcheck, if it is installed, and has no expression of jinja.
func TestRestoreScript(t *testing.T) {
	for _, jinja := range []string{"{{", "{%", "{#"} {
		assert.NotContains(t, restoreScript, jinja)
	}
	file := filepath.Join(t.TempDir(), "script")
	r := &Restore{URL: "u", SHA256: "s", Password: "p"}
	require.NoError(t, os.WriteFile(file, []byte(r.files()[0].Content), 0o600))
	out, err := exec.CommandContext(t.Context(), "bash", "-n", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if _, err := exec.LookPath("shellcheck"); err == nil {
		out, err := exec.CommandContext(t.Context(), "shellcheck", "--exclude=SC2154", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	assert.True(t, strings.HasPrefix(r.files()[0].Content, "#!/bin/bash\n"))
}
