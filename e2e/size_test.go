//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// reviewSize is the size at which somebody should check what the program links: 75 MiB
// (docs/adr/0020-ordinary-build.md). It is not a limit.
const reviewSize = 75 << 20

// TestSize prints the size of the program, and warns above reviewSize: without the
// linker's dead-code elimination the size would double.
func TestSize(t *testing.T) {
	info, err := os.Stat(binary(t))
	require.NoError(t, err)
	t.Logf("%.1f MiB", float64(info.Size())/(1<<20))
	if info.Size() > reviewSize {
		t.Log("WARNING: more than 75 MiB: see docs/adr/0020-ordinary-build.md")
	}
	require.Less(t, info.Size(), int64(2*reviewSize), "a linked package switches off dead-code elimination: text/template, or reflection by method name")
}

// BenchmarkStart prints the start time and the size of the program, next to those of a
// program that links the same libraries and does nothing.
func BenchmarkStart(b *testing.B) {
	program, err := filepath.Abs(filepath.Join("..", "bin", "clusterawsadm"))
	require.NoError(b, err)
	info, err := os.Stat(program)
	require.NoError(b, err, "make build makes it")
	bare := filepath.Join(b.TempDir(), "bare")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", bare, "./testdata/bare")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	for _, c := range []struct {
		name    string
		command []string
	}{
		{"version", []string{program, "version"}},
		{"help", []string{program, "--help"}},
		{"bare", []string{bare}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, exec.CommandContext(b.Context(), c.command[0], c.command[1:]...).Run())
			}
			if c.command[0] == program {
				b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
			}
		})
	}
}
