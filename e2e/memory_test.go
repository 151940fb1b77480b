//go:build e2e

package e2e

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemory measures how much memory the binary takes to create a cluster of E2E_WORKERS
// workers, to plan it again and to delete it. The account is in another process.
func TestMemory(t *testing.T) {
	workers := number(t, "E2E_WORKERS", 0)
	if workers == 0 {
		t.Skip("it takes minutes: set E2E_WORKERS, for example to 1000")
	}
	const limit = 128 << 10 // KiB, the unit of Linux
	path := quickstartOf(t, workers)
	s := serve(t)
	s.bootstrap(t, "create-cloudformation-stack")
	most := int64(0)
	for _, args := range [][]string{{"create", "-f", path, "--yes"}, {"plan", "-f", path, "--detailed-exitcode"}, {"delete", "-f", path, "--yes"}} {
		cmd, _, story := s.command(t.Context(), args...)
		_ = cmd.Run()
		require.Zero(t, cmd.ProcessState.ExitCode(), story.String())
		used := memoryOf(t, cmd)
		t.Logf("%s: %d MiB, %s of processor time", args[0], used>>10, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		most = max(most, used)
	}
	require.LessOrEqual(t, most, int64(limit))
}

// memoryOf returns the largest resident set of a process that has ended, in KiB.
func memoryOf(t *testing.T, cmd *exec.Cmd) int64 {
	t.Helper()
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(t, ok)
	return usage.Maxrss
}
