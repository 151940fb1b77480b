package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestWarningsOfOneSort: warnings of one sort are one line of every command for people, and each by itself for programs and as errors.
func TestWarningsOfOneSort(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "release.yaml")
	var apps strings.Builder
	for i := range 20 {
		fmt.Fprintf(&apps, "---\napiVersion: application.giantswarm.io/v1alpha1\nkind: App\nmetadata: {name: a%d}\n", i)
	}
	require.NoError(t, os.WriteFile(file, append(text, []byte(apps.String())...), 0o600))

	const line = ": 20 × App (a0, a1, a2, …): are for a management cluster and are ignored\n"
	for _, command := range [][]string{
		{"validate"}, {"plan", "--simulate"}, {"create", "--simulate", "--yes"}, {"delete", "--simulate", "--yes"},
	} {
		require.Equal(t, 0, s.run(append([]string{"cluster"}, append(command, "-f", file)...)...), s.err.String())
		assert.Equal(t, 1, strings.Count(s.err.String(), line), "%s: %s", command[0], s.err.String())
		assert.Equal(t, 1, strings.Count(s.err.String(), "management cluster"), "%s: %s", command[0], s.err.String())
	}

	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "-o", "json"), s.err.String())
	var valid struct{ Warnings []string }
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &valid))
	assert.Len(t, valid.Warnings, 20)
	require.Equal(t, 0, s.run("cluster", "create", "--simulate", "--yes", "--progress", "json", "-f", file), s.err.String())
	assert.Equal(t, 20, strings.Count(s.err.String(), "App in application.giantswarm.io/v1alpha1 is for a management cluster"))
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file, "--strict"))
	assert.Equal(t, 20, strings.Count(s.err.String(), "App in application.giantswarm.io/v1alpha1 is for a management cluster"))
}

// TestRunsThatEndEarly: a run that ends before the API server answers, though nobody has chosen it, says why.
func TestRunsThatEndEarly(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "private.yaml")
	const balancer = "loadBalancerType: nlb\n"
	require.Contains(t, string(text), balancer)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), balancer, balancer+"    scheme: internal\n", 1)), 0o600))

	const why = "spec.controlPlaneLoadBalancer.scheme): run again in the network of the VPC, with --wait=ready"
	require.Equal(t, 0, s.run("cluster", "plan", "--simulate", "-f", file), s.err.String())
	assert.Contains(t, s.out.String(), why)
	require.Equal(t, 0, s.run("cluster", "plan", "--simulate", "--wait=infrastructure", "-f", file), s.err.String())
	assert.NotContains(t, s.out.String(), why, "the user has chosen it")
	for range 2 {
		require.Equal(t, 0, s.run("cluster", "create", "--simulate", "--yes", "-f", file), s.err.String())
		assert.Contains(t, s.err.String(), why)
	}
}

// TestPodNetworkByCommands: nothing is said of a missing pod network if a command of the control plane may install it.
func TestPodNetworkByCommands(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--cni", "none"), s.err.String())
	const plane = "  kubeadmConfigSpec:\n"
	require.Contains(t, s.out.String(), plane)
	file := filepath.Join(t.TempDir(), "plain.yaml")
	for commands, lacks := range map[string]bool{
		"": true,
		"    postKubeadmCommands: [kubectl get nodes]\n":                                                                        true,
		"    postKubeadmCommands: [kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f https://example.com/calico.yaml]\n": false,
		"    postKubeadmCommands: [helm upgrade --install cilium cilium/cilium]\n":                                              false,
	} {
		require.Equal(t, 0, s.run("cluster", "generate", "demo", "--cni", "none"), s.err.String())
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(s.out.String(), plane, plane+commands, 1)), 0o600))
		require.Equal(t, 0, s.run("cluster", "plan", "--simulate", "-f", file), s.err.String())
		assert.Equal(t, lacks, strings.Contains(s.out.String(), "installs no pod network"), commands)
	}
}
