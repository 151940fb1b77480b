package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"clusterawsadm/internal/cli/env"
)

// next is the file of an example that cannot be built yet.
func next(name string) string { return filepath.Join("..", "..", "configs", "next", name+".yaml") }

// A manifest of EKS is read and checked; nothing is done with it, not even a
// deletion by its tags, which would take the network from under EKS.
func TestEKSIsValidAndRefused(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "validate", "-f", next("eks-addons")), s.err.String())
	assert.Contains(t, s.out.String(), "cluster eks-addons in us-east-1, Kubernetes v1.34, control plane by EKS, 3 workers in 2 pools, 1 Fargate profile\n")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", next("machine-pool")), s.err.String())
	assert.Contains(t, s.out.String(), "1 control plane, 2 workers in 1 pool\n")

	for _, args := range [][]string{{"plan"}, {"create", "--yes"}, {"delete", "--yes"}} {
		require.Equal(t, env.Refused, s.run(append([]string{"cluster", args[0], "-f", next("eks")}, args[1:]...)...), s.err.String())
		assert.Contains(t, s.err.String(), "AWSManagedControlPlane/eks: clusters of EKS are not supported yet\n")
		assert.Empty(t, s.out.String())
	}
	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", next("machine-pool")), s.err.String())
	assert.Contains(t, s.err.String(), "MachinePool/machine-pool-mp-0: machine pools are not supported yet\n")
}

// CAPA_EKS_IAM is read from where variables are.
func TestRolesOfEKSByVariable(t *testing.T) {
	raw, err := os.ReadFile(next("eks"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "eks.yaml")
	require.NoError(t, os.WriteFile(file, append(raw, "  rolePath: /teams/\n"...), 0o600))
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file), s.err.String())
	assert.Contains(t, s.err.String(), "AWSManagedMachinePool/eks-pool-0 spec.rolePath: has no effect: the role is used as it is — set CAPA_EKS_IAM=true to have roles made")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--set", "CAPA_EKS_IAM=true"))
	assert.Empty(t, s.err.String())
	s.variables["CAPA_EKS_IAM"] = "maybe"
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file))
	assert.Equal(t, "error: CAPA_EKS_IAM is \"maybe\": want true or false\n", s.err.String())
}
