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

func configured(name string) string { return filepath.Join("..", "..", "configs", name+".yaml") }

// A manifest is read and checked, also where nothing can be done with it.
func TestEKSIsValid(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "validate", "-f", configured("eks-addons")), s.err.String())
	assert.Contains(t, s.out.String(), "cluster eks-addons in us-east-1, Kubernetes v1.34, control plane by EKS, 3 workers in 2 pools, 1 Fargate profile\n")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", next("machine-pool")), s.err.String())
	assert.Contains(t, s.out.String(), "1 control plane, 2 workers in 1 pool\n")

	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", next("machine-pool")), s.err.String())
	assert.Contains(t, s.err.String(), "MachinePool/machine-pool-mp-0: machine pools are not supported yet\n")
}

// CAPA_EKS_IAM is read from where variables are.
func TestRolesOfEKSByVariable(t *testing.T) {
	raw, err := os.ReadFile(configured("eks"))
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
