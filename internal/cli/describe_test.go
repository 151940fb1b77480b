package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// silenced removes the Kubernetes clusters from a simulated account: the machines run,
// and no API server responds.
func (s *shellEnv) silenced(t *testing.T) {
	t.Helper()
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, i := range state.EC2.Instances {
			i.Boot = &awssim.Boot{At: i.Running, Failed: "[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2"}
		}
		clear(state.Kubernetes)
	})
}

// TestDescribeWithoutAPIServer describes a cluster whose API server does not
// respond.
func TestDescribeWithoutAPIServer(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--flavor", "resource-sets")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	s.silenced(t)

	require.Equal(t, 0, s.run("cluster", "describe", "-f", file), s.err.String())
	assert.Regexp(t, `\? resource-set/\S+ +unknown\n`, s.out.String())
	assert.NotContains(t, s.out.String(), "missing", "nobody can say that")
	assert.Regexp(t, `\d+ of \d+ up to date, \d+ unknown, \d+ pending\.\n$`, s.out.String())

	require.Equal(t, 0, s.run("cluster", "describe", "demo"), s.err.String())
	assert.NotContains(t, s.err.String(), "give up", "nothing is to go")
	assert.Regexp(t, `\n\d+ resources found\.\n$`, s.out.String(), "without a manifest nothing is wanted")

	require.Equal(t, env.Wrong, s.run("cluster", "describe", "demo", "--wait", "ready"))
	assert.Contains(t, s.err.String(), "use it with -f FILE")
	s.variables["CLUSTERAWSADM_WAIT"] = "ready"
	require.Equal(t, 0, s.run("cluster", "describe", "demo"), "a setting is for commands that it means something to")

	require.Equal(t, 0, s.run("cluster", "delete", "demo", "--yes", "--dry-run"))
	assert.Contains(t, s.err.String(), "the API server of the cluster cannot be used")
}

// TestHalfDeleted describes a cluster of which a deletion has not finished.
func TestHalfDeleted(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--flavor", "quickstart")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	const told = "has not finished: parts of the cluster are deleted. 'cluster delete' deletes the rest"
	require.Equal(t, 0, s.run("cluster", "describe", "demo", "--detailed-exitcode"))
	require.NotContains(t, s.out.String(), told)
	require.Equal(t, env.Halfway, s.run("cluster", "delete", "demo", "--yes", "--timeout", "50s"), s.err.String())

	for _, args := range [][]string{{"demo"}, {"-f", file}} {
		require.Equal(t, env.Changes, s.run(append([]string{"cluster", "describe", "--detailed-exitcode"}, args...)...))
		assert.Contains(t, s.out.String(), told)
	}
	require.Equal(t, 0, s.run("cluster", "describe", "demo", "-o", "jsonpath={.lastRun.command} {.lastRun.state}"), s.err.String())
	assert.Equal(t, "delete unfinished", strings.TrimSpace(s.out.String()))
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.Regexp(t, `\ndemo .* delete unfinished +`, s.out.String())
	require.Equal(t, 0, s.run("cluster", "list", "-o", "jsonpath={.clusters[0].lastRun.command} {.clusters[0].lastRun.state}"), s.err.String())
	assert.Equal(t, "delete unfinished", strings.TrimSpace(s.out.String()))
	require.Equal(t, env.Failed, s.run("cluster", "backup", "demo", "--recipient", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"))
	assert.Contains(t, s.err.String(), told)

	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "describe", "demo", "--detailed-exitcode"), s.out.String())
	assert.NotContains(t, s.out.String(), told)
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.Regexp(t, `\ndemo .* running +`, s.out.String())
}
