package kubernetes

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// The real API server accepts and refuses the changes of objects that the simulated one does, for the same fields.
func TestUpdatesThatAreRefused(t *testing.T) {
	c := controlplane.Start(t)
	root, err := controlplane.Root()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "internal", "enginetest", "objects", "updates.yaml"))
	require.NoError(t, err)
	for _, text := range strings.Split(string(raw), "---\n")[1:] {
		var u struct {
			Have, After map[string]any
			Refused     []string
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &u), text)
		apply := func(object map[string]any, dry ...string) error {
			o := &unstructured.Unstructured{Object: object}
			kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			options := metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: dry}
			_, err := c.Objects.Resource(kind).Namespace(o.GetNamespace()).Apply(t.Context(), o.GetName(), o, options)
			return err
		}
		require.NoError(t, apply(u.Have), text)
		if u.Have["kind"] == "CustomResourceDefinition" {
			time.Sleep(2 * time.Second) // until it is established
		}
		var fields []string
		var status apierrors.APIStatus
		if err := apply(u.After, metav1.DryRunAll); errors.As(err, &status) {
			require.Equal(t, int32(http.StatusUnprocessableEntity), status.Status().Code, "%s: %v", text, err)
			for _, cause := range status.Status().Details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		assert.ElementsMatch(t, u.Refused, fields, text)
	}
}
