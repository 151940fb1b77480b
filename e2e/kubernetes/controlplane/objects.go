package controlplane

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// crds are CustomResourceDefinitions.
func crds() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// InstallCRDs installs CustomResourceDefinitions from files of a module, and waits until
// they are served. There are no webhooks, so versions are not converted. edit may be nil.
func (c *ControlPlane) InstallCRDs(t *testing.T, module, folder string, edit func(crd *unstructured.Unstructured), names ...string) {
	t.Helper()
	dir, err := ModuleDir(t.Context(), module)
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(folder), name))
		require.NoError(t, err)
		crd := Parse(t, string(text))[0]
		require.NoError(t, unstructured.SetNestedField(crd.Object, map[string]any{"strategy": "None"}, "spec", "conversion"))
		if edit != nil {
			edit(crd)
		}
		_, err = c.Objects.Resource(crds()).Create(t.Context(), crd, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			is, err := c.Objects.Resource(crds()).Get(t.Context(), crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return false
			}
			conditions, _, _ := unstructured.NestedSlice(is.Object, "status", "conditions")
			for _, each := range conditions {
				if is, ok := each.(map[string]any); ok && is["type"] == "Established" && is["status"] == "True" {
					return true
				}
			}
			return false
		}, patience, 50*time.Millisecond, "%s is not established", crd.GetName())
	}
}

// Parse parses the objects of a YAML text.
func Parse(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// Create creates the objects of a YAML text. It retries, because a kind may be served a
// moment after it is established.
func (c *ControlPlane) Create(t *testing.T, text string) {
	t.Helper()
	for _, o := range Parse(t, text) {
		var err error
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if _, err = c.of(o).Create(t.Context(), o, metav1.CreateOptions{}); err == nil {
				break
			}
		}
		require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
	}
}

// of returns the path of objects of a kind. The resource name is the plural of Kubernetes
// for nearly all kinds.
func (c *ControlPlane) of(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := o.GroupVersionKind()
	r := c.Objects.Resource(gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"))
	if o.GetNamespace() == "" {
		return r
	}
	return r.Namespace(o.GetNamespace())
}

// Get returns the object of a kind, "awsclusters.infrastructure.cluster.x-k8s.io/v1beta2".
func (c *ControlPlane) Get(t *testing.T, resource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := c.Objects.Resource(Resource(resource)).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return o
}

// Resource parses "deployments.apps/v1", or "secrets/v1".
func Resource(text string) schema.GroupVersionResource {
	full, version, _ := strings.Cut(text, "/")
	resource, group, _ := strings.Cut(full, ".")
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}
