package oracle

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
)

// An object of v1alpha3 or v1alpha4 with any fields, converted as text, is what old releases make of it
// in v1beta1, and the current one in v1beta2.
func TestConvertOlderAsUpstream(t *testing.T) {
	old := startOlder(t)
	for key, definition := range olderSchemas(t) {
		group, kind, _ := strings.Cut(key, "/")
		toNewest := conversions()[key]
		if toNewest == nil {
			continue
		}
		older, newest := schemas(t, kind)
		for _, version := range definition.Spec.Versions {
			if !strings.HasPrefix(version.Name, "v1alpha") || version.Schema == nil {
				continue
			}
			t.Run(version.Name+"/"+kind, func(t *testing.T) {
				props := version.Schema.OpenAPIV3Schema
				delete(props.Properties, "status")
				if kind == "KubeadmControlPlaneTemplate" { // has had no metadata in early releases of v1beta1, and has them again
					spec := props.Properties["spec"].Properties["template"].Properties["spec"]
					delete(spec.Properties["machineTemplate"].Properties, "metadata")
				}
				compiled, err := crd.Compile(props)
				require.NoError(t, err)
				rapid.Check(t, func(r *rapid.T) {
					object, _ := someOf(r, props, kind).(map[string]any)
					object["apiVersion"], object["kind"], object["metadata"] = group+"/"+version.Name, kind, map[string]any{"name": "a"}
					text, err := yaml.Marshal(object)
					require.NoError(r, err)

					stored := asMap(r, object)
					compiled.Default(stored)
					middle := old.convert(r, stored)
					older.compiled.Prune(middle, true)
					older.compiled.Default(middle)
					raw, err := json.Marshal(middle)
					require.NoError(r, err)
					want, err := toNewest(raw)
					require.NoError(r, err)

					result, err := convert.File("in.yaml", text)
					require.NoError(r, err, string(text))
					typed := map[string]any{}
					require.NoError(r, yaml.Unmarshal(result.Text, &typed))
					require.Empty(r, newest.compiled.Prune(typed, true), string(result.Text))
					require.Empty(r, cmp.Diff(settled(r, newest, want), settled(r, newest, typed)), "%s\n---\n%s", text, result.Text)
				})
			})
		}
	}
}

// olderSchemas returns the definitions of the kinds of old releases, by "group/kind".
func olderSchemas(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, module := range []string{"sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api-provider-aws"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
		list.Dir = "older"
		dir, err := list.Output()
		require.NoError(t, err)
		require.NoError(t, filepath.WalkDir(strings.TrimSpace(string(dir)), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.Contains(path, "/crd/bases/") || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var d apiextensionsv1.CustomResourceDefinition
			if err := yaml.Unmarshal(data, &d); err != nil {
				return err
			}
			found[d.Spec.Group+"/"+d.Spec.Names.Kind] = d
			return nil
		}))
	}
	require.Greater(t, len(found), 20)
	return found
}

// olderProgram converts objects to v1beta1.
type olderProgram struct{ *answerer }

func startOlder(t *testing.T) olderProgram {
	t.Helper()
	program := filepath.Join(t.TempDir(), "older")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "older"
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return olderProgram{startAnswerer(t, program)}
}

func (p olderProgram) convert(t require.TestingT, object map[string]any) map[string]any {
	result := map[string]any{}
	p.ask(t, object, &result)
	require.NotContains(t, result, "error")
	return result
}
