package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// onTerminal makes stdin, stdout and stderr a terminal of that size.
func (s *shellEnv) onTerminal(columns, rows int) {
	s.InIsTerminal, s.OutIsTerminal, s.ErrIsTerminal = true, true, true
	s.Size = func() (int, int) { return columns, rows }
	s.NoColour = true
}

// TestNarrowTerminal shows a cluster on narrow terminals: no line is wider, and the state of each machine is seen.
func TestNarrowTerminal(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--region", "us-east-1")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	for _, columns := range []int{60, 80, 120} {
		s.onTerminal(columns, 0)
		for _, args := range [][]string{
			{"describe", "demo"},
			{"describe", "-f", file},
			{"list"},
			{"plan", "-f", file},
			{"validate", "-f", file},
			{"upgrade-plan", "-f", file},
			{"graph", "-f", file},
		} {
			require.Equal(t, 0, s.run(append([]string{"cluster"}, args...)...), s.err.String())
			for line := range strings.Lines(s.out.String()) {
				if !strings.Contains(line, "https://") && strings.Contains(strings.TrimSpace(line), " ") { // an address is one word
					assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), columns, "%v: %s", args, line)
				}
			}
			if args[0] == "describe" {
				assert.Regexp(t, `machine/demo-md-0/0 .*Ready`, s.out.String(), "%d columns", columns)
				assert.Regexp(t, `node/demo-md-0/0 .*v1\.`, s.out.String(), "%d columns", columns)
			}
		}
		require.Equal(t, env.Failed, s.run("cluster", "describe", "nope"))
		assert.NotContains(t, s.err.String(), "cluster\nlist", "a command is one piece")
	}
	s.onTerminal(80, 0)
	require.Equal(t, 0, s.run("cluster", "upgrade-plan", "-f", file))
	assert.Regexp(t, `(?m)^v1\.\d+\.\d+ .* …$`, s.out.String(), "older patches give way")
	assert.Regexp(t, `demo-md-0\s+spec\.template\.spec\.version\n      v1\.\d+\.\d+ → v1`, s.out.String())
	require.Equal(t, 0, s.run("cluster", "explain"))
	for line := range strings.Lines(s.out.String()) {
		assert.LessOrEqual(t, len(line), 81)
	}
	s.NoColour = false
	require.Equal(t, env.Wrong, s.run("cluster", "graph", "-f", file, "-o", "x.svg"))
	assert.Contains(t, s.err.String(), "must be one of text,\n", "a colour takes no column")
	s.NoColour = true
	require.Equal(t, 0, s.run("cluster", "list"))
	assert.Regexp(t, `^NAME .*STATUS`, s.out.String())
	s.onTerminal(40, 0)
	require.Equal(t, 0, s.run("cluster", "list"))
	assert.Regexp(t, `^NAME +REGION +STATUS\n`, s.out.String())
}

// TestPager uses a pager for an answer that is longer than the terminal, and only there.
func TestPager(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	var paged []string
	s.Page = func(_ context.Context, command []string, text string) error {
		if command[0] == "nope" {
			return errors.New("executable file not found")
		}
		paged = append(paged, strings.Join(command, " "))
		assert.Contains(t, text, "\nPlan: ")
		assert.NotContains(t, text, "\xff", "control sequences are those of a terminal")
		return nil
	}
	plan := func(args ...string) string {
		t.Helper()
		paged = nil
		require.Equal(t, 0, s.run(append([]string{"cluster", "plan", "-f", file}, args...)...), s.err.String())
		if len(paged) == 0 {
			assert.Contains(t, s.out.String(), "\nPlan: ")
			return ""
		}
		assert.Empty(t, s.out.String())
		return paged[0]
	}
	assert.Empty(t, plan(), "stdout is no terminal")
	s.onTerminal(80, 24)
	assert.Equal(t, "less", plan())
	assert.Empty(t, plan("--no-pager"))
	s.NoPager = false
	s.variables["CLUSTERAWSADM_NO_PAGER"] = "true"
	assert.Empty(t, plan())
	delete(s.variables, "CLUSTERAWSADM_NO_PAGER")
	s.NoPager = false
	s.variables["PAGER"] = "more -s"
	assert.Equal(t, "more -s", plan())
	for _, none := range []string{"", "cat", "nope"} {
		s.variables["PAGER"] = none
		assert.Empty(t, plan(), none)
	}
	delete(s.variables, "PAGER")
	s.onTerminal(80, 1000)
	assert.Empty(t, plan(), "it fits")
	s.onTerminal(80, 24)
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "-o", "json"))
	assert.NotEmpty(t, s.out.String(), "a document is not paged")
}

// TestWatch shows a state again when it changes.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		s.simulated()
		file := s.generated(t)
		require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
		began := time.Now()
		require.Equal(t, 0, s.run("cluster", "list", "--watch", "--timeout", "12s"), s.err.String())
		assert.Equal(t, 12*time.Second, time.Since(began), "by the clock of the wall")
		assert.Equal(t, 1, strings.Count(s.out.String(), "NAME "), "nothing has changed")
		assert.Equal(t, 1, strings.Count(s.err.String(), "using the simulated"))
		s.onTerminal(80, 24)
		require.Equal(t, 0, s.run("cluster", "describe", "demo", "--watch", "--timeout", "12s"), s.err.String())
		assert.True(t, strings.HasPrefix(s.out.String(), "\x1b[H\x1b[2J"))
		require.Equal(t, env.Wrong, s.run("cluster", "describe", "demo", "--watch", "-o", "json"))
		require.Equal(t, env.Failed, s.run("cluster", "describe", "nope", "--watch"))
		assert.Contains(t, s.err.String(), "error: there is no cluster nope")
		ended := make(chan int)
		interrupts := make(chan os.Signal, 1)
		s.Interrupts = interrupts
		go func() { ended <- s.run("cluster", "list", "--watch") }()
		time.Sleep(7 * time.Second)
		interrupts <- os.Interrupt
		assert.Equal(t, env.Interrupted, <-ended)
		assert.NotContains(t, s.err.String(), "error", "the user has ended it")
	})
}
