package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// session records commands and their output, for golden files.
type session struct {
	*shellEnv
	t   *testing.T
	log strings.Builder
}

func newSession(t *testing.T) *session {
	t.Helper()
	return &session{shellEnv: newShell(t), t: t}
}

// types runs a command, checks the exit code, and records the output.
func (s *session) types(code int, args ...string) {
	s.t.Helper()
	require.Equal(s.t, code, s.run(args...), "%v\n%s%s", args, s.out.String(), s.err.String())
	if code != 0 {
		assert.Equal(s.t, 1, strings.Count(s.err.String(), "error:"), "%v: told once: %s", args, s.err.String())
	}
	fmt.Fprintf(&s.log, "$ clusterawsadm %s\n", strings.Join(args, " "))
	for _, stream := range []struct{ name, text string }{{"stdout", s.out.String()}, {"stderr", s.err.String()}} {
		for line := range strings.Lines(stream.text) {
			fmt.Fprintf(&s.log, "%s| %s\n", stream.name, strings.TrimSuffix(line, "\n"))
		}
	}
	fmt.Fprintf(&s.log, "exit %d\n\n", code)
}

// transcript returns all commands and output. Pairs of texts are replaced, because they
// differ from run to run.
func (s *session) transcript(replace ...string) string {
	text := strings.NewReplacer(append(replace, filepath.Dir(s.HomeDir), "TEMP")...).Replace(s.log.String())
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "")
}

// simulates makes all commands use a simulated account whose clock does not advance. It
// is prepared in virtual time.
func (s *session) simulates(furnish func(t *testing.T, a *awssim.AWS)) {
	s.t.Helper()
	file := filepath.Join(filepath.Dir(s.HomeDir), "account.json")
	synctest.Test(s.t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		furnish(t, a)
		var state bytes.Buffer
		require.NoError(t, a.Save(&state))
		require.NoError(t, os.WriteFile(file, state.Bytes(), 0o600))
	})
	s.variables["CLUSTERAWSADM_SIMULATE"], s.variables["CLUSTERAWSADM_SIMULATE_STATE"] = "true", file
	s.variables["CLUSTERAWSADM_SIMULATE_SPEED"] = "1"
}
