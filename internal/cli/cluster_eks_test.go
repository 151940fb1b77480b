package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

func configured(name string) string { return filepath.Join("..", "..", "configs", name+".yaml") }

// Manifests of EKS and of pools are valid.
func TestEKSIsValid(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "validate", "-f", configured("eks-addons")), s.err.String())
	assert.Contains(t, s.out.String(), "cluster eks-addons in us-east-1, Kubernetes v1.34, EKS control plane, 3 workers in 2 pools, 1 Fargate profile\n")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", configured("machine-pool")), s.err.String())
	assert.Contains(t, s.out.String(), "1 control plane, 2 workers in 1 pool\n")
}

// TestEKSClusterCommands runs the commands for an EKS cluster.
func TestEKSClusterCommands(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := configured("eks")
	step := s.steps(t)
	s.variables["CAPA_EKS_IAM"] = "true"
	step(0, "plan", "-f", file)
	assert.Contains(t, s.out.String(), "+ eks-cluster\n")
	assert.Contains(t, s.out.String(), "AWS takes about 12 minutes.")
	step(1, "kubeconfig", "-f", file)
	assert.Contains(t, s.err.String(), "EKS cluster default_eks does not exist in us-east-1: create it first")
	step(0, "create", "-f", file, "--yes")
	assert.Contains(t, s.err.String(), "API server: https://")
	step(0, "plan", "-f", file, "--detailed-exitcode")
	step(0, "describe", "-f", file)
	assert.Regexp(t, `eks-cluster +cluster/default_eks +1\.34 https://`, s.out.String())
	assert.Regexp(t, `node-group/default_eks-pool-0 .* 2 nodes t3\.large`, s.out.String())
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	withMethod := filepath.Join(t.TempDir(), "eks.yaml")
	require.NoError(
		t,
		os.WriteFile(withMethod, bytes.Replace(raw, []byte("  region: us-east-1\n"), []byte("  region: us-east-1\n  tokenMethod: iam-authenticator\n"), 1), 0o600),
	)
	for command, args := range map[string][]string{
		"clusterawsadm": {"-f", file}, "aws": {"eks", "--token-method", "aws-cli"}, "aws-iam-authenticator": {"-f", withMethod},
	} {
		step(0, append([]string{"kubeconfig"}, args...)...)
		config, err := clientcmd.Load(s.out.Bytes())
		require.NoError(t, err)
		assert.Equal(t, "default_eks-user@default_eks", config.CurrentContext)
		assert.Equal(t, command, filepath.Base(config.AuthInfos["default_eks-user"].Exec.Command))
	}
	step(0, "delete", "eks", "--yes")
	assert.Contains(t, s.err.String(), "is deleted (")
	step(0, "delete", "-f", file, "--yes")
	assert.Contains(t, s.err.String(), "Cluster eks in us-east-1 has no resources")
}

// TestEveryFlavorOfEKS creates, in a new simulated account, each flavor that needs no
// existing network. Nothing has to be prepared.
func TestEveryFlavorOfEKS(t *testing.T) {
	tried := 0
	for _, flavor := range flavors(t) {
		if !strings.HasPrefix(flavor, "eks") || strings.Contains(flavor, "byo") {
			continue
		}
		tried++
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			file := s.generated(t, "--flavor", flavor)
			s.simulated()
			require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
			require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--detailed-exitcode"), s.out.String()+s.err.String())
		})
	}
	assert.GreaterOrEqual(t, tried, 8)
}

// TestRehearseEKS rehearses a cluster of EKS in a new account.
func TestRehearseEKS(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "rehearse", "-f", configured("eks-iam")), s.err.String())
	assert.Contains(t, s.out.String(), "Left in the account: nothing")
}

// TestPoolCommands runs the commands for a cluster with a machine pool.
func TestPoolCommands(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := configured("machine-pool")
	step := s.steps(t)
	step(0, "plan", "-f", file)
	assert.Contains(t, s.out.String(), "+ launch-template/machine-pool-mp-0\n")
	assert.Contains(t, s.out.String(), "+ auto-scaling-group/machine-pool-mp-0\n")
	assert.NotContains(t, s.err.String(), "warning", "its control plane keeps the token valid that the pool's machines join with")
	step(0, "create", "-f", file, "--yes")
	step(0, "plan", "-f", file, "--detailed-exitcode")
	step(0, "describe", "-f", file)
	assert.Regexp(
		t,
		`auto-scaling-group/machine-pool-mp-0 +machine-pool-mp-0 +pending +2 of 2 joined, 0 ready; 2 of 2 in service, i-[0-9a-f]{17} us-east-1[abc] m6i\.large, i-`,
		s.out.String(),
	)
	step(0, "describe", "machine-pool")
	assert.Regexp(t, `auto-scaling-group/machine-pool-mp-0 +machine-pool-mp-0 +pending +2 of 2 joined, 0 ready; 2 of 2 in service`, s.out.String())
	step(0, "delete", "machine-pool", "--yes")
	assert.Contains(t, s.err.String(), "is deleted (")
}

