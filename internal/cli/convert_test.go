package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

const (
	oldMachine = "apiVersion: cluster.x-k8s.io/v1alpha4 # old\nkind: Machine\nmetadata:\n  name: a\nspec:\n  nodeDrainTimeout: 5m\n"
	newMachine = "apiVersion: cluster.x-k8s.io/v1beta2 # old\nkind: Machine\nmetadata:\n  name: a\nspec:\n  deletion:\n    nodeDrainTimeoutSeconds: 300\n"
)

func TestConvert(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	old, other := filepath.Join(dir, "old.yaml"), filepath.Join(dir, "other.yaml")
	require.NoError(t, os.WriteFile(old, []byte(oldMachine), 0o640))
	require.NoError(t, os.WriteFile(other, []byte("kind: Secret\napiVersion: v1"), 0o600))

	require.Equal(t, 0, s.run("cluster", "convert", "-f", old))
	assert.Equal(t, newMachine, s.out.String())
	assert.Equal(t, "1 object converted to v1beta2\n", s.err.String())

	require.Equal(t, 0, s.run("cluster", "convert", "-f", dir))
	assert.Equal(t, newMachine+"---\nkind: Secret\napiVersion: v1", s.out.String())

	result := filepath.Join(dir, "new", "result.yaml")
	require.Equal(t, env.Wrong, s.run("cluster", "convert", "-f", old, "--to", result), "there is no folder")
	result = filepath.Join(dir, "result.yml")
	require.Equal(t, 0, s.run("cluster", "convert", "-f", old, "--to", result))
	require.Equal(t, 0, s.run("cluster", "convert", "-f", old, "--to", result), "it has the same content")
	require.Equal(t, env.Wrong, s.run("cluster", "convert", "-f", other, "--to", result), "it has another content")
	assert.Empty(t, s.out.String())
	require.NoError(t, os.Remove(result))

	require.Equal(t, env.Changes, s.run("cluster", "convert", "-f", dir, "--check"))
	assert.Equal(t, old+": 1 object of an older API version\n", s.out.String())
	require.Equal(t, 0, s.run("cluster", "convert", "-f", dir, "--write"))
	assert.Equal(t, old+" is converted\n1 object converted to v1beta2\n", s.err.String())
	data, err := os.ReadFile(old)
	require.NoError(t, err)
	assert.Equal(t, newMachine, string(data))
	info, err := os.Stat(old)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	require.Equal(t, 0, s.run("cluster", "convert", "-f", dir, "--check"))
	assert.Empty(t, s.out.String())
}

func TestConvertRefuses(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	lossy, broken := filepath.Join(dir, "lossy.yaml"), filepath.Join(dir, "broken.yaml")
	text := strings.Replace(oldMachine, "  nodeDrainTimeout", "  bootstrap: {data: x}\n  nodeDrainTimeout", 1)
	require.NoError(t, os.WriteFile(lossy, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(broken, []byte("a: b: c\n"), 0o600))
	const note = "lossy.yaml:6: Machine/a spec.bootstrap.data: bootstrap data in a machine is not possible since v1alpha4 — put it into a Secret and name it in bootstrap.dataSecretName\n"

	require.Equal(t, 0, s.run("cluster", "convert", "-f", lossy))
	assert.Contains(t, s.err.String(), "note: "+dir+"/"+note)
	require.Equal(t, env.Wrong, s.run("cluster", "convert", "-f", lossy, "--strict", "--write"))
	assert.Contains(t, s.err.String(), dir+"/"+note)
	require.Equal(t, env.Wrong, s.run("cluster", "convert", "-f", dir, "--write"))
	assert.Contains(t, s.err.String(), "broken.yaml:1: the YAML is invalid")
	data, err := os.ReadFile(lossy)
	require.NoError(t, err)
	assert.Equal(t, text, string(data), "nothing is written")

	for args, want := range map[string]string{
		"cluster convert": "no manifest: use -f FILE",
		"cluster convert -f " + lossy + " -w --check": "--to, --write and --check exclude each other",
		"cluster convert -f " + dir + "/none.yaml":    "no such file",
		"cluster convert " + lossy:                    "did you mean -f",
	} {
		require.Equal(t, env.Wrong, s.run(strings.Fields(args)...), args)
		assert.Contains(t, s.err.String(), want)
	}
	for _, command := range []string{"validate", "plan", "create"} {
		require.Equal(t, env.Wrong, s.run("cluster", command, "-f", lossy, "--simulate"))
		assert.Contains(t, s.err.String(), "cluster.x-k8s.io/v1alpha4 is not supported — convert the file: clusterawsadm cluster convert -f "+lossy)
	}
}
