package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// The real API server accepts and refuses the objects that the rules of manifests and the simulated API server do, in a server-side
// apply as a run sends it.
func TestObjectsThatAreRefused(t *testing.T) {
	c := controlplane.Start(t)
	root, err := controlplane.Root()
	require.NoError(t, err)
	for file, accepted := range map[string]bool{"accepted.yaml": true, "refused.yaml": false} {
		raw, err := os.ReadFile(filepath.Join(root, "internal", "enginetest", "objects", file))
		require.NoError(t, err)
		for _, text := range strings.Split(string(raw), "---\n")[1:] {
			o := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object), text)
			kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			options := metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}}
			_, err := c.Objects.Resource(kind).Namespace(o.GetNamespace()).Apply(t.Context(), o.GetName(), o, options)
			if accepted {
				assert.NoError(t, err, text)
			} else {
				assert.Error(t, err, text)
			}
		}
	}
}
