package loader_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// withFiles loads an example with additional files, the first as Options.CNI.
func withFiles(t *testing.T, files ...string) (*manifest.Cluster, error) {
	t.Helper()
	o := input.LoadOptions{}
	for i, f := range files {
		o.Addons = append(o.Addons, input.Source{Name: "dir/" + string(rune('a'+i)) + ".yaml", Data: []byte(f)})
	}
	o.CNI, o.Addons = o.Addons[:1], o.Addons[1:]
	return loader.Load([]input.Source{{Name: "cluster.yaml", Data: []byte(manifests.Read(t, "../../../../configs/resource-sets.yaml"))}}, o)
}

func TestAddonFiles(t *testing.T) {
	c, err := withFiles(
		t,
		"# mine\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, uid: u, managedFields: [], labels: {a: b}}\ndata: {script: 'echo ${HOME} $${X}'}\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: en}\n",
		"apiVersion: v1\r\nkind: List\r\nitems:\r\n- {apiVersion: v1, kind: Secret, metadata: {name: yy}}\r\n- {apiVersion: v1, kind: Secret, metadata: {name: yy}}\r\n- {apiVersion: v1, kind: Namespace, metadata: {name: m}}\r\n",
	)
	require.NoError(t, err)
	require.Len(t, c.ResourceSets, 5)
	one, two := c.ResourceSets[3], c.ResourceSets[4]
	assert.Equal(t, "a.yaml", one.Name)
	assert.Equal(t, "dir/a.yaml", one.Origin)
	assert.True(t, one.Reconcile && one.Network && two.Reconcile && !two.Network)
	require.Len(t, one.Documents, 2)
	assert.Equal(t, "Namespace en", one.Documents[0].Title())
	assert.Equal(t, "dir/a.yaml:8", one.Documents[0].Origin)
	assert.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "labels": map[string]any{"a": "b"}},
		"data": map[string]any{"script": "echo ${HOME} $${X}"},
	}, one.Documents[1].Object)
	require.Len(t, two.Documents, 2, "duplicates are merged")
	assert.Equal(t, "dir/b.yaml:6", two.Documents[0].Origin)

	assert.Equal(t, []string{"network", "cloud-controller", "teams"}, []string{c.ResourceSets[0].Name, c.ResourceSets[1].Name, c.ResourceSets[2].Name})
	assert.True(t, c.ResourceSets[0].Reconcile && !c.ResourceSets[1].Reconcile)
	last := c.ResourceSets[0].Documents[1]
	assert.Equal(t, "DaemonSet kube-flannel/flannel", last.Title())
	assert.Regexp(t, `^cluster.yaml:\d+ ConfigMap/flannel data.flannel.yaml$`, last.Origin)
	assert.True(t, c.HasCloudController())
}

// Problems in a file have its line and a fix.
func TestAddonFilesWrong(t *testing.T) {
	for name, tt := range map[string]struct{ yaml, want string }{
		"no YAML":       {"a: [\nb", "dir/b.yaml:"},
		"tab":           {"apiVersion: v1\n\tkind: x\n", "dir/b.yaml:2: the YAML is invalid: a tab is used for indentation — use spaces"},
		"empty":         {"# nothing\n", "dir/b.yaml:1: the file contains no object — use a file for kubectl apply"},
		"text":          {"hello\n", "dir/b.yaml:1: the document is not an object — it needs apiVersion, kind and metadata"},
		"no kind":       {"\napiVersion: v1\nmetadata: {name: x}\n", "dir/b.yaml:2: the object has no kind — set kind"},
		"no apiVersion": {"kind: Secret\nmetadata: {name: x}\n", "dir/b.yaml:1: Secret has no apiVersion — set apiVersion"},
		"no name": {
			"apiVersion: v1\nkind: Secret\nmetadata: {generateName: x}\n",
			"dir/b.yaml:1: Secret has no name — set metadata.name: objects that are applied repeatedly need a name",
		},
		"key twice": {"apiVersion: v1\nkind: Secret\nkind: Secret\nmetadata: {name: x}\n", `dir/b.yaml:3: kind: the key "kind" is duplicated, first on line 2 — keep one of them`},
		"twice": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\ndata: {a: b}\n",
			"dir/b.yaml:1: ConfigMap default/x is also in dir/a.yaml:1, and differs — keep one of them: each run would apply both",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withFiles(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", tt.yaml)
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, strings.TrimSpace(err.Error()), "\n", "one line")
		})
	}
}

func TestHasPodNetwork(t *testing.T) {
	daemons := func(path string) string {
		return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, " +
			"spec: {containers: [{name: x, image: x}], volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: " + path + "}}]}}}\n"
	}
	for _, tt := range []struct {
		yaml string
		want bool
	}{
		{daemons("/etc/cni/net.d"), true},
		{daemons("/opt/cni/bin"), true},
		{daemons("/opt/cni"), true},
		{daemons("/etc/cnix"), false},
		{daemons("/var/log"), false},
		{strings.Replace(daemons("/etc/cni/net.d"), "DaemonSet", "Deployment", 1), false},
		{"apiVersion: operator.tigera.io/v1\nkind: Installation\nmetadata: {name: default}\n", true},
		{"apiVersion: example.com/v1\nkind: Installation\nmetadata: {name: default}\n", false},
	} {
		t.Run("", func(t *testing.T) {
			c, err := withFiles(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yy}\n", tt.yaml)
			require.NoError(t, err)
			assert.Equal(t, tt.want, manifest.HasPodNetwork(c.ResourceSets[4].Documents))
			assert.True(t, c.HasPodNetwork())
		})
	}
	for file, want := range map[string]bool{"quickstart": false, "resource-sets": true, "eks": true, "eks-gpu": true} {
		raw, err := os.ReadFile("../../../../configs/" + file + ".yaml")
		require.NoError(t, err)
		assert.Equal(t, want, manifests.MustLoad(t, string(raw), input.LoadOptions{}).HasPodNetwork(), file)
	}
}

func TestHasCloudController(t *testing.T) {
	for pod, want := range map[string]bool{
		`{name: a, image: "registry.k8s.io/provider-aws/cloud-controller-manager:v1.34.0"}`:                    true,
		`{name: a, image: "mirror.local/cloud-controller-manager:v1", args: [--v=2, --cloud-provider=aws]}`:    true,
		`{name: a, image: "mirror.local/cloud-controller-manager:v1", command: [/x, --cloud-provider=aws]}`:    true,
		`{name: a, image: "mirror.local/cloud-controller-manager:v1", args: [--cloud-provider=gce]}`:           false,
		`{name: a, image: "registry.k8s.io/provider-aws/aws-ebs-csi-driver:v1", args: [--cloud-provider=aws]}`: false,
	} {
		c, err := withFiles(
			t,
			"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, "+
				"spec: {containers: ["+pod+"]}}}\n",
		)
		require.NoError(t, err)
		assert.Equal(t, want, manifest.HasCloudController(c.ResourceSets[3].Documents), pod)
	}
}
