package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chartFiles writes a chart and files of values into a new working directory.
func chartFiles(t *testing.T) {
	t.Helper()
	example, err := os.ReadFile("../../configs/quickstart.yaml")
	require.NoError(t, err)
	proxy := "\n---\napiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: web}\n" +
		"spec: {clusterSelector: {}, repoURL: https://example.com, chartName: web, version: 1.0.0}\n"
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("charts/web", 0o700))
	require.NoError(t, os.MkdirAll("empty", 0o700))
	for name, text := range map[string]string{
		"demo.yaml":             string(example),
		"with-web.yaml":         string(example) + proxy,
		"charts/web/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 2.1.0\n",
		"values.yaml":           "greeting: \"{{ .Release.Name }} ${HOME}\"\nadmin:\n  password: hunter2\n",
		"list.yaml":             "- a\n",
		"broken.yaml":           "a: [1\n",
	} {
		require.NoError(t, os.WriteFile(filepath.FromSlash(name), []byte(text), 0o600))
	}
}

// TestChartFlag plans charts of each place.
func TestChartFlag(t *testing.T) {
	s := newShell(t)
	chartFiles(t)
	require.Equal(t, 0, s.run("cluster", "plan", "-f", "demo.yaml", "--simulate",
		"--chart", "cilium=https://helm.cilium.io/cilium:1.18.2,namespace=kube-system",
		"--chart", "oci://localhost:5000/charts/web:1.2.3,namespace=shop,values=values.yaml",
		"--chart", "local=./charts/web"), s.err.String())
	out := strings.Join(strings.Fields(s.out.String()), " ")
	for _, want := range []string{
		"+ helm-release/cilium + chart cilium + version 1.18.2 + repository https://helm.cilium.io + namespace kube-system",
		"+ helm-release/web + chart web + version 1.2.3 + repository oci://localhost:5000/charts/web + namespace shop " +
			"+ values.admin.password (hidden) + values.greeting {{ .Release.Name }} ${HOME}",
		"+ helm-release/local + chart web + version 2.1.0",
	} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out+s.err.String(), "hunter2")
}

// The manifest of an import has the charts of the cluster: a run with it leaves them as they are. A plan that uninstalls the pod network or the cloud
// controller manager warns of it.
func TestImportKeepsCharts(t *testing.T) {
	for flavor, names := range map[string][]string{"charts": {"cilium", "aws-cloud-controller-manager", "metrics-server"}, "eks-karpenter": {"karpenter"}} {
		t.Run(flavor, func(t *testing.T) {
			s := newShell(t)
			s.simulated()
			file := s.generated(t, "--flavor", flavor)
			require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--simulate-assume"), s.err.String())
			require.Equal(t, 0, s.run("cluster", "import", "demo"), s.err.String())
			imported := s.out.String()
			for _, name := range names {
				require.Contains(t, imported, "releaseName: "+name+"\n")
			}
			require.NoError(t, os.WriteFile(file, []byte(imported), 0o600))
			require.Equal(t, 0, s.run("cluster", "plan", "-f", file), s.err.String())
			require.Contains(t, s.out.String(), "No changes", imported)
			assert.NotContains(t, s.err.String(), "10.0.0.0/8", "the values of cilium are not known")

			without, _, _ := strings.Cut(imported, "---\napiVersion: addons.cluster.x-k8s.io/v1alpha1\n")
			require.NoError(t, os.WriteFile(file, []byte(without), 0o600))
			require.Equal(t, 0, s.run("cluster", "plan", "-f", file), s.err.String())
			require.Contains(t, s.out.String(), "helm-leftovers")
			if flavor == "charts" {
				assert.Contains(t, s.err.String(), "the run uninstalls the pod network (kube-system/cilium, chart cilium), and the manifest has no other")
				assert.Contains(t, s.err.String(), "the run uninstalls the cloud controller manager (kube-system/aws-cloud-controller-manager)")
			}
		})
	}
}

// A chart of --chart is created as one of the manifest, and uninstalled by a run without it.
func TestChartFlagIsCreated(t *testing.T) {
	s := newShell(t)
	chartFiles(t)
	create := []string{
		"cluster", "create", "-f", "demo.yaml", "--simulate", "--yes", "--chart", "cilium=https://helm.cilium.io/cilium:1.18.2",
		"--chart", "local=./charts/web", "--chart", "ccm=https://kubernetes.github.io/cloud-provider-aws/aws-cloud-controller-manager:0.0.12",
	}
	require.Equal(t, 0, s.run(create...), s.err.String())
	assert.Contains(t, s.err.String(), "All Nodes are ready")
	require.Equal(t, 0, s.run(create...), s.err.String())
	assert.Contains(t, s.err.String(), "nothing to change")
	require.Equal(t, 0, s.run("cluster", "plan", "-f", "demo.yaml", "--simulate"), s.err.String())
	assert.Contains(t, s.out.String(), "- helm-leftovers")
	assert.Contains(t, s.out.String(), "default/ccm (aws-cloud-controller-manager 0.0.12), default/cilium (cilium 1.18.2)")
	require.Equal(t, 0, s.run("cluster", "create", "-f", "demo.yaml", "--simulate", "--yes", "--wait=api"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "plan", "-f", "demo.yaml", "--simulate"), s.err.String())
	assert.NotContains(t, s.out.String(), "helm-leftovers")
}

