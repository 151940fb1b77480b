package convert_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
)

// An object that has every field of its kind in v1beta1 is converted to one that has only fields of
// v1beta2. Every field that is not carried is in a note.
func TestEveryField(t *testing.T) {
	tested := 0
	for _, kind := range convert.Kinds() {
		raw, err := crd.Raw(kind, "v1beta1")
		if err != nil {
			continue
		}
		tested++
		t.Run(kind, func(t *testing.T) {
			var schema apiextensionsv1.JSONSchemaProps
			require.NoError(t, json.Unmarshal(raw, &schema))
			delete(schema.Properties, "status")
			object, ok := sample(&schema, kind, 1).(map[string]any)
			require.True(t, ok)
			object["apiVersion"], object["kind"], object["metadata"] = groups()[kind]+"/v1beta1", kind, map[string]any{"name": "a"}
			text, err := yaml.Marshal(object)
			require.NoError(t, err)
			r := converted(t, kind, string(text))
			require.Equal(t, 1, r.Converted)

			newest, err := crd.Raw(kind, "v1beta2")
			require.NoError(t, err)
			compiled, err := crd.Parse(newest)
			require.NoError(t, err)
			var out map[string]any
			require.NoError(t, yaml.Unmarshal(r.Text, &out))
			assert.Empty(t, compiled.Prune(out, true), "fields that v1beta2 does not have\n%s", r.Text)

			for value := range values(object) {
				if !strings.Contains(string(r.Text), value) {
					assert.True(t, slices.ContainsFunc(lost(), func(path string) bool { return strings.Contains(value, path) }) ||
						slices.ContainsFunc(paths(r), func(path string) bool { return strings.Contains(value, path) }), "%s is lost without a note", value)
				}
			}
		})
	}
	assert.Greater(t, tested, 18)
}

func groups() map[string]string {
	out := map[string]string{}
	for _, kind := range convert.Kinds() {
		switch {
		case strings.HasPrefix(kind, "ClusterResourceSet"):
			out[kind] = "addons.cluster.x-k8s.io"
		case strings.HasPrefix(kind, "KubeadmConfig"), strings.HasPrefix(kind, "EKSConfig"):
			out[kind] = "bootstrap.cluster.x-k8s.io"
		case strings.HasPrefix(kind, "KubeadmControlPlane"), strings.HasPrefix(kind, "AWSManagedControlPlane"):
			out[kind] = "controlplane.cluster.x-k8s.io"
		case strings.HasPrefix(kind, "AWS"):
			out[kind] = "infrastructure.cluster.x-k8s.io"
		default:
			out[kind] = "cluster.x-k8s.io"
		}
	}
	return out
}

// lost are fields that go without a note: they have had no meaning.
func lost() []string {
	return []string{
		"uid", "resourceVersion", "fieldPath", "namespace", "definitionFrom", // of references, and of variables
		"Configuration-apiVersion", "Configuration-kind", "Ref-apiVersion", "useExperimentalRetryJoin",
	}
}

// paths returns the fields of notes as they are in the values of a sample.
func paths(r *convert.Result) (all []string) {
	for _, n := range r.Notes {
		path := n.Path
		for i := strings.IndexByte(path, '['); i >= 0; i = strings.IndexByte(path, '[') {
			path = path[:i] + path[strings.IndexByte(path, ']')+1:]
		}
		all = append(all, strings.ReplaceAll(path, ".", "-"))
	}
	return all
}

// values returns the texts of a sample that are unique.
func values(value any) map[string]bool {
	out := map[string]bool{}
	switch v := value.(type) {
	case map[string]any:
		for _, below := range v {
			maps.Copy(out, values(below))
		}
	case []any:
		for _, below := range v {
			maps.Copy(out, values(below))
		}
	case string:
		if strings.Contains(v, "-spec-") {
			out[v] = true
		}
	}
	return out
}

// sample returns a value with every field of a schema. Texts are the paths of their fields.
func sample(s *apiextensionsv1.JSONSchemaProps, path string, depth int) any {
	switch {
	case s.XIntOrString:
		return 1
	case s.Type == "object" && len(s.Properties) > 0:
		out := map[string]any{}
		for name, below := range s.Properties {
			out[name] = sample(&below, path+"-"+name, depth)
		}
		return out
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && depth < 4:
		return map[string]any{"key": sample(s.AdditionalProperties.Schema, path+"-key", depth+1)}
	case s.Type == "object":
		return map[string]any{"any": path}
	case s.Type == "array":
		return []any{sample(s.Items.Schema, path, depth)}
	case s.Type == "boolean":
		return true
	case s.Type == "integer", s.Type == "number":
		return 7
	case s.Format == "date-time":
		return "2024-01-01T00:00:00Z"
	case isDuration(path):
		return "10m"
	case strings.HasSuffix(path, "-kind") && strings.Contains(path, "Ref"):
		return "AWSMachineTemplate"
	case strings.HasSuffix(path, "-apiVersion"):
		return fmt.Sprintf("infrastructure.cluster.x-k8s.io/%s", path)
	}
	return path
}

func isDuration(path string) bool {
	name := path[strings.LastIndexByte(path, '-')+1:]
	return strings.Contains(strings.ToLower(name), "timeout") || name == "ttl" || strings.HasSuffix(name, "Period")
}
