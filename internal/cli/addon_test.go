package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Files of --cni and --addon are read before any call to AWS, and are in the plan.
func TestAddonFlags(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	cluster := []string{"cluster", "plan", "-f", "../../configs/quickstart.yaml", "--simulate"}
	network := file("cni.yaml", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: net, namespace: kube-system}\n"+
		"spec: {selector: {matchLabels: {app: net}}, template: {metadata: {labels: {app: net}}, spec: {containers: [{name: net, image: net}]}}}\n")
	secret := file("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {token: hunter2}\n")

	require.Equal(t, 0, s.run(append(cluster, "--cni", network, "--addon", secret)...), s.err.String())
	assert.Contains(t, s.out.String(), "+ resource-set/cni.yaml")
	assert.Contains(t, s.out.String(), "+ DaemonSet kube-system/net  as written")
	assert.Contains(t, s.out.String(), "+ Secret s  as written")
	assert.NotContains(t, s.out.String()+s.err.String(), "hunter2")

	policy := file("policy.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: net-config, namespace: kube-system}\n")
	require.Equal(t, 0, s.run(append(cluster, "--cni", network, "--cni", policy)...), s.err.String())
	assert.Contains(t, s.out.String(), "+ DaemonSet kube-system/net  as written", "every file counts")
	assert.Contains(t, s.out.String(), "+ ConfigMap kube-system/net-config  as written")

	require.NotZero(t, s.run(append(cluster, "--addon", file("bad.yaml", "a: b\n"))...))
	assert.Contains(t, s.err.String(), "bad.yaml:1: the object has no kind")
	require.NotZero(t, s.run(append(cluster, "--addon", "-")...))
	assert.Contains(t, s.err.String(), "--addon needs a file")
	require.NotZero(t, s.run(append(cluster, "--addon", "nowhere.yaml")...))
	assert.Contains(t, s.err.String(), "nowhere.yaml: no such file")
}
