package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// Without a control plane, create and plan are refused before the first write. A new etcd is begun only
// after the name of the cluster was typed: as the value of the flag, or on a terminal.
func TestLostControlPlane(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, i := range state.EC2.Instances {
			if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "control-plane" {
				i.Terminating, i.Terminated = i.Running, i.Running.Add(time.Second)
			}
		}
	})
	for _, args := range [][]string{{"plan", "-f", file}, {"create", "-f", file, "--yes"}, {"create", "-f", file, "--yes", "--dry-run"}} {
		require.Equal(t, env.Refused, s.run(append([]string{"cluster"}, args...)...), "%v", args)
		assert.Regexp(
			t,
			`error: the control plane is lost: /clusterawsadm/demo/init says that the cluster was begun, and none of its machines exists any more: i-[0-9a-f]{17} \(demo-control-plane-\w+, terminated\)\.`,
			s.err.String(),
		)
		assert.Contains(t, s.err.String(), "restore a snapshot that 'cluster backup demo' has saved")
		assert.Contains(t, s.err.String(), "begin a new, empty etcd with --new-etcd=demo")
	}
	require.Equal(t, env.Wrong, s.run("cluster", "create", "-f", file, "--yes", "--new-etcd"))
	assert.Contains(t, s.err.String(), "then pass --new-etcd=demo and --yes")
	require.Equal(t, env.Wrong, s.run("cluster", "create", "-f", file, "--yes", "--new-etcd=other"))
	assert.Contains(t, s.err.String(), "--new-etcd=other does not name the cluster of the manifest, demo")
	require.Equal(t, env.OK, s.run("cluster", "plan", "-f", file, "--new-etcd"), s.err.String())
	assert.Contains(t, s.err.String(), "all objects of the cluster are lost")

	s.terminal("y\n")
	require.Equal(t, env.Refused, s.run("cluster", "create", "-f", file, "--yes", "--new-etcd"))
	assert.Contains(t, s.err.String(), "all objects of the cluster are lost. Type its name to go on: ")
	s.terminal("demo\n")
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", file, "--yes", "--new-etcd"), s.err.String())
	s.InIsTerminal, s.ErrIsTerminal = false, false
	require.Equal(t, env.OK, s.run("cluster", "plan", "-f", file), s.err.String())
	assert.Contains(t, s.out.String(), "No changes: ")
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", file, "--yes", "--new-etcd=demo"), "the same again: "+s.err.String())
}

// A cluster that has its control plane keeps its etcd.
func TestNewEtcdOfALivingCluster(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	require.Equal(t, env.Refused, s.run("cluster", "create", "-f", file, "--yes", "--new-etcd=demo"))
	assert.Regexp(t, `the cluster has not lost its control plane \(i-[0-9a-f]{17}\): run without --new-etcd`, s.err.String())
}
