//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxSize is how many bytes the program may have: 50 MiB. What they go to is
// in docs/adr/0016-binary-size.md.
const maxSize = 50 << 20

// TestSize keeps the program small. Dead-code elimination switched off by one
// template engine would double it.
func TestSize(t *testing.T) {
	info, err := os.Stat(binary(t))
	require.NoError(t, err)
	t.Logf("%.1f MiB", float64(info.Size())/(1<<20))
	assert.LessOrEqual(t, info.Size(), int64(maxSize), "see docs/adr/0016-binary-size.md")
}

// TestStandIns holds the modules below hack that go.mod has in place of
// libraries to their word: what they leave out is never called, or the linker
// would have kept it, and with it what it panics with.
func TestStandIns(t *testing.T) {
	program, err := os.ReadFile(binary(t))
	require.NoError(t, err)
	assert.False(t, bytes.Contains(program, []byte("stand-in of ")), "a function that only panics is linked: see the replace lines of go.mod")
}

// BenchmarkStart prints how long the program takes to start, next to one that
// links the same libraries and does nothing, and how large it is.
func BenchmarkStart(b *testing.B) {
	program, err := filepath.Abs(filepath.Join("..", "bin", "clusterawsadm"))
	require.NoError(b, err)
	info, err := os.Stat(program)
	require.NoError(b, err, "make build makes it")
	bare := filepath.Join(b.TempDir(), "bare")
	build := exec.CommandContext(b.Context(), "go", "build", "-tags", "nethttpomithttp2", "-trimpath",
		"-gcflags=all=-l -dwarf=false -d=maxshapelen=64,variablemakethreshold=0", "-ldflags=-s -w", "-o", bare, "./testdata/bare")
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
