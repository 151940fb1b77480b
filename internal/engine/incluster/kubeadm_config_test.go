package incluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// For a version that kubeadm cannot upgrade to, the error says what to do instead.
func TestVersionsThatKubeadmDoesNotGoTo(t *testing.T) {
	config, err := boot.ParseClusterConfig("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.2\n")
	require.NoError(t, err)
	for to, want := range map[string]string{
		"v1.34.1": "never downgraded: set spec.version back to v1.34.2",
		"v1.33.9": "never downgraded: set spec.version back to v1.34.2",
		"v1.36.0": "one minor version at a time: the next one is v1.35",
	} {
		d := (&incluster.KubeadmConfig{Version: to}).Diff(&incluster.KubeadmConfigState{Config: config})
		require.NotEmpty(t, d, to)
		require.Contains(t, d[0].Advice, want, to)
	}
}
