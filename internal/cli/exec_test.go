package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// reachable gives the machines of a role what the SSM agent needs.
func (s *shellEnv) reachable(t *testing.T, roles ...string) {
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, name := range roles {
			r := state.IAM.Roles[name+".cluster-api-provider-aws.sigs.k8s.io"]
			r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
		}
	})
}

// TestExec passes the streams and the exit code of a command on, by every name of a machine, and says why a machine
// cannot be reached.
func TestExec(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	require.Equal(t, env.Failed, s.run("cluster", "exec", "demo", "demo-md-0/0", "--", "hostname"))
	assert.Contains(t, s.err.String(), "the SSM agent has never reported: give the role of the machine the permissions of AmazonSSMManagedInstanceCore")
	s.reachable(t, "nodes", "control-plane")

	require.Equal(t, 0, s.run("cluster", "exec", "demo", "demo-md-0/0", "--", "hostname"), s.err.String())
	host := strings.TrimSpace(s.out.String())
	assert.Regexp(t, `^ip-[\d-]+\.`, host)
	for _, node := range []string{host, "machine/demo-md-0/0", strings.SplitN(host, ".", 2)[0]} {
		require.Equal(t, 0, s.run("cluster", "exec", "-f", file, node, "--", "echo", "it's", "a  test", "$HOME"), s.err.String())
		assert.Equal(t, "it's a  test $HOME\n", s.out.String(), node)
		assert.NotContains(t, s.err.String(), "warning")
	}
	for code, command := range map[int][]string{
		0: {"true"}, 1: {"false"}, 127: {"nonesuch"}, 42: {"sh", "-c", "echo oops >&2; exit 42"}, 193: {"sh", "-c", "exit 194"}, 5: {"sh", "-c", "exit 5"},
	} {
		require.Equal(t, code, s.run(append([]string{"cluster", "exec", "demo", host, "--"}, command...)...), s.err.String())
		assert.Empty(t, s.out.String())
		assert.NotContains(t, s.err.String(), "error:", "only the command speaks")
		if code == 42 {
			assert.True(t, strings.HasSuffix(s.err.String(), "\noops\n"), s.err.String())
		}
	}
	require.Equal(t, 0, s.run("cluster", "exec", "demo", host, "-o", "json", "--", "sh", "-c", "echo oops >&2; exit 3"), s.err.String())
	var out execDocument
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &out))
	assert.Equal(t, execDocument{Version: 1, Stderr: "oops\n", ExitCode: 3}, out)

	require.Equal(t, 0, s.run("cluster", "exec", "demo", host, "--", "echo", strings.Repeat("x", 30000)), s.err.String())
	assert.Len(t, s.out.String(), 24000)
	assert.Contains(t, s.err.String(), "warning: AWS keeps 24,000 characters of the output")

	require.Equal(t, env.Failed, s.run("cluster", "exec", "demo", "nope", "--", "true"))
	assert.Regexp(t, `cluster demo has no machine nope: it has demo-control-plane/0, demo-md-0/0`, s.err.String())
	require.Equal(t, env.Failed, s.run("cluster", "exec", "other", "nope", "--", "true"))
	assert.Contains(t, s.err.String(), "there is no cluster other in us-east-1")
	for _, wrong := range [][]string{
		{"demo", host},
		{"demo", host, "true"},
		{"demo", host, "--"},
		{"demo", "--", "true"},
		{"-f", file, "demo", host, "--", "true"},
		{"demo", host, "--limit", "49h", "--", "true"},
	} {
		require.Equal(t, env.Wrong, s.run(append([]string{"cluster", "exec"}, wrong...)...), "%v", wrong)
	}
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, i := range state.EC2.Instances {
			i.Stopped = i.Running
		}
	})
	require.Equal(t, env.Failed, s.run("cluster", "exec", "demo", host, "--", "true"))
	assert.Contains(t, s.err.String(), "does not run: it is stopped")
}

// execDocument is the JSON output of exec.
type execDocument struct {
	Version   int
	Stdout    string
	Stderr    string
	ExitCode  int
	Truncated bool
}