// TestWrongCharts has the message of each wrong --chart.
func TestWrongCharts(t *testing.T) {
	s := newShell(t)
	chartFiles(t)
	for value, want := range map[string]string{
		"":                                              "name the chart",
		"nginx":                                         "\"nginx\" is no address: use https://REPOSITORY/nginx, oci://HOST/PATH/nginx, or ./nginx for a folder",
		"bitnami/nginx:1.0":                             "\"bitnami/nginx\" is no address",
		"https://helm.cilium.io":                        "the name of the chart is missing: use https://helm.cilium.io/CHART:VERSION",
		"https://helm.cilium.io/:1.2":                   "the name of the chart is missing: use https://helm.cilium.io/CHART:VERSION",
		"https://helm.cilium.io/cilium:":                "there is no version after the colon",
		"https://bob:hunter2@example.com/web:1":         "it has a password",
		"ftp://example.com/web:1":                       "ftp:// is not supported",
		"https://example.com/web-1.2.tgz":               "it is an archive",
		"https://example.com/web?x=1":                   "has no ? and no #",
		"https://example.com/web:1,values":              "\"values\": after a comma is namespace=NAME",
		"https://example.com/web:1,colour=red":          "there is no option \"colour\"",
		"https://example.com/web:1,version=2":           "it has two versions",
		"https://example.com/web:1,values=a,values=b":   "\"values=b\": after a comma",
		"=https://example.com/web:1":                    "the release before = has no name",
		"https://example.com/web:1,values=nowhere.yaml": "nowhere.yaml: no such file",
		"https://example.com/web:1,values=list.yaml":    "list.yaml:1: values of a chart are names with values",
		"https://example.com/web:1,values=broken.yaml":  "broken.yaml: the values are not valid YAML: line",
		"https://example.com/web:1,values=-":            "values needs a file",
		"./charts/web:1.0":                              "a folder has no version here",
		"./empty":                                       "the folder empty has no Chart.yaml",
		"Web_1=https://example.com/web:1":               "\"Web_1\" cannot be the name of a release: helm takes 53 characters",
	} {
		for _, command := range [][]string{{"cluster", "validate", "-f", "demo.yaml"}, {"cluster", "generate", "demo"}} {
			require.NotZero(t, s.run(append(command, "--chart", value)...), value)
			assert.Contains(t, s.err.String(), want, value)
			assert.NotContains(t, s.err.String(), "hunter2")
			assert.NotContains(t, s.err.String(), "%!")
		}
	}
	require.NotZero(t, s.run("cluster", "validate", "-f", "with-web.yaml", "--chart", "https://example.com/web:1.0.0"))
	assert.Contains(t, s.err.String(), "with-web.yaml")
	require.NotZero(t, s.run("cluster", "validate", "-f", "demo.yaml", "--chart", "https://example.com/web:1", "--chart", "https://example.org/web:1"))
	assert.Contains(t, s.err.String(), "two charts have the release web")
}

// TestGenerateWithCharts applies what generate prints with --chart.
func TestGenerateWithCharts(t *testing.T) {
	s := newShell(t)
	chartFiles(t)
	web := "oci://example.com/charts/web:1.2.3,namespace=shop,values=values.yaml"
	for args, want := range map[string][]string{
		"--chart " + web: {"name: demo-web\n", "namespace: shop\n", "repoURL: oci://example.com/charts\n", "kind: DaemonSet"},
		"--chart https://helm.cilium.io/cilium:1.18.2,namespace=kube-system": {"{description: Cilium (VXLAN)", "chartName: cilium\n"},
		"--flavor charts --chart " + web:                                     {"name: demo-web\n", "name: demo-cilium\n"},
	} {
		require.Equal(t, 0, s.run(append([]string{"cluster", "generate", "demo"}, strings.Fields(args)...)...), s.err.String())
		assert.Empty(t, s.err.String())
		text := s.out.String()
		for _, w := range want {
			assert.Contains(t, text, w, args)
		}
		assert.Equal(t, !strings.Contains(text, "cilium"), strings.Contains(text, "name: kube-flannel"), "one pod network: %s", args)
		synctest.Test(t, func(t *testing.T) { lives(t, text) })
	}
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "eks", "--chart", web), s.err.String())
	assert.Contains(t, s.out.String(), "  labels:\n    cluster.x-k8s.io/cluster-name: demo\n")
	require.NotZero(t, s.run("cluster", "generate", "demo", "--cni", "calico", "--chart", "https://helm.cilium.io/cilium:1.18.2"))
	assert.Contains(t, s.err.String(), "--cni calico: the chart cilium is a pod network, too")
}

// The minor version of the cloud controller manager is that of Kubernetes in flavors that have one of their own.
func TestGenerateWithControllerOfVersion(t *testing.T) {
	s := newShell(t)
	for _, flavor := range []string{"charts", "resource-sets", "quickstart"} {
		require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", flavor, "--kubernetes-version", "v1.33.5"), s.err.String())
		assert.Regexp(t, `(tag: |cloud-controller-manager:)v1\.33\.0\n`, s.out.String(), flavor)
		assert.NotContains(t, s.out.String(), "v1.34.0", flavor)
	}
}
