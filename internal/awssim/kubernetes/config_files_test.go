package kubernetes

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/configfiles"
)

// A component does not start with a configuration file that it refuses.
func TestConfigFiles(t *testing.T) {
	for _, c := range configfiles.Cases(t) {
		args := []any{map[string]any{"name": c.Argument, "value": "/etc/seen/file"}}
		volumes := []hostVolume{{HostPath: "/etc/written", MountPath: "/etc/seen"}}
		why := fileContentRefused(c.Component, "v1.34.2", args, volumes, map[string]string{"/etc/written/file": c.Text})
		if c.Word == "" {
			assert.Empty(t, why, c.Text)
		} else {
			assert.Contains(t, why, c.Word, c.Text)
		}
		assert.Empty(t, fileContentRefused(c.Component, "v1.34.2", args, nil, map[string]string{"/etc/written/file": c.Text}), "another file")
	}
}

// kubeadm init fails with a file that keeps a component of the control plane from starting. cloud-init decodes files.
func TestConfigFilesOfTheControlPlane(t *testing.T) {
	const config = `{kind: ClusterConfiguration, apiServer: {extraArgs: [{name: audit-policy-file, value: /etc/audit/policy.yaml}],
		extraVolumes: [{name: audit, hostPath: /etc/audit, mountPath: /etc/audit}]}}`
	for level, want := range map[string]string{"Metadata": "", "metadata": "rules[0].level: Unsupported value"} {
		policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: " + level + "}]\n"
		data := "#cloud-config\nwrite_files:\n- {path: /etc/audit/policy.yaml, encoding: base64, content: " + base64.StdEncoding.EncodeToString(
			[]byte(policy),
		) + "}\n"
		files, err := readFiles([]byte(data))
		require.NoError(t, err)
		files[bootText] = data + "runcmd: [sed -i s/metadata/Metadata/ /etc/audit/policy.yaml]\n"
		assert.Empty(t, configRefused(config, "v1.34.2", files), "a command may have changed it")
		files[bootText] = data
		why := configRefused(config, "v1.34.2", files)
		if want == "" {
			assert.Empty(t, why)
		} else {
			assert.Contains(t, why, want)
		}
	}
}
