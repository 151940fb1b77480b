package yamldoc_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

func TestBadYAML(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, tt := range []struct{ name, yaml, want string }{
		{"nothing", "", "cluster.yaml:1: there is no Cluster in the input: it is empty — if another command writes it, correct that command"},
		{"only comments", "# a\n---\n# b\n", "cluster.yaml:1: there is no Cluster in the input: it is empty — if another command writes it, correct that command"},
		{"other objects", head + "---\n" + strings.Replace(head, "ConfigMap", "Pod", 1), "cluster.yaml:1: there is no Cluster in the input: it has ConfigMap/a, Pod/a — add the object of kind Cluster"},
		{"tab", head + "data:\n\ta: b\n", "cluster.yaml:5: the YAML is invalid: a tab is used for indentation — use spaces"},
		{"indentation", head + "data:\n  a: b\n c: d\n", "cluster.yaml:6: the YAML is invalid: did not find expected key"},
		{"open bracket", head + "data: {a: b\nx: y\n", "cluster.yaml:4: the YAML is invalid: did not find expected ',' or '}'"},
		{"colon", head + "data: a: b\n", "cluster.yaml:4: the YAML is invalid: mapping values are not allowed in this context"},
		{"second document", head + "---\n" + head + "data: a: b\n", "cluster.yaml:8: the YAML is invalid"},
		{"unknown anchor", head + "data: {a: *b}\n", "cluster.yaml:4: the YAML is invalid: unknown anchor 'b' referenced — quote text that begins with *, or define the anchor"},
		{"not UTF-8", head + "data: {a: \xff}\n", "cluster.yaml:4: the text is not UTF-8 — save the file as UTF-8"},
		{"key twice", head + "data:\n  a: b\n  c: d\n  a: e\n", `cluster.yaml:7: ConfigMap/a data.a: the key "a" is duplicated, first on line 5 — keep one of them`},
		{"list as a document", "- a\n", "cluster.yaml:1: the document is a list — write its items as documents of their own, or as items of an object of kind List"},
		{"no kind", "apiVersion: v1\n", "cluster.yaml:1: the document has no kind — add it"},
		{"nothing known", "a: b\n", "cluster.yaml:1: the document has no apiVersion and no kind — add them, or remove the document"},
		{"no name", "apiVersion: v1\nkind: Secret\nmetadata: {}\n", "cluster.yaml:3: Secret/ metadata.name: the object has no name — set metadata.name"},
		{"no version", "kind: Cluster\nmetadata: {name: a}\n", `cluster.yaml:1: Cluster/a apiVersion: the object has no apiVersion — use cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1`},
		{"wrong group", "apiVersion: cluster.x-k8s.io/v1beta1\nkind: AWSCluster\nmetadata: {name: a}\n", "cluster.yaml:1: AWSCluster/a apiVersion: there is no kind AWSCluster in cluster.x-k8s.io/v1beta1 — use infrastructure.cluster.x-k8s.io/v1beta2 or infrastructure.cluster.x-k8s.io/v1beta1"},
		{"older than v1beta1", "apiVersion: cluster.x-k8s.io/v1alpha4\nkind: Cluster\nmetadata: {name: a}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1alpha3\nkind: AWSCluster\nmetadata: {name: a}\n---\napiVersion: exp.cluster.x-k8s.io/v1alpha3\nkind: MachinePool\nmetadata: {name: a}\n", "cluster.yaml:1: Cluster/a apiVersion: cluster.x-k8s.io/v1alpha4 is not supported, nor are the API versions of 2 more objects in the file — convert the file: clusterawsadm cluster convert -f cluster.yaml"},
		{"too old", "apiVersion: cluster.x-k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: a}\n", "cluster.yaml:1: Cluster/a apiVersion: cluster.x-k8s.io/v1alpha2 is not supported — no program converts it: make a new manifest with clusterawsadm cluster generate"},
		{"number", head + "data: {a: .nan}\n", "cluster.yaml:4: ConfigMap/a data.a: .nan is not a number that JSON knows — write a finite number, or quote it"},
		{"boolean of YAML 1.1", head + "data: {a: off}\n", "cluster.yaml:4: ConfigMap/a data.a: must be a string, not the boolean false — put the value in quotes"},
		{"endless alias", head + "data: &a {a: *a}\n", "nested too deeply"},
		{"bad name", strings.Replace(head, "name: a", "name: A_b", 1), `cluster.yaml:3: ConfigMap/A_b metadata.name: "A_b": must consist of lower-case letters, digits, `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifests.Load(t, tt.yaml, input.LoadOptions{})
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

// Short forms of YAML are expanded.
func TestYAML(t *testing.T) {
	yaml := manifests.Read(t, "../loader/testdata/good/quickstart.yaml") + `...
---
apiVersion: v1
kind: ConfigMap
metadata: &meta
  name: first
  namespace: prod
data: &data
  text: "yes"
  date: !!str 2020-01-01
  blob: !!binary aGVsbG8=
--- # the next one
apiVersion: v1
kind: ConfigMap
metadata: {name: second, namespace: prod}
data:
  8080: "a key that is a number"
`
	c := manifests.MustLoad(t, yaml, input.LoadOptions{})
	assert.Equal(t, map[string]string{"text": "yes", "date": "2020-01-01", "blob": "hello"}, c.ConfigMaps["first"].Data)
	assert.Equal(t, map[string]string{"8080": "a key that is a number"}, c.ConfigMaps["second"].Data)
}

func TestMergeKeys(t *testing.T) {
	yaml := manifests.Edit(t, manifests.Read(t, "../loader/testdata/good/quickstart.yaml"),
		"      instanceType: t3.large\n      rootVolume: {size: 40, type: gp3}",
		"      <<: {instanceType: t3.small, sshKeyName: ops}\n      instanceType: t3.large\n      rootVolume: {size: 40, type: gp3}")
	spec := manifests.MustLoad(t, yaml, input.LoadOptions{}).Deployments[0].Template.Spec.Template.Spec
	assert.Equal(t, "t3.large", spec.InstanceType, "keys of the mapping take precedence")
	assert.Equal(t, "ops", *spec.SSHKeyName)
}

func TestObjectTwice(t *testing.T) {
	yaml := manifests.Read(t, "../loader/testdata/good/quickstart.yaml")
	_, err := loader.Load([]input.Source{{Name: "a.yaml", Data: []byte(yaml)}, {Name: "b.yaml", Data: []byte(yaml)}}, input.LoadOptions{})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "b.yaml:27: AWSCluster/quick: the object is duplicated, first at a.yaml:27 — keep one of them")
}

// A key may be twice in an object of a ClusterResourceSet, as in Cluster API: the last value
// is used, with a warning.
func TestKeysTwiceInResourceSets(t *testing.T) {
	yaml := manifests.Edit(
		t,
		manifests.Read(t, "../../../../configs/quickstart.yaml"),
		"kind: Cluster\nmetadata:\n  name: quickstart\n",
		"kind: Cluster\nmetadata:\n  name: quickstart\n  labels: {csi: external}\n",
	) + `
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: csi}
spec:
  strategy: ApplyOnce
  clusterSelector: {matchLabels: {csi: external}}
  resources: [{kind: ConfigMap, name: csi}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: csi}
data:
  csi.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: driver}
    data: {a: first}
    data: {b: second}
`
	c := manifests.MustLoad(t, yaml, input.LoadOptions{})
	require.Len(t, c.ResourceSets, 1)
	require.Equal(t, map[string]any{"b": "second"}, c.ResourceSets[0].Documents[0].Object["data"])
	require.Contains(
		t,
		strings.Join(manifests.Warnings(c), "\n"),
		`cluster.yaml:167: ConfigMap/csi data.csi.yaml: the key "data" is duplicated, first on line 166: the last value is used, as in Cluster API — keep one of them`,
	)
}

// A field that another API version of the kind has is no typing error: the problem names that version.
func TestFieldsOfOtherVersions(t *testing.T) {
	quick, err := os.ReadFile("../../../../configs/quickstart.yaml")
	require.NoError(t, err)
	older := strings.Replace(
		string(quick),
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n",
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSCluster\n",
		1,
	)
	require.NotEqual(t, string(quick), older)
	_, err = manifests.Load(t, older, input.LoadOptions{})
	require.ErrorContains(
		t,
		err,
		"spec.controlPlaneLoadBalancer.loadBalancerType: the field does not exist in v1beta1, but in v1beta2 — convert the file: clusterawsadm cluster convert -f cluster.yaml",
	)
	_, err = manifests.Load(
		t,
		strings.Replace(string(quick), "  replicas: 1 # 3", "  rolloutStrategy: {type: RollingUpdate}\n  replicas: 1 # 3", 1),
		input.LoadOptions{},
	)
	require.ErrorContains(
		t,
		err,
		"spec.rolloutStrategy: the field does not exist in v1beta2, but in v1beta1 — use controlplane.cluster.x-k8s.io/v1beta1; known names: ",
	)
}
