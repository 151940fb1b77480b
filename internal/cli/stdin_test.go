//go:build unix

package cli

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inputs are commands that read standard input, with the name of what they read.
func inputs() map[string][]string {
	return map[string][]string{
		"validate":         {"cluster", "validate", "-f", "-"},
		"create":           {"cluster", "create", "-f", "-", "--simulate", "--yes"},
		"graph":            {"cluster", "graph", "-f", "-"},
		"report":           {"cluster", "report", "-"},
		"template":         {"bootstrap", "iam", "print-cloudformation-template", "--config", "-"},
		"credentials file": {"controller", "update-credentials", "--from-file", "-"},
	}
}

// An interrupt ends a command while it waits for standard input.
func TestInterruptWhileReadingInput(t *testing.T) {
	for name, args := range inputs() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShell(t)
				in, out := io.Pipe() // somebody who writes nothing
				interrupts := make(chan os.Signal)
				s.In, s.Interrupts = in, interrupts
				time.AfterFunc(time.Minute, func() { interrupts <- os.Interrupt })
				began := time.Now()
				require.Equal(t, 130, s.run(args...), s.err.String())
				assert.Less(t, time.Since(began), time.Minute+2*time.Second)
				assert.Contains(t, s.err.String(), "interrupted")
				assert.NotContains(t, s.err.String(), "from standard input (Ctrl-D", "the input is no terminal")
				require.NoError(t, out.Close())
			})
		})
	}
}

// The time limit of a command holds while it waits for standard input.
func TestTimeoutWhileReadingInput(t *testing.T) {
	for _, command := range []string{"validate", "create", "graph", "plan"} {
		t.Run(command, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShell(t)
				in, out := io.Pipe()
				s.In, s.InIsTerminal = in, true
				began := time.Now()
				require.Equal(t, 130, s.run("cluster", command, "-f", "-", "--timeout", "2s"), s.err.String())
				assert.Equal(t, 2*time.Second, time.Since(began))
				assert.Contains(t, s.err.String(), "reading the manifest from standard input (Ctrl-D ends it)\n")
				assert.Contains(t, s.err.String(), "not done after 2s (--timeout)")
				require.NoError(t, out.Close())
			})
		})
	}
}

// A manifest, an add-on and a plan may be named pipes, as those of -f <(command) are. Nobody
// opens these for writing.
func TestInterruptWhileReadingAPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	s := newShell(t)
	manifest := s.generated(t)
	for _, args := range [][]string{
		{"cluster", "validate", "-f", fifo},
		{"cluster", "validate", "-f", manifest, "--addon", fifo},
		{"cluster", "plan", "show", fifo},
		{"cluster", "report", fifo},
		{"bootstrap", "iam", "print-config", "--config", fifo},
		{"version", "--config", fifo},
	} {
		s := newShell(t)
		interrupts := make(chan os.Signal)
		s.Interrupts = interrupts
		go func() { interrupts <- os.Interrupt }()
		require.Equal(t, 130, s.run(args...), "%v: %s", args, s.err.String())
	}
	// It ends the openings. It stays open, for those that have not begun yet: a goroutine in a system call keeps simulated time from jumping.
	_, err := syscall.Open(fifo, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
}
