package convert

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
)

// schema is a part of the schema of a CustomResourceDefinition.
type schema apiextensionsv1.JSONSchemaProps

// schemaOf returns the schema of the newest version of a kind, or nil.
func schemaOf(kind string) *schema { return schemaAt(kind, newest) }

func schemaAt(kind, version string) *schema {
	raw, err := crd.Raw(kind, version)
	if err != nil {
		return nil
	}
	var out schema
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return &out
}

// property returns the schema of a field, or nil.
func (s *schema) property(key string) *schema {
	if p, ok := s.Properties[key]; ok {
		return (*schema)(&p)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return (*schema)(s.AdditionalProperties.Schema)
	}
	return nil
}

// item returns the schema of the items of a list.
func (s *schema) item() *schema { return (*schema)(s.Items.Schema) }

// refusesEmpty reports whether the schema refuses an empty value.
func (s *schema) refusesEmpty(n *node) bool {
	n = n.resolved()
	switch n.kind { //nolint:exhaustive // all others are scalars
	case yaml.MappingNode:
		return len(n.entries) == 0 && (isPositive(s.MinProperties) || len(s.Required) > 0)
	case yaml.SequenceNode:
		return len(n.entries) == 0 && isPositive(s.MinItems)
	default:
		return n.tag == "!!str" && n.value == "" && isPositive(s.MinLength) || n.tag == "!!int" && n.value == "0" && s.Minimum != nil && *s.Minimum > 0
	}
}

func isPositive(limit *int64) bool { return limit != nil && *limit > 0 }
