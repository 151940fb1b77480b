package loader_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// marked returns the numbers of the lines with a mark.
func marked(text string) (lines []int) {
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "WRONG") {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// linesOf returns the numbers of the lines of problems and warnings in a file, in order.
func linesOf(t *testing.T, file string, problems []input.Problem) (lines []int) {
	t.Helper()
	for _, p := range problems {
		require.Equal(t, file, p.File, p.String())
		lines = append(lines, p.Line)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// A problem of an object in a ConfigMap or Secret is reported at the line of its field if the value is a block of text, and otherwise at the line of
// the key. In the test data, the lines with problems are marked.
func TestLinesInTexts(t *testing.T) {
	base, err := os.ReadFile("../../../../configs/quickstart.yaml")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?s)---\napiVersion: (v1|addons\S+)\nkind: (ConfigMap|ClusterResourceSet)\n.*`).ReplaceAllString(string(base), "")
	text = strings.Replace(text, "metadata:\n  name: quickstart\n", "metadata:\n  name: quickstart\n  labels: {cni: calico}\n", 1)
	const set = `
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: x}
spec:
  strategy: Reconcile
  clusterSelector: {matchLabels: {cni: calico}}
  resources: [{kind: %s, name: x}]
---
apiVersion: v1
kind: %s
metadata: {name: x}
`
	const objects = `
apiVersion: v1
kind: Namespace
metadata:
  name: a
---

apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
  namespace: a
spec:
  selector:
    matchLabels: {app: x}
  template:
    metadata:
      labels: {app: x}
    spec:
      containers:
      - name: Big # WRONG
        image: nginx
        env:
        - name: A
          value: 1 # WRONG
        resources:
          limits:
            cpu: much # WRONG
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: "y"
spec:
  selector:
    matchLabels: {app: x}
  minReadySeconds: 20
  progressDeadlineSeconds: 10 # WRONG
  template:
    metadata:
      labels: {app: x}
    spec:
      containers:
      - name: x
        image: nginx
---
kind: Service # WRONG
`
	const folded = `
{"apiVersion": "v1",
"kind": "ConfigMap",
"metadata": {"name": "a"}}

---

apiVersion: v1

kind: ConfigMap

metadata:
  name: b
  labels:
    app: "a b" # WRONG

data:
  a: 1 # WRONG
`
	indented := func(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }
	encoded := base64.StdEncoding.EncodeToString([]byte(objects))
	for name, manifest := range map[string]string{
		"literal":       fmt.Sprintf(set, "ConfigMap", "ConfigMap") + "data:\n  a.yaml: |\n" + indented(objects, "    ") + "\n",
		"two keys":      fmt.Sprintf(set, "ConfigMap", "ConfigMap") + "data:\n  b.yaml: |-\n" + indented(strings.NewReplacer(`"y"`, "z", "name: x\n  n", "name: z2\n  n").Replace(objects), "      ") + "\n  a.yaml: |+ # text\n" + indented(objects, "    ") + "\n",
		"indicator":     fmt.Sprintf(set, "ConfigMap", "ConfigMap") + "data:\n  a.yaml: &a |2\n" + indented(objects, "    ") + "\n",
		"folded":        fmt.Sprintf(set, "ConfigMap", "ConfigMap") + "data:\n  a.yaml: >\n" + indented(folded, "    ") + "\n",
		"quoted":        fmt.Sprintf(set, "ConfigMap", "ConfigMap") + fmt.Sprintf("data:\n  a.yaml: %q\n", objects),
		"stringData":    fmt.Sprintf(set, "Secret", "Secret") + "type: addons.cluster.x-k8s.io/resource-set\nstringData:\n  a.yaml: |\n" + indented(objects, "    ") + "\n",
		"base64":        fmt.Sprintf(set, "Secret", "Secret") + "type: addons.cluster.x-k8s.io/resource-set\ndata:\n  a.yaml: " + encoded + " # WRONG\n",
		"base64, lines": fmt.Sprintf(set, "Secret", "Secret") + "type: addons.cluster.x-k8s.io/resource-set\ndata:\n  a.yaml: | # WRONG\n    " + encoded + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			all := text + manifest
			_, err := loader.Load([]input.Source{{Name: "a.yaml", Data: []byte(all)}}, input.LoadOptions{})
			var invalid *input.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, marked(all), linesOf(t, "a.yaml", invalid.Problems), err)
			assert.Equal(t, name == "quoted" || strings.HasPrefix(name, "base64"), strings.Contains(err.Error(), "of the value"), err)
		})
	}
	t.Run("file", func(t *testing.T) {
		addons := input.LoadOptions{Addons: []input.Source{{Name: "b.yaml", Data: []byte(objects)}}}
		_, err := loader.Load([]input.Source{{Name: "a.yaml", Data: []byte(text)}}, addons)
		var invalid *input.InvalidError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, marked(objects), linesOf(t, "b.yaml", invalid.Problems), err)
	})
}

// TestLinesInOtherTexts: the same for configuration files, scripts and what else is a block of text in the manifest.
func TestLinesInOtherTexts(t *testing.T) {
	base, err := os.ReadFile("../../../../configs/quickstart.yaml")
	require.NoError(t, err)
	flatcar, err := os.ReadFile("../../../../configs/flatcar.yaml")
	require.NoError(t, err)
	const plane = "  kubeadmConfigSpec:\n"
	for name, c := range map[string]struct{ base, after, add string }{
		"audit policy": {strings.Replace(string(base), "    clusterConfiguration:\n", "", 1), plane, `    files:
    - path: /etc/kubernetes/policy.yaml
      content: |
        apiVersion: audit.k8s.io/v1

        kind: Policy
        rules:
        - level: Metadata
        - level: Much # WRONG
    clusterConfiguration:
      apiServer:
        extraArgs:
        - {name: audit-policy-file, value: /etc/kubernetes/policy.yaml}
        extraVolumes:
        - {name: policy, hostPath: /etc/kubernetes/policy.yaml, mountPath: /etc/kubernetes/policy.yaml, readOnly: true}
`},
		"template of cloud-init": {string(base), plane, `    files:
    - path: /etc/motd
      content: |
        Hello

        {{ ds.meta_data. }} # WRONG
`},
		"Container Linux Config": {string(flatcar), "          additionalConfig: |\n", `            storage:
              files:
              - path: /opt/x
                foo: 1 # WRONG
`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, c.base, c.after)
			text := strings.Replace(c.base, c.after, c.after+c.add, 1)
			m, err := loader.Load([]input.Source{{Name: "a.yaml", Data: []byte(text)}}, input.LoadOptions{})
			var problems []input.Problem
			var invalid *input.InvalidError
			if err == nil {
				problems = m.Warnings
			} else {
				require.ErrorAs(t, err, &invalid)
				problems = invalid.Problems
			}
			assert.Equal(t, marked(text), linesOf(t, "a.yaml", problems), problems)
		})
	}
}
