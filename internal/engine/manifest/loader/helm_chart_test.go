package loader_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// chartOf is a HelmChartProxy with a spec.
func chartOf(spec string) string {
	return "\n---\napiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: web}\nspec:\n" + spec
}

const plainChart = "  clusterSelector: {}\n  repoURL: https://charts.example.com\n  chartName: web\n  version: 1.2.3\n"

func withChart(t *testing.T, documents ...string) (*manifest.Cluster, error) {
	t.Helper()
	text := manifests.Read(t, "../../../../configs/quickstart.yaml") + strings.Join(documents, "")
	return loader.Load([]input.Source{{Name: "dir/cluster.yaml", Data: []byte(text)}}, input.LoadOptions{})
}

func TestChart(t *testing.T) {
	c, err := withChart(t, chartOf(plainChart+`  valuesTemplate: |
    name: {{ .Cluster.metadata.name | upper }}
    pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}
    version: {{ .ControlPlane.spec.version }}
    region: {{ .InfraCluster.spec.region }}
    script: 'echo ${HOME} <b>'
`))
	require.NoError(t, err)
	require.Len(t, c.Charts, 1)
	chart := c.Charts[0]
	assert.Regexp(t, `^dir/cluster.yaml:\d+ HelmChartProxy/web$`, chart.Origin)
	assert.Equal(
		t,
		map[string]any{"name": "QUICKSTART", "pods": "192.168.0.0/16", "version": "v1.34.2", "region": "us-east-1", "script": "echo ${HOME} <b>"},
		chart.Values,
	)
	assert.Equal(t, []string{"web", "https://charts.example.com", "1.2.3", "web", "default"},
		[]string{chart.Chart, chart.Repository, chart.Version, chart.Release, chart.Namespace})
	assert.Equal(t, 10*time.Minute, chart.Options.Timeout.Duration)
	assert.False(t, chart.Once || c.HasPodNetwork())
	assert.Empty(t, c.Warnings)

	c, err = withChart(
		t,
		chartOf(strings.NewReplacer("https://charts.example.com", "oci://ghcr.io/charts/", "chartName: web", "chartName: cilium").Replace(plainChart)),
	)
	require.NoError(t, err)
	assert.Equal(t, "oci://ghcr.io/charts/cilium", c.Charts[0].Chart)
	assert.Empty(t, c.Charts[0].Repository)
	assert.True(t, c.HasPodNetwork())

	c, err = withChart(t, chartOf(strings.Replace(plainChart, "https://charts.example.com", "./charts", 1)))
	require.NoError(t, err)
	assert.Equal(t, "dir/charts/web", c.Charts[0].Chart, "the folder is beside the manifest")

	c, err = withChart(t, chartOf(strings.Replace(plainChart, "{}", "{matchLabels: {a: b}}", 1)))
	require.NoError(t, err)
	assert.Empty(t, c.Charts)
	assert.Equal(t, 1, c.ChartObjects)
	require.Len(t, c.Warnings, 1)
	assert.Contains(t, c.Warnings[0].String(), "does not match the labels of Cluster/quickstart, so the chart is not installed")
}

// Values are read as Helm reads them, by YAML 1.1, and integers of objects are integers. TestChartsAsUpstream in test/oracle compares
// with CAAPH.
func TestValuesAsHelmReadsThem(t *testing.T) {
	c, err := withChart(t, chartOf(plainChart+`  valuesTemplate: |
    enabled: yes
    debug: off
    mode: 0644
    one: {{ eq .ControlPlane.spec.replicas 1 }}
`))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"enabled": true, "debug": false, "mode": 420.0, "one": true}, c.Charts[0].Values)
}

