package convert_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	capa "github.com/clusterawsadm/clusterawsadm/test/upstream"
)

// The complete results and notes of manifests of older versions.
func TestFiles(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		name := filepath.Base(input)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(input)
			require.NoError(t, err)
			r := converted(t, name, string(data))
			var notes strings.Builder
			for _, n := range r.Notes {
				notes.WriteString("\n# note: " + n.String())
			}
			golden.Assert(t, strings.TrimSuffix(name, ".yaml")+".golden", string(r.Text)+notes.String()+"\n")
		})
	}
}

// converted converts a text, and checks that its conversion does not change it.
func converted(t *testing.T, name, text string) *convert.Result {
	t.Helper()
	r, err := convert.File(name, []byte(text))
	require.NoError(t, err)
	again, err := convert.File(name, r.Text)
	require.NoError(t, err)
	require.Equal(t, string(r.Text), string(again.Text), "the result does not change")
	require.Zero(t, again.Converted)
	return r
}

// Manifests of the newest version stay as they are.
func TestNewestVersion(t *testing.T) {
	files, err := fs.Glob(configs.Manifests, "*.yaml")
	require.NoError(t, err)
	unchanged := 0
	for _, file := range files {
		data, err := configs.Manifests.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(data), "/v1beta1\n") {
			continue
		}
		r := converted(t, file, string(data))
		assert.Equal(t, string(data), string(r.Text), file)
		unchanged++
	}
	assert.Greater(t, unchanged, 20)
}

const deployment = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata:
  name: w
spec:
  clusterName: demo
  strategy:
    rollingUpdate:
      maxSurge: 1
  template:
    spec:
      clusterName: demo
`

// The form of a text stays.
func TestForms(t *testing.T) {
	moved := strings.NewReplacer("v1beta1", "v1beta2", "  strategy:\n    rollingUpdate:\n      maxSurge: 1\n", "  rollout:\n    strategy:\n      type: RollingUpdate\n      rollingUpdate:\n        maxSurge: 1\n").
		Replace(deployment)
	for _, tt := range []struct{ name, in, want string }{
		{"as it is", deployment, moved},
		{"Windows line ends", strings.ReplaceAll(deployment, "\n", "\r\n"), strings.ReplaceAll(moved, "\n", "\r\n")},
		{"byte order mark", "\ufeff" + deployment, "\ufeff" + moved},
		{"no line end", strings.TrimSuffix(deployment, "\n"), strings.TrimSuffix(moved, "\n")},
		{"directive", "%YAML 1.2\n---\n" + deployment, "%YAML 1.2\n---\n" + moved},
		{"end marker", deployment + "...\n# end\n", moved + "...\n# end\n"},
		{"comments around documents", "# a\n---  # b\n" + deployment + "# c\n--- # d\n\n", "# a\n---  # b\n" + moved + "# c\n--- # d\n\n"},
		{"other objects", "kind:   ConfigMap\napiVersion: v1\ndata: { a:   'b' }\n---\n" + deployment, "kind:   ConfigMap\napiVersion: v1\ndata: { a:   'b' }\n---\n" + moved},
		{
			"lines that a template adds", strings.Replace(deployment, "  template:", "  ${MORE}\n  template:", 1),
			strings.Replace(moved, "  template:", "  ${MORE}\n  template:", 1),
		},
		{
			"four spaces", regexp.MustCompile(`(?m)^ +`).ReplaceAllStringFunc(deployment, func(s string) string { return s + s }),
			regexp.MustCompile(`(?m)^ +`).ReplaceAllStringFunc(moved, func(s string) string { return s + s }),
		},
		{
			"JSON", `{
    "apiVersion": "cluster.x-k8s.io/v1beta1",
    "kind": "MachineDeployment",
    "spec": {
        "minReadySeconds": 5,
        "template": {"spec": {"nodeDrainTimeout": "10m"}},
        "selector": {"matchLabels": {"a": "b"}}
    }
}
`, `{
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "MachineDeployment",
    "spec": {
        "template": {
            "spec": {
                "deletion": {
                    "nodeDrainTimeoutSeconds": 600
                },
                "minReadySeconds": 5
            }
        },
        "selector": {"matchLabels": {"a": "b"}}
    }
}
`,
		},
		{
			"JSON stream", `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster"} {"apiVersion":"v1","kind":"Secret"}`,
			`{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"} {"apiVersion":"v1","kind":"Secret"}`,
		},
		{
			"anchors", `apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {annotations: {x: &long 5m}}
spec:
  <<: &more
    version: v1.34.2
  nodeDrainTimeout: *long
  bootstrap:
    configRef: &ref {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: a}
`, `apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {annotations: {x: &long 5m}}
spec:
  <<: &more
    version: v1.34.2
  deletion:
    nodeDrainTimeoutSeconds: 300
  bootstrap:
    configRef: &ref {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: a}
`,
		},
		{
			"merged field that moves", `apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {annotations: &all {x: "y"}, labels: *all}
spec:
  <<: {nodeDrainTimeout: 5m}
  version: v1.34.2
`, `apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {annotations: &all {x: "y"}, labels: {x: "y"}}
spec:
  deletion:
    nodeDrainTimeoutSeconds: 300
  version: v1.34.2
`,
		},
		{
			"subnets without an id in v1beta2, as up to v2.3 of CAPA", `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: a}
spec:
  network:
    subnets:
    # the first
    - availabilityZone: eu-west-1a
      cidrBlock: 10.0.0.0/24
    - {id: mine, cidrBlock: 10.0.1.0/24}
    - {cidrBlock: 10.0.1.0/24, availabilityZone: eu-west-1b, isPublic: true}
`, `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: a}
spec:
  network:
    subnets:
    # the first
    - id: a-subnet-private-eu-west-1a
      availabilityZone: eu-west-1a
      cidrBlock: 10.0.0.0/24
    - {id: mine, cidrBlock: 10.0.1.0/24}
    - {id: a-subnet-public-eu-west-1b, cidrBlock: 10.0.1.0/24, availabilityZone: eu-west-1b, isPublic: true}
`,
		},
		{
			"block in a moved field", `apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
spec:
  kubeadmConfigSpec:
    clusterConfiguration:
      scheduler:
        extraArgs:
          # two lines
          b: >- # folded
            one

            two
          "a": 'it''s' # quoted
      controllerManager:
          extraArgs: {}
`, `apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
spec:
  kubeadmConfigSpec:
    clusterConfiguration:
      scheduler:
        extraArgs:
          - name: "a"
            value: 'it''s' # quoted
          # two lines
          - name: b
            value: >- # folded
              one

              two
`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, string(converted(t, "in.yaml", tt.in).Text))
		})
	}
}

