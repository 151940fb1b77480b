package cli

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// TestImportKeysFromMachine imports a cluster whose keys are only on its machines.
func TestImportKeysFromMachine(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	s.simulatedAccount(t, func(state *awssim.State) {
		maps.DeleteFunc(state.SSM.Parameters, func(name string, _ *awssim.Parameter) bool { return strings.Contains(name, "/pki/") })
	})
	require.Equal(t, 0, s.run("cluster", "import", "demo", "--pki-from", "ssm"), s.err.String())
	assert.Regexp(
		t,
		`warning: the keys of the cluster could not be read on its machines: i-\w+: the SSM agent has never reported: give the role of the machine the permissions of AmazonSSMManagedInstanceCore`,
		s.err.String(),
	)
	assert.Contains(t, s.out.String(), "kind: KubeadmControlPlane", "the import goes on without them")
	require.Equal(t, env.Refused, s.run("cluster", "import", "demo", "--pki-from", "ssm", "--adopt", "--yes"), s.err.String())

	s.simulatedAccount(t, func(state *awssim.State) {
		r := state.IAM.Roles["control-plane.cluster-api-provider-aws.sigs.k8s.io"]
		r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
	})
	require.Equal(t, 0, s.run("cluster", "import", "demo", "--boot-data-from", "ssm"), s.err.String())
	assert.Regexp(t, `left out boot data of i-\w+: the SSM agent has never reported: `, s.err.String(), "the worker")
	require.Equal(t, env.Wrong, s.run("cluster", "import", "demo", "--boot-data-from", "./folder"))
	assert.Contains(t, s.err.String(), "--boot-data-from ./folder: it can only be ssm")

	require.Equal(t, 0, s.run("cluster", "import", "demo", "--pki-from", "ssm", "--adopt", "--yes"), s.err.String())
	assert.Regexp(t, `the keys of the cluster were read on i-\w+\n`, s.err.String())
	assert.NotContains(t, s.out.String()+s.err.String(), "PRIVATE KEY")
	s.simulatedAccount(t, func(state *awssim.State) {
		stored := ""
		enginetest.EditKeys(state, "demo", func(keys map[string]string) { stored += keys["ca.key"] })
		assert.Contains(t, stored, "PRIVATE KEY")
	})
}
