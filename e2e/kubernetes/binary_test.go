package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// program returns the path of the program under test: E2E_BINARY, or the result of "make
// build".
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("E2E_BINARY")
	if path == "" {
		root, err := controlplane.Root()
		require.NoError(t, err)
		path = filepath.Join(root, "bin", "clusterawsadm")
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	require.FileExists(t, path, "make build makes it")
	return path
}

// shell runs the program.
type shell struct {
	t     *testing.T
	path  string
	env   []string
	stdin string

	out, err string // of the last command
}

// newShell returns a shell without a home directory and with those variables.
func newShell(t *testing.T, env ...string) *shell {
	t.Helper()
	return &shell{t: t, path: program(t), env: append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)}
}

// run runs a command and checks the exit code.
func (s *shell) run(code int, args ...string) {
	s.t.Helper()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), s.path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Stdin = s.env, &out, &err, bytes.NewReader([]byte(s.stdin))
	_ = cmd.Run() // only the exit code matters
	s.out, s.err = out.String(), err.String()
	require.Equal(s.t, code, cmd.ProcessState.ExitCode(), "%v\n%s%s", args, s.out, s.err)
}
