// Package manifests has what tests of manifests share: how they are read, changed and loaded. It does not need the
// simulated AWS.
package manifests

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Templates is the folder of CAPA's templates, on machines that have them, from the folder of a package beside the loader.
const Templates = "../../../../../shared/capa-templates"

// Lookup returns the values of variables.
func Lookup(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := m[name]
		return value, ok
	}
}

// QuickStart has the variables of CAPA's templates.
func QuickStart() map[string]string {
	return map[string]string{
		"CLUSTER_NAME": "quick", "KUBERNETES_VERSION": "v1.34.2", "AWS_REGION": "eu-west-1", "AWS_SSH_KEY_NAME": "default",
		"CONTROL_PLANE_MACHINE_COUNT": "3", "AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large",
		"WORKER_MACHINE_COUNT": "2", "AWS_NODE_MACHINE_TYPE": "t3.large", "AWS_S3_BUCKET_NAME": "quick-bucket",
	}
}

// Read returns the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// Load loads a manifest, as cluster.yaml.
func Load(t *testing.T, yaml string, o input.LoadOptions) (*manifest.Cluster, error) {
	t.Helper()
	return loader.Load([]input.Source{{Name: "cluster.yaml", Data: []byte(yaml)}}, o)
}

// MustLoad requires that a manifest has no problem.
func MustLoad(t *testing.T, yaml string, o input.LoadOptions) *manifest.Cluster {
	t.Helper()
	c, err := Load(t, yaml, o)
	require.NoError(t, err)
	return c
}

// Warnings lists the warnings of a manifest.
func Warnings(c *manifest.Cluster) []string {
	lines := []string{}
	for _, w := range c.Warnings {
		lines = append(lines, w.String())
	}
	return lines
}

// Edit replaces parts of the YAML, which must exist: pairs of old and new.
func Edit(t *testing.T, yaml string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, yaml, pairs[i])
		yaml = strings.Replace(yaml, pairs[i], pairs[i+1], 1)
	}
	return yaml
}

// example returns the text of the first example.
func example(t *testing.T) string {
	t.Helper()
	data, err := configs.Manifests.ReadFile("quickstart.yaml")
	require.NoError(t, err)
	return string(data)
}

// Environment is that of a user: it has values for what scripts use, too.
func Environment() map[string]string {
	return map[string]string{
		"HOME": "/home/operator", "PATH": "/opt/secret/bin", "USER": "operator", "HOSTNAME": "laptop", "ENDPOINT": "https://laptop",
		"COREOS_EC2_HOSTNAME": "laptop", "AWS_SESSION_TOKEN": "secret", "CLUSTER_NAME": "prod", "REGION": "eu-west-1", "IMAGE_TAG": "v9",
	}
}

// Plain is a manifest without variables in fields.
func Plain(t *testing.T, commands ...string) string {
	t.Helper()
	yaml := example(t)
	if len(commands) == 0 {
		return yaml
	}
	text := "    preKubeadmCommands:\n"
	for _, c := range commands {
		text += "    - |\n      " + c + "\n"
	}
	return Edit(t, yaml, "  kubeadmConfigSpec:\n", "  kubeadmConfigSpec:\n"+text)
}

// Commands returns the commands of the control plane.
func Commands(c *manifest.Cluster) string {
	return strings.Join(c.ControlPlane.Object.Spec.KubeadmConfigSpec.PreKubeadmCommands, "")
}

// NodeName is a manifest whose Nodes have a name of their own.
func NodeName(t *testing.T, name string, commands ...string) string {
	t.Helper()
	const old = "    initConfiguration:\n      nodeRegistration:\n        name: "
	return Edit(t, Plain(t, commands...), old, old+"'"+name+"' # ")
}
