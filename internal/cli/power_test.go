package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestStopAndStart stops a cluster and starts it again, and says in between what is refused.
func TestStopAndStart(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--flavor", "machine-pool")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())

	require.Equal(t, env.Wrong, s.run("cluster", "stop", "demo"))
	assert.Contains(t, s.err.String(), "stdin is not a terminal: review with 'clusterawsadm cluster stop --dry-run', then pass --yes")
	require.Equal(t, env.Failed, s.run("cluster", "stop", "nowhere", "--yes"))
	assert.Contains(t, s.err.String(), "there is no cluster nowhere in us-east-1")

	require.Equal(t, 0, s.run("cluster", "stop", "-f", file, "--dry-run"), s.err.String())
	assert.Regexp(t, `machine/demo-control-plane/0[^\n]*\n.*state +running → stopped`, s.out.String())
	assert.Contains(t, s.out.String(), "replicas")
	assert.Regexp(t, `Cost: about \$[\d.,]+ → \$[\d.,]+ a month, −\$`, s.out.String())
	assert.Contains(t, s.err.String(), "back up the cluster before")

	require.Equal(t, 0, s.run("cluster", "stop", "demo", "--yes", "-o", "json"), s.err.String())
	var out map[string]any
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &out))
	assert.Equal(t, "demo", out["cluster"])
	assert.Regexp(t, `Cluster demo in us-east-1 is stopped \(\d resources stopped, `, s.err.String())
	assert.Regexp(t, `It saves about \$[\d.,]+ of \$[\d.,]+ a month; \$[\d.,]+ goes on: NAT gateways \$`, s.err.String())
	assert.Contains(t, s.err.String(), "start it again: clusterawsadm cluster start demo --region us-east-1 --simulate")
	require.Equal(t, 0, s.run("cluster", "stop", "demo", "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 is stopped already.")

	for _, args := range [][]string{{"create", "--yes"}, {"plan"}, {"create", "--dry-run"}} {
		require.Equal(t, env.Refused, s.run(append([]string{"cluster", args[0], "-f", file}, args[1:]...)...), args)
		assert.Regexp(t, `cluster demo has been stopped since \S+: start it first with 'clusterawsadm cluster start demo --region us-east-1'`, s.err.String())
		assert.NotContains(t, s.out.String(), "to create")
	}
	require.Equal(t, env.Refused, s.run("cluster", "wait", "demo"))
	for _, args := range [][]string{{"demo"}, {"-f", file}} {
		require.Equal(t, 0, s.run(append([]string{"cluster", "describe"}, args...)...), s.err.String())
		assert.Regexp(t, `API server: no control plane runs\nStopped \S+ ago: 'cluster start demo' starts its machines\.\n`, s.out.String())
		assert.Regexp(t, `■ machine/demo-control-plane/0 .*stopped`, s.out.String())
		assert.Regexp(t, `2 stopped\.\n$`, s.out.String())
		assert.NotContains(t, s.out.String(), "conflict")
	}
	require.Equal(t, 0, s.run("cluster", "describe", "demo", "-o", "jsonpath={.stopped}"), s.err.String())
	assert.Regexp(t, `^\d{4}-`, s.out.String())
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.Regexp(t, `demo +us-east-1 .* stopped `, s.out.String())

	require.Equal(t, 0, s.run("cluster", "start", "demo", "--yes"), s.err.String())
	assert.Empty(t, s.out.String())
	assert.Regexp(t, `Cluster demo in us-east-1 runs again \(\d resources started, `, s.err.String())
	assert.Contains(t, s.err.String(), "wait until its Nodes are ready: clusterawsadm cluster wait --for ready demo --region us-east-1 --simulate")
	require.Equal(t, 0, s.run("cluster", "start", "demo", "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 has nothing to start.")
	require.Equal(t, 0, s.run("cluster", "wait", "demo"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--detailed-exitcode"), s.out.String())

	require.Equal(t, 0, s.run("cluster", "stop", "demo", "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "start", "demo", "--yes", "--wait", "ready"), s.err.String())
	assert.NotContains(t, s.err.String(), "wait until its Nodes are ready")
	assert.Regexp(
		t,
		`Cluster demo in us-east-1 runs again .*\n(.*waiting for .* to be ready: .*\n)*Cluster demo in us-east-1 is ready \(\S+\)\.\n$`,
		s.err.String(),
	)
	require.Equal(t, env.Wrong, s.run("cluster", "stop", "demo", "--yes", "--wait", "ready"))

	require.Equal(t, 0, s.run("cluster", "stop", "demo", "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "delete", "demo", "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
}

// TestStopOnATerminal asks before it stops a cluster.
func TestStopOnATerminal(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	s.terminal("n\n")
	require.NotEqual(t, 0, s.run("cluster", "stop", "demo"))
	assert.Contains(t, s.err.String(), "Stop cluster demo in us-east-1")
	s.terminal("y\n")
	require.Equal(t, 0, s.run("cluster", "stop", "demo"), s.err.String())
	assert.Contains(t, s.err.String(), "is stopped (")
	s.terminal("y\n")
	require.Equal(t, 0, s.run("cluster", "start", "demo"), s.err.String())
	assert.Contains(t, s.err.String(), "Start cluster demo in us-east-1")
}

// TestStopIsRefused says what EC2 would not stop, one line for each.
func TestStopIsRefused(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, i := range state.EC2.Instances {
			i.StopProtected = true
		}
	})
	for _, args := range []string{"--yes", "--dry-run"} {
		require.Equal(t, env.Refused, s.run("cluster", "stop", "demo", args), s.err.String())
		assert.Equal(t, 2, strings.Count(s.err.String(), "it has stop protection: aws ec2 modify-instance-attribute"), fmt.Sprint(args, s.err.String()))
	}
}
