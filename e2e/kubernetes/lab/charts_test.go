package lab

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

const (
	// helmVersion is the version that the tests in e2e build, too.
	helmVersion = "v3.19.5"

	chartsAddress = awsAddress + ":5002"
	ociAddress    = awsAddress + ":5003"
	ociLogin      = "reader"
)

// buildHelm returns the folder of helm, which is built the first time: that takes minutes.
func buildHelm(t *testing.T) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	folder := filepath.Join(root, ".cache", "helm-"+helmVersion)
	if _, err := os.Stat(filepath.Join(folder, "helm")); err == nil {
		return folder
	}
	build := exec.CommandContext(t.Context(), "go", "install", "helm.sh/helm/v3/cmd/helm@"+helmVersion)
	build.Dir, build.Env = t.TempDir(), append(os.Environ(), "GOBIN="+folder, "GOFLAGS=-mod=mod")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

// helloChart has a Deployment and a hook. The hook fails unless the value "hook" is "/bin/busybox".
const helloChart = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {greeting: {{ .Values.greeting | quote }}, chart: {{ .Chart.Version | quote }}}}
spec:
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      containers: [{name: hello, image: registry.k8s.io/lab/web:v1}]
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: hook, image: registry.k8s.io/lab/get:v1, command: [{{ .Values.hook | quote }}, "true"]}]
`

// serveCharts serves version 0.1.0 of the chart "hello" over HTTP, and version 0.2.0 from an OCI registry with TLS and a
// password. It logs helm in to the registry.
func (u *Laptop) serveCharts(t *testing.T) {
	t.Helper()
	helm, folder := u.tools, t.TempDir()
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(helm, "helm"), args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for _, version := range []string{"0.1.0", "0.2.0"} {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "hello", "templates"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "hello", "Chart.yaml"), []byte("apiVersion: v2\nname: hello\nversion: "+version+"\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "hello", "templates", "all.yaml"), []byte(helloChart), 0o600))
		run("package", "hello")
	}
	charts := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	local := httptest.NewTLSServer(charts) // for this process: the other one is in a network namespace
	defer local.Close()
	run("push", "hello-0.2.0.tgz", "oci://"+local.Listener.Addr().String()+"/charts", "--insecure-skip-tls-verify")
	require.NoError(t, os.Remove(filepath.Join(folder, "hello-0.2.0.tgz")))
	run("repo", "index", ".", "--url", "http://"+chartsAddress)
	u.serve(t, chartsAddress, http.FileServer(http.Dir(folder)), nil)

	password := rand.Text()
	cert, key, err := certutil.GenerateSelfSignedCertKey(awsAddress, []net.IP{net.ParseIP(awsAddress)}, nil)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	u.roots = filepath.Join(folder, "roots.crt")
	require.NoError(t, os.WriteFile(u.roots, cert, 0o600))
	u.serve(t, ociAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, given, _ := r.BasicAuth(); name != ociLogin || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		charts.ServeHTTP(w, r)
	}), &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	login, out, story := u.command(t.Context(), filepath.Join(helm, "helm"), "registry", "login", ociAddress, "--username", ociLogin, "--password-stdin")
	login.Stdin = strings.NewReader(password)
	require.NoError(t, login.Run(), "%s%s", out, story)
}

// serve serves HTTP, or with a configuration HTTPS, at an address of the network until the test ends.
func (l *Lab) serve(t *testing.T, address string, handler http.Handler, secure *tls.Config) {
	t.Helper()
	listener, err := l.account.listen(t.Context(), address)
	require.NoError(t, err)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
}

// hello is a HelmChartProxy of the chart.
func hello(version, greeting, hook string) string {
	repository := "http://" + chartsAddress
	if version == "0.2.0" {
		repository = "oci://" + ociAddress + "/charts"
	}
	return fmt.Sprintf(`
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: hello}
spec:
  clusterSelector: {}
  repoURL: %s
  chartName: hello
  releaseName: hello
  version: %s
  namespace: greetings
  valuesTemplate: |
    greeting: %s-{{ .Cluster.metadata.name }}
    hook: %s
  options: {wait: true, timeout: 2m, atomic: true}
`, repository, version, greeting, hook)
}

// charts installs, upgrades and uninstalls a chart with the real helm.
func (u *Laptop) charts(t *testing.T, manifest string) {
	u.tools = buildHelm(t)
	u.serveCharts(t)
	const works = "/bin/busybox"
	apply := func(charts string) error {
		require.NoError(t, os.WriteFile(u.manifest, []byte(manifest+charts), 0o600))
		cmd, _, story := u.command(t.Context(), u.program, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
		err := cmd.Run()
		if err != nil {
			return fmt.Errorf("%w: %s", err, story)
		}
		return nil
	}
	labels := func() string {
		return u.Kubectl(
			t,
			"get",
			"deployment",
			"-n",
			"greetings",
			"hello",
			"-o",
			"jsonpath={.metadata.labels.chart} {.metadata.labels.greeting} {.status.readyReplicas}",
		)
	}
	require.NoError(t, apply(hello("0.1.0", "good-morning", works)))
	assert.Equal(t, "0.1.0 good-morning-demo 1", labels())
	u.NothingToDo(t)

	require.NoError(t, os.WriteFile(u.manifest, []byte(manifest+hello("0.2.0", "good-evening", works)), 0o600))
	for after := 3 * time.Second; !u.killed(t, after, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready"); after *= 2 {
		t.Logf("killed after %s", after)
		require.Less(t, after, 3*time.Minute)
	}
	assert.Equal(t, "0.2.0 good-evening-demo 1", labels())
	u.NothingToDo(t)

	require.ErrorContains(t, apply(hello("0.2.0", "good-night", "/bin/missing")), "helm-release/hello")
	assert.Equal(t, "0.2.0 good-evening-demo 1", labels(), "it was rolled back")
	require.NoError(t, apply(hello("0.2.0", "good-evening", works)))
	u.NothingToDo(t)

	require.NoError(t, apply(""))
	assert.Equal(t, "", u.Kubectl(t, "get", "deployment", "-n", "greetings", "-o", "name"))
	u.NothingToDo(t)
	t.Log(
		"proved: helm installs a chart from a repository, upgrades it from an OCI registry although each run is killed, rolls back when a hook fails, and uninstalls",
	)
}
