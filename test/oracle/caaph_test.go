package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// caaph is a program with the code of Cluster API's add-on provider Helm.
type caaph struct{ *answerer }

// helmRelease is the spec of a HelmReleaseProxy.
type helmRelease struct {
	ChartName        string
	RepoURL          string
	ReleaseName      string
	ReleaseNamespace string `json:"namespace"`
	Version          string
	Options          map[string]any
}

type caaphAnswer struct {
	Denied, Failed, Unread string
	Release                *helmRelease
	Values                 map[string]any
}

func startCAAPH(t *testing.T) caaph {
	t.Helper()
	folder := t.TempDir()
	command := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = "caaph"
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	// A copy without the client of Helm: nothing here calls it, and Helm's packages take minutes to compile.
	const module = "sigs.k8s.io/cluster-api-addon-provider-helm"
	command("mod", "download", module)
	source, code := command("list", "-m", "-f", "{{.Dir}}", module), filepath.Join(folder, "caaph-code")
	require.NoError(t, os.CopyFS(code, os.DirFS(source)))
	client := filepath.Join(code, "internal", "helm_client.go")
	require.NoError(t, os.Remove(client))
	require.NoError(t, os.WriteFile(client, []byte("package internal\n"), 0o600))
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join("caaph", file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), data, 0o600))
	}
	command("mod", "edit", "-replace", module+"="+code, filepath.Join(folder, "go.mod"))
	program := filepath.Join(folder, "caaph")
	command("build", "-modfile", filepath.Join(folder, "go.mod"), "-o", program, ".")
	return caaph{startAnswerer(t, program)}
}

// contracts are the definitions of kinds that a template of values reads. Their labels name the version of each contract.
const contracts = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kubeadmcontrolplanes.controlplane.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: v1beta2}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: awsclusters.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: v1beta2}}
`

// releaseOf returns what the add-on provider makes of a HelmChartProxy, the last document of a manifest.
func (c caaph) releaseOf(t require.TestingT, text string) (a caaphAnswer) {
	var question struct {
		Chart   json.RawMessage
		Objects []json.RawMessage
	}
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(contracts+"---\n"+text, -1) {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if m, _ := o["metadata"].(map[string]any); o["kind"] != "CustomResourceDefinition" && m["namespace"] == nil {
			m["namespace"] = "default"
		}
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		switch o["kind"] {
		case manifest.KindHelmChart:
			question.Chart = raw
		case "Cluster", "KubeadmControlPlane", "AWSCluster", "CustomResourceDefinition":
			question.Objects = append(question.Objects, raw)
		}
	}
	c.ask(t, question, &a)
	return a
}

// proxyLines are the lines of a HelmChartProxy that TestChartsAsUpstream varies.
type proxyLines struct{ paused, selector, repository, namespace, options, values string }

func (p proxyLines) yaml() string {
	return `
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: shop` + p.paused + `}
spec:
  clusterSelector: ` + p.selector + `
  chartName: web
  repoURL: ` + p.repository + `
  releaseName: web
  version: 1.2.3
