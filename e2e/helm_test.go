//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/helm"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// useHelm makes a version of helm the one that the test runs, with empty settings instead of those of the user.
func useHelm(t *testing.T, version string) {
	t.Helper()
	folder := realHelm(t, version)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("HOME", t.TempDir())
}

// realHelm returns the folder of a version of helm. It is built the first time: that takes minutes.
func realHelm(t *testing.T, version string) string {
	t.Helper()
	folder, err := filepath.Abs("../.cache/helm-" + version)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(folder, "helm")); err == nil {
		return folder
	}
	major, _, _ := strings.Cut(version, ".")
	build := exec.CommandContext(t.Context(), "go", "install", "helm.sh/helm/"+major+"/cmd/helm@"+version)
	build.Dir, build.Env = t.TempDir(), append(os.Environ(), "GOBIN="+folder, "GOFLAGS=-mod=mod")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

// The chart has one object, and fails if "greeting" is a number.
const chartTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  greeting: {{ if kindIs "float64" .Values.greeting }}{{ fail "greeting is no text" }}{{ else }}{{ .Values.greeting | quote }}{{ end }}
  password: {{ .Values.password | b64enc | quote }}
`

const chartManifest = `
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: hello}
spec:
  clusterSelector: {}
  repoURL: CHARTS
  chartName: hello
  version: 0.1.0
  namespace: default
  valuesTemplate: |
    greeting: from {{ .Cluster.metadata.name }}
    password: correct-horse
  options: {disableOpenAPIValidation: true, install: {createNamespace: false}} # the simulated API server has no schemas
`

// inJSON turns protobuf, in which helm sends objects, into JSON: the simulated API server takes nothing else.
type inJSON struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (j inJSON) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Content-Type") != runtime.ContentTypeProtobuf || r.Method == http.MethodDelete {
		return j.next.RoundTrip(r)
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(o); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Content-Type", runtime.ContentTypeJSON)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return j.next.RoundTrip(r)
}

// TestRealHelm lets the real helm install a chart from a folder into the simulated Kubernetes, upgrade it, fail, and
// uninstall it. The records that helm writes are read without it.
func TestRealHelm(t *testing.T) {
	for _, version := range []string{"v3.19.5", "v4.3.1"} {
		t.Run(version, func(t *testing.T) { testRealHelm(t, version) })
	}
}

// withHelm opens a cluster of a manifest, whose charts helm installs.
func withHelm(t *testing.T, a *awssim.AWS, program *helm.Program, text string) *reconcile.Cluster {
	t.Helper()
	m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.NoError(t, err)
	p := a.Process()
	return reconcile.Open(m, cluster.Target{
		Config: p.Config(), Owner: "a test", Wait: plan.NodesJoined, Helm: program,
		Transport: func(access cluster.Access) http.RoundTripper { return inJSON{p.Kubernetes(kube.Access(access))} },
	})
}

func testRealHelm(t *testing.T, version string) {
	useHelm(t, version)
	charts := t.TempDir()
	chart := func(version string) {
		require.NoError(t, os.MkdirAll(filepath.Join(charts, "hello", "templates"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(charts, "hello", "Chart.yaml"), []byte("apiVersion: v2\nname: hello\nversion: "+version+"\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(charts, "hello", "templates", "x.yaml"), []byte(chartTemplate), 0o600))
	}
	quickstart, err := os.ReadFile("../configs/quickstart.yaml")
	require.NoError(t, err)
	program := &helm.Program{Environ: os.Environ()}
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		open := func(edits ...string) *reconcile.Cluster {
			text := strings.NewReplacer(append(edits, "CHARTS", charts)...).Replace(string(quickstart) + chartManifest)
			return withHelm(t, a, program, text)
		}
		greeting := func() (text string) {
			a.Edit(func(s *awssim.State) {
				for _, c := range s.Kubernetes {
					text = kubesim.Value(c.Get("/api/v1/namespaces/default/configmaps/hello"), "data", "greeting")
				}
			})
			return text
		}
		chart("0.1.0")
		_, err := open().Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, "from quickstart", greeting())
		res, err := open().Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.True(t, res.Plan.Empty(), "the second run does nothing")

		chart("0.2.0")
		upgraded := []string{"version: 0.1.0", "version: 0.2.0", "from {{", "hello {{"}
		res, err = open(upgraded...).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.False(t, res.Plan.Empty())
		assert.Equal(t, "hello quickstart", greeting())

		_, err = open("version: 0.1.0", "version: 0.2.0", "from {{ .Cluster.metadata.name }}", "5").Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "greeting is no text")
		assert.NotContains(t, err.Error(), "correct-horse")
		_, err = open(upgraded...).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, "hello quickstart", greeting())

		forced := []string{"version: 0.1.0", "version: 0.2.0", "from {{", "forced {{", "options: {", "options: {upgrade: {force: true}, "}
		_, err = open(forced...).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, "forced quickstart", greeting())

		_, err = open(chartManifest, "").Apply(t.Context(), cluster.Options{}) // the last HelmChartProxy is removed
		require.NoError(t, err)
		assert.Empty(t, greeting())
	})
}
