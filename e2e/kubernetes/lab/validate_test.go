package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// hostname matches the placeholders for the host name of cloud-init and of Flatcar's
// envsubst, and a name.
var hostname = strings.NewReplacer("{{ ds.meta_data.local_hostname }}", "ip-10-0-0-1.ec2.internal", "${COREOS_EC2_HOSTNAME}", "ip-10-0-0-1.ec2.internal")

// TestConfigurations validates the kubeadm configuration of the machines of every
// self-managed example with kubeadm of each version. TestCloudInitSchema of
// internal/engine/boot validates the documents around it with "cloud-init schema".
func TestConfigurations(t *testing.T) {
	root, err := controlplane.Root()
	require.NoError(t, err)
	for version, program := range map[string]controlplane.Program{
		controlplane.Version: controlplane.Kubernetes("kubeadm"),
		// The simulator has images of the first release of a minor version. 1.30 is the
		// last one that uses kubeadm's API v1beta3.
		"v1.33.0": kubernetes("kubeadm", older),
		"v1.30.0": kubernetes("kubeadm", "v1.30.5"),
	} {
		t.Run(version, func(t *testing.T) {
			kubeadm, err := controlplane.Build(t.Context(), program)
			require.NoError(t, err)
			folder := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count", "1", "-run", "^TestWriteBootData$", "./internal/engine/boot")
			cmd.Dir, cmd.Env = root, append(os.Environ(), "BOOT_DATA="+folder, "BOOT_VERSION="+version)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
			require.NoError(t, err)
			require.Greater(t, len(files), 30)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, []byte(hostname.Replace(string(text))), 0o600))
				out, err := exec.CommandContext(t.Context(), kubeadm, "config", "validate", "--config", file).CombinedOutput()
				require.NoError(t, err, "%s: %s", filepath.Base(file), out)
			}
			t.Logf("proved: kubeadm %s accepts the configurations of %d machines of the examples, made for Kubernetes %s", program.Version, len(files), version)
		})
	}
}
