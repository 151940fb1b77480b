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
// write.
func TestTimeout(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	for _, args := range []string{"plan -f " + file, "create --yes -f " + file, "delete --yes -f " + file, "describe demo", "list", "kubeconfig demo"} {
		require.Equal(t, env.Interrupted, s.run(append([]string{"cluster", "--timeout", "1ns"}, strings.Fields(args)...)...), "%s: %s", args, s.err.String())
		assert.Contains(t, s.err.String(), "not done after 1ns (--timeout)", args)
		assert.NotContains(t, s.err.String(), "deadline", args)
	}
	s.variables["CLUSTERAWSADM_SIMULATE_SPEED"] = "60"
	create := []string{"cluster", "create", "--yes", "-f", file, "--timeout", "2500ms"}
	require.Equal(t, env.Halfway, s.run(create...), s.err.String())
	assert.Contains(t, s.err.String(), "not done after 2.5s (--timeout)")
	assert.Contains(t, s.err.String(), "To continue, run the command again")
}

// TestTimeoutReportsRealTime waits for an API server that never answers, on an account
// whose clock is faster than real time.
func TestTimeoutReportsRealTime(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--wait", "infrastructure"), s.err.String())
	s.silenced(t)
	s.variables["CLUSTERAWSADM_SIMULATE_SPEED"] = "100"
	require.Equal(t, env.Halfway, s.run("cluster", "create", "-f", file, "--yes", "--timeout", "2s"), "nothing was written, and it is to be run again all the same: %s", s.err.String())
	last := regexp.MustCompile(`not done after 2s \(--timeout\); it waited (\S+) for`).FindStringSubmatch(s.err.String())
	require.NotNil(t, last, s.err.String())
	waited, err := time.ParseDuration(last[1])
	require.NoError(t, err)
	assert.LessOrEqual(t, waited, 2*time.Second)
}

// TestConfirmationTimeDoesNotCount: the time until the user answers does not count for the
// run.
func TestConfirmationTimeDoesNotCount(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	s.terminal("")
	s.In = slow{strings.NewReader("y\n")}
	began := time.Now()
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "-o", "json"), s.err.String())
	most := time.Since(began) - 2*time.Second
	var result struct{ TookSeconds float64 }
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &result))
	assert.LessOrEqual(t, result.TookSeconds, most.Seconds()*2000, "the user took 4000 s of the account's time")
}

// slow is a user who answers after two seconds.
type slow struct{ *strings.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(2 * time.Second)
	return s.Reader.Read(p)
}

// TestRoleThatCannotBeAssumed: the error has the position in the manifest.
func TestRoleThatCannotBeAssumed(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--flavor", "multi-tenancy")
	for _, command := range []string{"plan", "create --yes", "delete --yes", "describe", "kubeconfig"} {
		require.Equal(t, env.Refused, s.run(append(append([]string{"cluster"}, strings.Fields(command)...), "-f", file)...), "%s: %s", command, s.err.String())
		assert.Regexp(t, `\nerror: \S+demo\.yaml:\d+ AWSClusterRoleIdentity/company spec\.roleARN: the role arn:aws:iam::123456789012:role/company-clusters cannot be assumed: AccessDenied: `, s.err.String(), command)
		assert.NotContains(t, s.err.String(), "operation error", command)
		assert.NotContains(t, s.err.String(), "the lock is kept on this machine", command)
	}
	assert.NoDirExists(t, filepath.Join(s.StateDir, "clusterawsadm", "us-east-1"))
	_, err := os.Stat(filepath.Join(s.StateDir, "clusterawsadm"))
	require.NoError(t, err)
}