` + p.namespace + p.options + "  valuesTemplate: |\n    " + p.values + "\n"
}

// TestChartsAsUpstream compares what a HelmChartProxy means: whether it is for the cluster, its defaults and its values. Each value is tried
// alone, too, so that what is compared does not depend on chance.
func TestChartsAsUpstream(t *testing.T) {
	quickstart, err := configs.Manifests.ReadFile("quickstart.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(quickstart), "kind: Cluster\nmetadata:\n  name: quickstart\n",
		"kind: Cluster\nmetadata:\n  name: quickstart\n  labels: {network: cilium, tier: \"1\"}\n  annotations: {a/b: c}\n", 1)
	require.Contains(t, text, "network: cilium")
	of := startCAAPH(t)
	seen := map[string]int{}

	const paused = `, annotations: {cluster.x-k8s.io/paused: "true"}`
	const repository = "https://example.com/charts"
	for _, line := range valueLines() {
		seen[of.compare(t, text, proxyLines{selector: "{}", repository: repository, values: line}.yaml())]++
	}
	for _, p := range []proxyLines{
		{selector: "{}", repository: repository, paused: paused},
		{selector: "{matchLabels: {network: none}}", repository: repository},
		{selector: "{}", repository: "no URL"},
	} {
		seen[of.compare(t, text, p.yaml())]++
	}
	for _, what := range []string{"refused", "no value", "paused", "not selected", "selected"} {
		require.Positive(t, seen[what], what)
	}

	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		seen[of.compare(t, text, proxyLines{
			values: strings.Join(rapid.SliceOfN(rapid.SampledFrom(valueLines()), 0, 4).Draw(t, "values"), "\n    "),
			paused: pick("paused", "", "", "", paused),
			selector: pick("selector", "{}", "{matchLabels: {network: cilium}}", "{matchLabels: {network: none}}",
				"{matchExpressions: [{key: tier, operator: In, values: ['1', '2']}]}", "{matchExpressions: [{key: tier, operator: NotIn, values: ['1']}]}",
				"{matchExpressions: [{key: gpu, operator: DoesNotExist}]}", "{matchExpressions: [{key: tier, operator: Exists}]}",
				"{matchExpressions: [{key: tier, operator: In, values: []}]}"),
			repository: pick("repository", repository, repository, "oci://example.com/charts", "no URL", "''"),
			namespace:  pick("namespace", "", "  namespace: shop\n", "  namespace: ''\n"),
			options: pick(
				"options",
				"",
				"  options: {atomic: true}\n",
				"  options: {wait: true, timeout: 1m30s}\n",
				"  options: {timeout: 0s}\n",
				"  options: {install: {createNamespace: false}}\n",
			),
		}.yaml())]++
	})
	t.Log(seen)
}

// compare requires that the loader takes a HelmChartProxy, for the cluster in text, as the add-on provider does, and returns how that is.
func (c caaph) compare(t require.TestingT, text, chart string) string {
	upstream := c.releaseOf(t, text+chart)
	m, err := loader.Load([]input.Source{{Name: "demo.yaml", Data: []byte(text + chart)}}, input.LoadOptions{})
	switch {
	case upstream.Denied == "" && strings.Contains(chart, "paused"): // the add-on provider changes nothing
		if err == nil {
			require.Contains(t, fmt.Sprint(m.Warnings), "paused")
		}
		return "paused"
	case upstream.Denied != "" || upstream.Failed != "" || upstream.Unread != "":
		require.Error(t, err, "%s\n%+v", chart, upstream)
		return "refused"
	case err != nil && strings.Contains(err.Error(), "has no value"): // the add-on provider takes the words "<no value>"
		require.Contains(t, chart, "missing")
		return "no value"
	}
	require.NoError(t, err, chart)
	if upstream.Release == nil {
		require.Empty(t, m.Charts, chart)
		return "not selected"
	}
	require.Len(t, m.Charts, 1, chart)
	ours := m.Charts[0]
	require.Equal(t, upstream.Release.ReleaseNamespace, ours.Namespace)
	require.Equal(t, upstream.Release.ReleaseName, ours.Release)
	require.Equal(t, upstream.Release.Version, ours.Version)
	require.Equal(t, upstream.Release.ChartName, ours.Title)
	require.Equal(t, len(upstream.Values), len(ours.Values))
	if len(ours.Values) > 0 {
		require.Equal(t, upstream.Values, ours.Values, chart)
	}
	require.Equal(t, upstream.Release.Options["timeout"], ours.Options.Timeout.Duration.String(), chart)
	require.Equal(t, upstream.Release.Options["wait"] == true, ours.Options.Wait || ours.Options.Atomic, chart)
	return "selected"
}

// valueLines are lines of a template of values, each a value of its own.
func valueLines() []string {
	return []string{
		"a: {{ .Cluster.metadata.name }}",
		"b: {{ .ControlPlane.spec.replicas }}",
		"c: {{ if eq .ControlPlane.spec.replicas 1 }}one{{ else }}more{{ end }}",
		"d: {{ add .ControlPlane.spec.replicas 1 }}",
		"e: yes",
		"f: off",
		"g: 0644",
		"h: 1e3",
		"i: 12345678901",
		"j: {{ .ControlPlane.spec.version | trimPrefix \"v\" }}",
		"k: {{ .InfraCluster.spec.region | quote }}",
		"l: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}",
		"m: {{ .Cluster.metadata.labels | toJson }}",
		"n: {{ .Cluster.spec.missing }}",
		"o: {{ .Cluster.metadata.annotations.missing | default \"none\" }}",
		"p: {{ hasKey .ControlPlane.spec \"replicas\" }}",
		"q: {{ lookup \"v1\" \"Secret\" \"\" \"\" }}",
		"r: [1, 2",
		"s: {{ .ControlPlane.spec.replicas | printf \"%d\" }}",
		"t: ~",
		"u: 2001-01-01",
		"v: !!binary aGVsbG8=",
		"w: {{ range $i, $x := list 1 2 }}{{ $x }}{{ end }}",
		"x: {{ .Cluster.apiVersion }} {{ .Cluster.kind }}",
		"y: {{ ternary \"a\" \"b\" (gt (int .ControlPlane.spec.replicas) 1) }}",
		"z: {{ .Cluster.spec.controlPlaneRef.name }}",
		"0: zero",
		"true: word",
	}
}
