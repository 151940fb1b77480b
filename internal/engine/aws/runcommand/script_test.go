package runcommand

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run runs the script of a command here, as the agent does on a machine.
func run(t *testing.T, script string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	text, err := cmd.Output()
	return string(text), err
}

// read runs all scripts that a command takes.
func read(t *testing.T, c Command) (text []byte, scripts int) {
	t.Helper()
	key, public, err := newKey()
	require.NoError(t, err)
	var data []byte
	for {
		out, err := run(t, c.script(public, len(data)))
		require.NoError(t, err)
		require.Less(t, len(out), 24000)
		p, err := open(key, out)
		require.NoError(t, err)
		data, scripts = append(data, p.data...), scripts+1
		if len(data) >= p.size {
			text, err := join(p.hash, data)
			require.NoError(t, err)
			return text, scripts
		}
	}
}

// The files of a folder come through sh, tar, gzip and openssl as they are, in as many parts as
// they need. What the scripts print contains nothing of them.
func TestFiles(t *testing.T) {
	folder, large := t.TempDir(), make([]byte, 50000)
	_, err := rand.Read(large)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "etcd"), 0o700))
	files := map[string]string{"ca.crt": "certificate\n", "etcd/ca.key": "-----BEGIN PRIVATE KEY-----\nsecret\n", "large": string(large)}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	text, scripts := read(t, Files(folder, "ca.crt", "none", "etcd/ca.key", "large"))
	assert.Equal(t, 4, scripts)
	have := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		have[h.Name] = string(content)
	}
	assert.Equal(t, files, have)
	listed, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, listed, 3, "nothing is written")
}

// A command whose files do not exist fails, and prints nothing that could be taken for an output.
func TestMissing(t *testing.T) {
	_, public, err := newKey()
	require.NoError(t, err)
	for _, c := range []Command{Files(t.TempDir(), "ca.crt"), Files("/nowhere", "ca.crt"), "cat /nowhere/file"} {
		out, err := run(t, c.script(public, 0))
		var failed *exec.ExitError
		require.ErrorAs(t, err, &failed, c)
		assert.Empty(t, out)
		assert.NotEmpty(t, failed.Stderr, c)
	}
}

// Damaged outputs are refused: cut off by AWS, for another key, changed.
func TestDamaged(t *testing.T) {
	key, public, err := newKey()
	require.NoError(t, err)
	out, err := run(t, Command("echo hello").script(public, 0))
	require.NoError(t, err)
	other, _, err := newKey()
	require.NoError(t, err)
	_, err = open(other, out)
	require.ErrorContains(t, err, "damaged")
	_, err = open(key, out[:len(out)-20]+"\n---Output truncated---")
	require.ErrorContains(t, err, "the output is not complete")
	_, err = open(key, strings.Replace(out, "\n", "\nAAAA", 1))
	require.ErrorContains(t, err, "damaged")
	p, err := open(key, out)
	require.NoError(t, err)
	_, err = join(p.hash, p.data[1:])
	require.ErrorContains(t, err, "the output has changed")
	text, err := join(p.hash, p.data)
	require.NoError(t, err)
	assert.Equal(t, "hello\n", string(text))
}

// The scripts are fine for shellcheck, if it is installed.
func TestScriptsAreChecked(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed")
	}
	_, public, err := newKey()
	require.NoError(t, err)
	for _, c := range []Command{Files("/etc/kubernetes/pki", "ca.crt", "etcd/ca.crt"), KubeletLog(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), CloudInitLog(), UserData()} {
		cmd := exec.CommandContext(t.Context(), "shellcheck", "--shell=sh", "-")
		cmd.Stdin = strings.NewReader(c.script(public, part))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
