package loader

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
)

// chartSchema is the schema of a HelmChartProxy, from its type.
func chartSchema() *apiextensionsv1.JSONSchemaProps {
	s := schemaOfType(reflect.TypeFor[manifest.HelmChartProxy]())
	s.Properties["apiVersion"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	s.Properties["kind"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	s.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	texts := map[string]string{ //nolint:gosec // descriptions
		"":                       "A Helm chart that create installs with your helm, as the Helm add-on provider of Cluster API describes it.",
		"spec.clusterSelector":   "Which clusters get the chart, by their labels.",
		"spec.chartName":         "The chart: its name in the repository, or a folder or an archive.",
		"spec.repoURL":           "The repository, https://… or oci://….",
		"spec.releaseName":       "The name of the release; the name of the object by default.",
		"spec.namespace":         "The namespace of the release; default by default.",
		"spec.version":           "The version of the chart; the newest one by default, which then stays.",
		"spec.valuesTemplate":    "The values, as YAML; they may be a Go template of the Cluster.",
		"spec.reconcileStrategy": "Continuous by default; with InstallOnce, the chart is not upgraded.",
		"spec.options":           "Flags of helm.",
		"spec.credentials":       "Ignored: helm uses its own logins.",
		"spec.tlsConfig":         "How the certificate of the repository is checked.",
	}
	crd.Describe(&s, "", func(path string) string { return texts[path] })
	spec := s.Properties["spec"]
	strategy := spec.Properties["reconcileStrategy"]
	strategy.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"` + manifest.StrategyContinuous + `"`)}, {Raw: []byte(`"` + manifest.StrategyInstallOnce + `"`)}}
	spec.Properties["reconcileStrategy"] = strategy
	spec.Required = []string{"chartName", "repoURL"}
	s.Properties["spec"] = spec
	return &s
}

// schemaOfType returns the schema of a Go type with JSON tags.
func schemaOfType(t reflect.Type) apiextensionsv1.JSONSchemaProps {
	switch keep := true; {
	case t.Kind() == reflect.Pointer:
		return schemaOfType(t.Elem())
	case t == reflect.TypeFor[metav1.Duration](), t.Kind() == reflect.String:
		return apiextensionsv1.JSONSchemaProps{Type: "string"}
	case t.Kind() == reflect.Bool:
		return apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case t.Kind() == reflect.Int:
		return apiextensionsv1.JSONSchemaProps{Type: "integer"}
	case t.Kind() == reflect.Slice:
		item := schemaOfType(t.Elem())
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.String:
		value := schemaOfType(t.Elem())
		return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}}
	case t.Kind() != reflect.Struct:
		return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	}
	s := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "metadata" {
			s.Properties[name] = schemaOfType(f.Type)
		}
	}
	return s
}
