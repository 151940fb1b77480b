//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// usualSpeed is how much faster than AWS moto is assumed to be: if AWS usually takes two and
// a half minutes for a load balancer, the run waits five seconds. Timeouts are shorter by
// the same factor, so a machine that is busy needs a lower one: E2E_SPEED.
const usualSpeed = "30"

// binary returns the path of the program under test: E2E_BINARY, or the result of "make
// build".
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("E2E_BINARY")
	if path == "" {
		path = filepath.Join("..", "bin", "clusterawsadm")
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	require.FileExists(t, path, "make build makes it")
	return path
}

// speed returns E2E_SPEED, or the usual speed.
func speed() string { return cmp.Or(os.Getenv("E2E_SPEED"), usualSpeed) }

// shell runs the program in that account.
type shell struct {
	program string
	server  *moto.Server
	env     []string // arguments for every command
	home    string
}

func newShell(t *testing.T, server *moto.Server, env ...string) *shell {
	t.Helper()
	return &shell{program: binary(t), server: server, env: env, home: t.TempDir()}
}

// command returns a command that has not been started. It does not inherit environment
// variables.
func (s *shell) command(ctx context.Context, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	cmd = exec.CommandContext(ctx, s.program, append([]string{"cluster"}, args...)...)
	cmd.Env = append([]string{
		"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "AWS_ENDPOINT_URL=" + s.server.URL, "AWS_REGION=" + moto.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true", "CLUSTERAWSADM_EMULATOR_SPEED=" + speed(),
		"CLUSTERAWSADM_WAIT=infrastructure", // machines in moto do not boot
	}, s.env...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints what it waits for
	cmd.WaitDelay = 10 * time.Second
	return cmd, stdout, stderr
}

// limited returns a context with a time limit for one command. A command that hangs is ended, and the test shows what it was waiting for.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run runs a command, checks the exit code, and returns the output.
func (s *shell) run(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd, out, story := s.command(limited(t), args...)
	_ = cmd.Run() // only the exit code matters
	require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s\n%s%s", args, out, story)
	return out.String(), story.String()
}
