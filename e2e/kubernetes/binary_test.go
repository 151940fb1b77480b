package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"clusterawsadm/e2e/kubernetes/controlplane"
)

// TestMain builds the program once.
func TestMain(m *testing.M) { os.Exit(test(m)) }

func test(m *testing.M) int {
	dir, err := os.MkdirTemp("", "clusterawsadm-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary folder
	binary = filepath.Join(dir, "clusterawsadm")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", binary, "./cmd/clusterawsadm")
	build.Dir = controlplane.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// binary is the program under test.
var binary string

// shell runs the program.
type shell struct {
	t     *testing.T
	env   []string
	stdin string

	out, err string // of the last command
}

// newShell is a user without a home, who sets those variables.
func newShell(t *testing.T, env ...string) *shell {
	t.Helper()
	return &shell{t: t, env: append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)}
}

// run types a command, which is to end with a code.
func (s *shell) run(code int, args ...string) {
	s.t.Helper()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Stdin = s.env, &out, &err, bytes.NewReader([]byte(s.stdin))
	_ = cmd.Run() // its exit code says it all
	s.out, s.err = out.String(), err.String()
	require.Equal(s.t, code, cmd.ProcessState.ExitCode(), "%v\n%s%s", args, s.out, s.err)
}
