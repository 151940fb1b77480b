package loader_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// An add-on needs the CustomResourceDefinitions of its objects, and the manifest of a cluster is no add-on.
func TestKindsThatNothingServes(t *testing.T) {
	raw, err := os.ReadFile("../../../../configs/quickstart.yaml")
	require.NoError(t, err)
	load := func(addons ...string) (*manifest.Cluster, error) {
		o := input.LoadOptions{}
		for _, text := range addons {
			o.Addons = append(o.Addons, input.Source{Name: "addon.yaml", Data: []byte(text)})
		}
		return loader.Load([]input.Source{{Name: "q.yaml", Data: raw}}, o)
	}
	const object = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: x}\n"
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n" +
		"spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}}\n"
	_, err = load(string(raw))
	require.ErrorContains(t, err, "is of Cluster API: the file is no add-on, but the manifest of a cluster — pass it with -f")
	c, err := load(object)
	require.NoError(t, err)
	assert.Contains(
		t,
		manifests.Warnings(c),
		"addon.yaml:1: the API server serves the kind Widget of example.com only with its CustomResourceDefinition, which no add-on brings — add the CustomResourceDefinition, unless something else installs it before",
	)
	for _, served := range []string{definition + "---\n" + object, deployment} {
		c, err := load(served)
		require.NoError(t, err)
		assert.NotContains(t, manifests.Warnings(c), "addon.yaml:1: the API server serves")
		assert.Empty(t, manifests.Warnings(c))
	}
}