// CAPA_EKS_IAM is a variable like others.
func TestRolesOfEKSByVariable(t *testing.T) {
	raw, err := os.ReadFile(configured("eks"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "eks.yaml")
	require.NoError(t, os.WriteFile(file, append(raw, "  rolePath: /teams/\n"...), 0o600))
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file), s.err.String())
	assert.Contains(
		t,
		s.err.String(),
		"AWSManagedMachinePool/eks-pool-0 spec.rolePath: has no effect: this program does not change existing roles — set CAPA_EKS_IAM=true to create roles",
	)
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--set", "CAPA_EKS_IAM=true"))
	assert.Empty(t, s.err.String())
	s.variables["CAPA_EKS_IAM"] = "maybe"
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file))
	assert.Equal(t, "error: CAPA_EKS_IAM is \"maybe\": it must be true or false\n", s.err.String())
}

// TestImportCommand imports a cluster, and exports it by its name.
// import --all lists what it would make of each cluster of the region, also of one that it cannot describe.
func TestImportAll(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "import", "--all"), s.err.String())
	assert.Contains(t, s.err.String(), "no clusters found in us-east-1\n")
	require.Equal(t, 0, s.run("cluster", "create", "-f", configured("eks"), "--yes"), s.err.String())
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, c := range state.EKS.Clusters {
			delete(c.Tags, "kubernetes.io/cluster/default_eks") // another tool has made it
			delete(c.Tags, "sigs.k8s.io/cluster-api-provider-aws/cluster/eks")
			delete(c.Tags, "sigs.k8s.io/cluster-api-provider-aws/cluster/default_eks")
		}
		state.EC2.Limits.Addresses = 20
	})
	require.Equal(t, 0, s.run("cluster", "create", "-f", configured("quickstart"), "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "import", "--all"), s.err.String())
	assert.Regexp(
		t,
		`(?m)^NAME +TYPE +MANIFEST +OBJECTS +LEFT OUT +CHANGES +TAGS *\ndefault_eks +eks +yes +5 +0 +0 +[1-9]\d* *\nquickstart +kubeadm +yes +\d+ +\d+ +0 +0 *\n\z`,
		s.out.String(),
	)
	s.simulatedAccount(t, func(state *awssim.State) { clear(state.EKS.Clusters) }) // its network has tags of Cluster API
	require.Equal(t, 0, s.run("cluster", "import", "--all"), s.err.String())
	assert.Regexp(t, `(?m)^eks +kubeadm +no +- +- +- +- *$`, s.out.String())
	assert.Regexp(t, `(?m)^eks: no manifest can describe the cluster: `, s.err.String())
	require.Equal(t, env.Wrong, s.run("cluster", "import", "--all", "--to", "x.yaml"))
	assert.Contains(t, s.err.String(), "--all writes no manifest and sets no tags")
	require.Equal(t, env.Wrong, s.run("cluster", "import", "--all", "eks"))
}

func TestImportCommand(t *testing.T) {
	s := newShell(t)
	s.simulated()
	s.variables["CAPA_EKS_IAM"] = "true"
	step := s.steps(t)
	step(0, "create", "-f", configured("eks"), "--yes")
	delete(s.variables, "CAPA_EKS_IAM")
	step(0, "import", "default_eks")
	assert.Contains(t, s.err.String(), "a plan of the manifest is empty\n")
	printed := s.out.String()
	assert.Contains(t, printed, "# The cluster has IAM roles of its own: use --set CAPA_EKS_IAM=true with each command.\n")
	file := filepath.Join(t.TempDir(), "eks.yaml")
	step(0, "import", "eks", "--to", file, "--adopt")
	assert.Contains(t, s.err.String(), "wrote "+file)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, printed, string(written))
	step(0, "import", "eks", "--to", file) // it has the same content
	step(0, "plan", "-f", file, "--set", "CAPA_EKS_IAM=true", "--detailed-exitcode")
	step(0, "export", "eks")
	assert.Contains(t, s.out.String(), "kind: AWSManagedMachinePool\n")

	step(env.Failed, "import", "nobody")
	assert.Contains(t, s.err.String(), "error: there is no cluster nobody in us-east-1: ")
	step(env.Wrong, "import", "a b")
	step(env.Wrong, "import", "eks", "--to", configured("eks"))
	assert.Contains(t, s.err.String(), "eks.yaml exists and has another content: choose another file with --to\n")
	step(env.Wrong, "export", "eks", "-f", file)
	step(0, "delete", "-f", file, "--set", "CAPA_EKS_IAM=true", "--yes")
	step(0, "create", "-f", configured("quickstart"), "--yes")
	file = filepath.Join(t.TempDir(), "quickstart.yaml")
	step(0, "import", "quickstart", "--to", file)
	assert.Contains(t, s.err.String(), "a plan of the manifest is empty\n")
	step(0, "plan", "-f", file, "--detailed-exitcode")
	step(0, "export", "-f", configured("quickstart"))
	exported := s.out.String()
	step(0, "export", "quickstart")
	assert.Equal(t, exported, s.out.String())
	assert.Contains(t, s.err.String(), "left out 5 Secrets with the keys of the cluster")
}