func TestProblems(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"invalid YAML", deployment + "---\na: b: c\n", "in.yaml:14: the YAML is invalid: mapping values are not allowed in this context — correct it first: cluster validate says more"},
		{"Helm template", "{{- if .Values.x }}\n" + deployment, "if it is a Helm or Go template, render it first"},
		{
			"v1alpha2",
			"apiVersion: cluster.x-k8s.io/v1alpha2\nkind: Machine\n---\napiVersion: bootstrap.cluster.x-k8s.io/v1alpha2\nkind: KubeadmConfig\n",
			"in.yaml:1: cluster.x-k8s.io/v1alpha2 cannot be converted: this version has no control planes, only machines — make a new manifest with clusterawsadm cluster generate",
		},
		{"keys that are no text", "? [a]\n: b\n" + deployment, "in.yaml:1: the document has a form of YAML that is not converted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := convert.File("in.yaml", []byte(tt.in))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

// variables has values for the templates of Cluster API Provider AWS.
func variables(name string) (string, bool) {
	value, known := map[string]string{
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2", "KUBERNETES_VERSION": "v1.34.2", "AWS_REGION": "us-east-1", "CNI_RESOURCES": "{}",
		"AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large", "AWS_NODE_MACHINE_TYPE": "t3.large", "IMAGE_ID": "ami-0123456789abcdef0", "HOST_ID": "h-0123456789abcdef0",
	}[name]
	if known {
		return value, true
	}
	switch {
	case strings.HasSuffix(name, "_ID"):
		return "vpc-0123456789abcdef0", true
	case strings.HasPrefix(name, "AWS_AVAILABILITY_ZONE"):
		return "us-east-1a", true
	}
	return "demo", true
}

// A converted manifest describes the same cluster as the original, where that can be read.
func TestSameCluster(t *testing.T) {
	dir := capa.Dir(t)
	same, now := 0, 0
	for _, folder := range []string{"../../internal/engine/manifest/loader/testdata/good", "../../configs", filepath.Join(dir, "templates"), filepath.Join(dir, "test")} {
		require.NoError(t, filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "addons" { // parts of manifests
				return filepath.SkipDir
			}
			if err != nil || d.IsDir() || filepath.Ext(file) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if !regexp.MustCompile(`cluster\.x-k8s\.io/v1(beta1|alpha)`).Match(data) || strings.Contains(string(data), "CustomResourceDefinition") {
				return nil
			}
			r := converted(t, file, string(data))
			before, whyNot := load(file, data)
			after, err := load(file, r.Text)
			switch {
			case whyNot != nil && err == nil:
				now++
			case whyNot == nil && assert.NoError(t, err, file):
				assert.Equal(t, meaning(t, before), meaning(t, after), file)
				same++
			}
			return nil
		}))
	}
	t.Logf("%d describe the same cluster, %d can be read now", same, now)
	assert.Greater(t, same, 30)
}

func load(file string, data []byte) (*manifest.Cluster, error) {
	return loader.Load([]input.Source{{Name: file, Data: data}}, input.LoadOptions{Region: "us-east-1", Lookup: variables, Set: variables})
}

// meaning returns what a loaded manifest says, without positions, and with the defaults of the
// schemas: those of v1beta2 are not set in a parent that is missing.
func meaning(t *testing.T, c *manifest.Cluster) any {
	t.Helper()
	c.Warnings = nil
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(raw, &out))
	normalize(t, out)
	return out
}

func normalize(t *testing.T, value any) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		delete(v, "status")
		delete(v, "Origin")
		for _, position := range []string{"At", "Line", "Lines"} {
			delete(v, position)
		}
		if _, isResource := v["apiVersion"]; isResource {
			kind, _ := v["kind"].(string)
			if raw, err := crd.Raw(kind, "v1beta2"); err == nil {
				schema, err := crd.Parse(raw)
				require.NoError(t, err)
				schema.Default(v)
			}
		}
		for key, below := range v {
			if vpc, ok := below.(map[string]any); ok && key == "vpc" && len(vpc) == 0 { // of an AWSCluster that EKS does without
				v[key] = map[string]any{"availabilityZoneSelection": "Ordered", "availabilityZoneUsageLimit": 3.0, "subnetSchema": "PreferPrivate"}
			}
			normalize(t, below)
		}
	case []any:
		for _, below := range v {
			normalize(t, below)
		}
	}
}
