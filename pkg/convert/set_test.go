package convert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
)

const twoObjects = `# the cluster
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo}
spec:
  paused: false   # for now
---
# the workers
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata:
    name: "${CLUSTER_NAME}-md-0" # a template
spec:
    replicas:   3  # as many as zones
    selector: {}
    template: {spec: {version: "v1.33.0", zones: [a, b]}}   # one line
    list:
    - name: 'x'
      value: 1
    - name: y
    shared: &s {a: 1}
    other: *s
    deep: &d
        a: 1
    number: ${N}
    default: ${V:=v1.33.0} # or newer

# the end
`

func TestSet(t *testing.T) {
	for _, c := range []struct {
		object, path, value string
		old, new            string // of the text; "" if the change is refused
		was                 string // or what is said
	}{
		{"Cluster", "spec.paused", "true", "paused: false   #", "paused: true   #", "false"},
		{"Cluster", "metadata.name", "other", "{name: demo}", "{name: other}", "demo"},
		{"Cluster", "metadata.labels.a/b", "c", "{name: demo}", `{name: demo, labels: {a/b: c}}`, ""},
		{"Cluster", "spec.topology.version", "v1", "  paused: false   # for now\n", "  paused: false   # for now\n  topology:\n    version: v1\n", ""},
		{"MachineDeployment", "spec.replicas", "5", "replicas:   3  #", "replicas:   5  #", "3"},
		{"MachineDeployment", "spec.template.spec.version", "v1.34.0", `"v1.33.0"`, `"v1.34.0"`, "v1.33.0"},
		{"MachineDeployment", "spec.template.spec.zones", "[c]", "[a, b]", "[c]", `["a","b"]`},
		{"MachineDeployment", "spec.selector.matchLabels.x", "y", "selector: {}\n", "selector:\n        matchLabels:\n            x: y\n", ""},
		{"MachineDeployment", "spec.list.0.name", "z", "'x'", "'z'", "x"},
		{"MachineDeployment", "spec.list.1.value", "{a: 1}", "    - name: y\n", "    - name: y\n      value: {a: 1}\n", ""},
		{"MachineDeployment", "spec.list.0.value", "-", "      value: 1\n", "", "1"},
		{"MachineDeployment", "spec.default", "v1.34.0", "${V:=v1.33.0} # or", "${V:=v1.34.0} # or", "${V:=v1.33.0}"},
		{"MachineDeployment", "spec.number", "4", "", "", "f.yaml:25: MachineDeployment/${CLUSTER_NAME}-md-0 spec.number: the value is ${N} — change the variable, with --set or in the environment, or edit the template by hand"},
		{"MachineDeployment", "spec.other.a", "2", "", "", "f.yaml:22: MachineDeployment/${CLUSTER_NAME}-md-0 spec.other.a: the value is the alias *s, which stands for other places, too — edit it by hand"},
		{"MachineDeployment", "spec.shared.a", "2", "", "", "the value is the anchor &s"},
		{"MachineDeployment", "spec.deep.a", "2", "", "", "the value is the anchor &d"},
		{"MachineDeployment", "spec.list.7.name", "2", "", "", "the list has no item 7: it has 2"},
		{"MachineDeployment", "spec.replicas.x", "2", "", "", "the value is 3, which has no fields"},
		{"MachineDeployment", "spec.replicas", "{a", "", "", `write it as YAML on one line`},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll(twoObjects, "\n", end)
			change := convert.Change{Path: strings.Split(c.path, "."), Value: c.value, Remove: c.value == "-"}
			for _, o := range convert.Objects([]byte(text)) {
				if o.Kind == c.object {
					change.Object = o
				}
			}
			require.NotEmpty(t, change.Object.Kind)
			out, was, err := convert.Set("f.yaml", []byte(text), []convert.Change{change})
			if c.old == "" {
				require.Error(t, err, c.path)
				assert.Contains(t, err.Error(), c.was)
				continue
			}
			require.NoError(t, err, c.path)
			assert.Equal(t, c.was, was[0], c.path)
			want := strings.Replace(text, strings.ReplaceAll(c.old, "\n", end), strings.ReplaceAll(c.new, "\n", end), 1)
			assert.Equal(t, want, string(out), c.path)
		}
	}
}

// The tag of an image in a text is replaced there.
func TestSetTag(t *testing.T) {
	const text = "kind: Secret\nstringData:\n  a.yaml: |\n    # v1.33.0\n    image: x/y:v1.33.0\n    other: v1.33.0 # as above\n"
	change := convert.Change{Object: convert.Objects([]byte(text))[0], Path: []string{"stringData", "a.yaml"}, Value: "v1.34.0", Tag: "v1.33.0"}
	out, was, err := convert.Set("f", []byte(text), []convert.Change{change})
	require.NoError(t, err)
	assert.Equal(t, []string{"v1.33.0"}, was)
	assert.Equal(t, strings.Replace(text, "y:v1.33.0", "y:v1.34.0", 1), string(out))
	change.Tag = "v1.32.0"
	_, _, err = convert.Set("f", []byte(text), []convert.Change{change})
	require.ErrorContains(t, err, "the text has no image with the tag v1.32.0")
}

// A variable that is set has not its default.
func TestSetVariables(t *testing.T) {
	o := convert.Objects([]byte(twoObjects))[1]
	assert.Equal(t, convert.Object{Kind: "MachineDeployment", APIVersion: "cluster.x-k8s.io/v1beta2", Name: "${CLUSTER_NAME}-md-0", Line: 9}, o)
	_, _, err := convert.Set("f.yaml", []byte(twoObjects), []convert.Change{
		{Object: o, Path: []string{"spec", "default"}, Value: "v2", Variables: map[string]string{"V": "v1.33.5"}},
	})
	require.ErrorContains(t, err, "the value is ${V:=v1.33.0}, and the variable is set to v1.33.5")
}

// A file in JSON stays JSON, and the objects of a List are found.
func TestSetJSON(t *testing.T) {
	const text = "{\n  \"kind\": \"List\",\n  \"items\": [{\"kind\": \"Cluster\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"x\": 1}}]\n}\n"
	o := convert.Objects([]byte(text))
	require.Len(t, o, 1)
	out, was, err := convert.Set(
		"f.json",
		[]byte(text),
		[]convert.Change{{Object: o[0], Path: []string{"spec", "x"}, Value: "two"}, {Object: o[0], Path: []string{"spec", "y", "z"}, Value: "[a]"}},
	)
	require.NoError(t, err)
	assert.Equal(t, []string{"1", ""}, was)
	assert.JSONEq(t, `{"kind": "List", "items": [{"kind": "Cluster", "metadata": {"name": "a"}, "spec": {"x": "two", "y": {"z": ["a"]}}}]}`, string(out))
}

// An object of the same kind and name in another document does not change.
func TestSetOneOfTwins(t *testing.T) {
	const text = "kind: A\nmetadata: {name: a}\nx: 1\n---\nkind: A\nmetadata: {name: a}\nx: 1\n"
	out, _, err := convert.Set("f", []byte(text), []convert.Change{{Object: convert.Objects([]byte(text))[1], Path: []string{"x"}, Value: "2"}})
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSuffix(text, "1\n")+"2\n", string(out))
}