func TestChartsWrong(t *testing.T) {
	for name, tt := range map[string]struct{ spec, want string }{
		"no chart":     {strings.Replace(plainChart, "  chartName: web\n", "", 1), "HelmChartProxy/web spec.chartName: a value is required"},
		"URL":          {strings.Replace(plainChart, "https://charts.example.com", "charts", 1), `dir/cluster.yaml:154: HelmChartProxy/web spec.repoURL: "charts" is not a URL — use https://…, oci://… or a folder such as ./charts`},
		"protocol":     {strings.Replace(plainChart, "https://charts.example.com", "ftp://charts.example.com", 1), `spec.repoURL: "ftp://charts.example.com" is not a URL`},
		"version":      {strings.Replace(plainChart, "  version: ", "  version: latest # ", 1), `spec.version: "latest" is neither a version nor a range of versions`},
		"namespace":    {plainChart + "  namespace: Kube System\n", `spec.namespace: "Kube System" is not the name of a namespace`},
		"field":        {plainChart + "  options: {wiat: true}\n", `HelmChartProxy/web spec.options.wiat: the field does not exist — did you mean "wait"?`},
		"type":         {plainChart + "  options: {timeout: soon}\n", "HelmChartProxy/web spec: the object cannot be read"},
		"strategy":     {plainChart + "  reconcileStrategy: Once\n", `spec.reconcileStrategy: "Once" is not a strategy — use Continuous or InstallOnce`},
		"release":      {plainChart + "  releaseName: Web_1\n", `spec.releaseName: "Web_1" cannot be the name of a release`},
		"template":     {plainChart + "  valuesTemplate: '{{ .Cluster'\n", "spec.valuesTemplate: line 1 of the template"},
		"function":     {plainChart + "  valuesTemplate: 'a: {{ env \"HOME\" }}'\n", `the function "env" is not supported`},
		"unknown":      {plainChart + "  valuesTemplate: 'phase: {{ .InfraCluster.status.phase }}'\n", "{{ .InfraCluster.status.phase }} has no value (line 1 of the result): the manifest does not set the field"},
		"no mapping":   {plainChart + "  valuesTemplate: '- a'\n", "spec.valuesTemplate: the result is not a mapping"},
		"invalid YAML": {plainChart + "  valuesTemplate: 'a: [secret'\n", "spec.valuesTemplate: the result is not valid YAML"},
		"twice": {
			plainChart + "---\napiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: other}\nspec:\n" + plainChart + "  releaseName: web\n",
			"HelmChartProxy/other spec.releaseName: the release web in namespace default is also that of HelmChartProxy/web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withChart(t, chartOf(tt.spec))
			invalid, is := errors.AsType[*manifest.InvalidError](err)
			require.True(t, is, "%v", err)
			require.Len(t, invalid.Problems, 1)
			assert.Contains(t, invalid.Problems[0].String(), tt.want)
			assert.NotContains(t, invalid.Problems[0].String(), "secret")
		})
	}
}

// What helm itself takes care of is a warning.
func TestChartWarnings(t *testing.T) {
	c, err := withChart(
		t,
		chartOf(
			strings.Replace(
				plainChart,
				"  version: 1.2.3\n",
				"",
				1,
			)+"  credentials: {secret: {name: a}, key: b}\n  tlsConfig: {caSecret: {name: a}, insecureSkipTLSVerify: true}\n",
		),
	)
	require.NoError(t, err)
	var all []string
	for _, w := range c.Warnings {
		all = append(all, w.Path+": "+w.What)
	}
	assert.ElementsMatch(t, []string{
		"spec.version: no version is set: the newest is installed, and not upgraded", "spec.credentials: is ignored: helm uses its own logins",
		"spec.tlsConfig.caSecret: is ignored: helm uses the certificates of this machine",
	}, all)
	assert.True(t, c.Charts[0].Insecure)
}

// A template may use the address of the API server. It is rendered when the address is known, as in Cluster API Add-on Provider for Helm (CAAPH).
func TestValuesWithEndpoint(t *testing.T) {
	const template = plainChart + `  valuesTemplate: |
    k8sServiceHost: {{ .Cluster.spec.controlPlaneEndpoint.host }}
    k8sServicePort: {{ .Cluster.spec.controlPlaneEndpoint.port }}
    same: {{ eq .Cluster.spec.controlPlaneEndpoint.host .InfraCluster.spec.controlPlaneEndpoint.host }}
`
	c, err := withChart(t, chartOf(template))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"k8sServiceHost": "(known after apply)", "k8sServicePort": 6443.0, "same": true}, c.Charts[0].Values)
	values, err := c.Charts[0].ValuesAt("lb.example.com")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"k8sServiceHost": "lb.example.com", "k8sServicePort": 6443.0, "same": true}, values)

	text := strings.Replace(manifests.Read(t, "../../../../configs/quickstart.yaml"), "  sshKeyName: \"\"",
		"  controlPlaneEndpoint: {host: api.example.com, port: 6443}\n  sshKeyName: \"\"", 1)
	c, err = loader.Load([]input.Source{{Name: "cluster.yaml", Data: []byte(text + chartOf(template))}}, input.LoadOptions{})
	require.NoError(t, err)
	assert.Equal(t, "api.example.com", c.Charts[0].Values["k8sServiceHost"])
	assert.Nil(t, c.Charts[0].ValuesAt, "the manifest sets the address")

	text = manifests.Read(t, "../../../../configs/eks.yaml")
	trimmed := strings.ReplaceAll(template, "controlPlaneEndpoint.host }}\n    k8s", "controlPlaneEndpoint.host | trimPrefix \"https://\" }}\n    k8s")
	c, err = loader.Load([]input.Source{{Name: "cluster.yaml", Data: []byte(text + chartOf(trimmed))}}, input.LoadOptions{})
	require.NoError(t, err)
	values, err = c.Charts[0].ValuesAt("ABC.gr7.us-east-1.eks.amazonaws.com")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"k8sServiceHost": "ABC.gr7.us-east-1.eks.amazonaws.com", "k8sServicePort": 443.0, "same": true}, values)
}
