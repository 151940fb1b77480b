package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestTimeout runs commands with a short timeout, which ends before and after the first
// write. It counts the time of the account.
func TestTimeout(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	for _, args := range []string{"plan -f " + file, "create --yes -f " + file, "delete --yes -f " + file, "describe demo", "list", "kubeconfig demo"} {
		require.Equal(
			t,
			env.Interrupted,
			s.run(append([]string{"cluster", "--faults", "1:slow", "--timeout", "1s"}, strings.Fields(args)...)...),
			"%s: %s",
			args,
			s.err.String(),
		)
		assert.Contains(t, s.err.String(), "not done after 1s (--timeout)", args)
		assert.NotContains(t, s.err.String(), "deadline", args)
	}
	create := []string{"cluster", "create", "--yes", "-f", file, "--timeout", "2m30s"}
	require.Equal(t, env.Halfway, s.run(create...), s.err.String())
	assert.Contains(t, s.err.String(), "not done after 2m30s (--timeout)")
	assert.Contains(t, s.err.String(), "To continue, run the command again")
	require.Equal(t, 0, s.run(create...), "the rest takes less: %s", s.err.String())
}

// TestTimeoutReportsTheWait waits for an API server that never answers.
func TestTimeoutReportsTheWait(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--wait", "infrastructure"), s.err.String())
	s.silenced(t)
	require.Equal(
		t,
		env.Halfway,
		s.run("cluster", "create", "-f", file, "--yes", "--timeout", "2m"),
		"nothing was written, and it is to be run again all the same: %s",
		s.err.String(),
	)
	last := regexp.MustCompile(`not done after 2m0s \(--timeout\); it waited (\S+) for`).FindStringSubmatch(s.err.String())
	require.NotNil(t, last, s.err.String())
	waited, err := time.ParseDuration(last[1])
	require.NoError(t, err)
	assert.LessOrEqual(t, waited, 2*time.Minute)
	assert.Greater(t, waited, time.Minute)
}

// TestTimeStandsStillDuringAQuestion: the time until the user answers does not count, neither for
// the run nor for --timeout.
func TestTimeStandsStillDuringAQuestion(t *testing.T) {
	took := func(ask bool) float64 {
		s := newShell(t)
		file := s.generated(t)
		s.simulated()
		args := []string{"cluster", "create", "-f", file, "-o", "json", "--timeout", "1h", "--simulate-state", filepath.Join(t.TempDir(), "account.json")}
		if ask {
			s.terminal("")
			s.In = slow{strings.NewReader("y\n")}
		} else {
			args = append(args, "--yes")
		}
		require.Equal(t, 0, s.run(args...), s.err.String())
		var result struct{ TookSeconds float64 }
		require.NoError(t, json.Unmarshal(s.out.Bytes(), &result))
		return result.TookSeconds
	}
	assert.InDelta(t, took(false), took(true), 0.01)
}

// slow is a user who needs some time to answer.
type slow struct{ *strings.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return s.Reader.Read(p)
}

// TestRoleThatCannotBeAssumed: the error has the position in the manifest.
func TestRoleThatCannotBeAssumed(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--flavor", "multi-tenancy")
	for _, command := range []string{"plan", "create --yes", "delete --yes", "describe", "kubeconfig"} {
		require.Equal(t, env.Refused, s.run(append(append([]string{"cluster"}, strings.Fields(command)...), "-f", file)...), "%s: %s", command, s.err.String())
		assert.Regexp(
			t,
			`\nerror: \S+demo\.yaml:\d+ AWSClusterRoleIdentity/company spec\.roleARN: the role arn:aws:iam::123456789012:role/company-clusters cannot be assumed: AccessDenied: `,
			s.err.String(),
			command,
		)
		assert.NotContains(t, s.err.String(), "operation error", command)
		assert.NotContains(t, s.err.String(), "the lock is kept on this machine", command)
	}
	assert.NoDirExists(t, filepath.Join(s.StateDir, "clusterawsadm", "us-east-1"))
	_, err := os.Stat(filepath.Join(s.StateDir, "clusterawsadm"))
	require.NoError(t, err)
}
