package kubesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// The rules of CustomResourceDefinitions, and those that they make for their objects ("Extend the Kubernetes API with
// CustomResourceDefinitions", Kubernetes; k8s.io/apiextensions-apiserver). Not simulated: costs of CEL rules, and of these only fields of self.

// versionOfDefinition is the rule of one version of a definition.
func versionOfDefinition(at string, version Object) string {
	columns, _ := version["additionalPrinterColumns"].([]any)
	for i, x := range columns {
		column, _ := x.(Object)
		where := fmt.Sprintf("%s.additionalPrinterColumns[%d]", at, i)
		if !slices.Contains([]string{"integer", "number", "string", "boolean", "date"}, text(column, "type")) {
			return where + ".type: Invalid value: must be one of boolean,date,integer,number,string"
		}
		if path := text(column, "jsonPath"); !strings.HasPrefix(path, ".") || strings.Count(path, "{") != strings.Count(path, "}") {
			return where + ".jsonPath: Invalid value: is an invalid path"
		}
	}
	if scale, _ := value(version, "subresources", "scale").(Object); scale != nil {
		if !strings.HasPrefix(text(scale, "specReplicasPath"), ".spec.") {
			return at + ".subresources.scale.specReplicasPath: Invalid value: should be a json path under .spec"
		}
		if !strings.HasPrefix(text(scale, "statusReplicasPath"), ".status.") {
			return at + ".subresources.scale.statusReplicasPath: Invalid value: should be a json path under .status"
		}
	}
	schema, _ := value(version, "schema", "openAPIV3Schema").(Object)
	return brokenSchema(at+".schema.openAPIV3Schema", schema)
}

// brokenSchema says what is wrong with a schema or with a schema nested in it; "" for nothing.
func brokenSchema(at string, s Object) string {
	if why := brokenLevel(at, s); why != "" {
		return why
	}
	properties, _ := s["properties"].(Object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner, _ := properties[name].(Object)
		if why := brokenSchema(at+".properties."+name, inner); why != "" {
			return why
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, is := s[name].(Object); is {
			if why := brokenSchema(at+"."+name, inner); why != "" {
				return why
			}
		}
	}
	return ""
}

// brokenLevel says what is wrong with a schema itself, ignoring the schemas nested in it; "" for nothing.
func brokenLevel(at string, s Object) string {
	properties, _ := s["properties"].(Object)
	anything := s["x-kubernetes-int-or-string"] == true || s["x-kubernetes-preserve-unknown-fields"] == true
	_, isMap := s["additionalProperties"].(Object)
	switch {
	case s["$ref"] != nil:
		return at + ".$ref: Forbidden: $ref is not supported"
	case text(s, "type") == "" && !anything:
		return at + ".type: Required value: must not be empty for specified object fields"
	case isMap && len(properties) > 0:
		return at + ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"
	case text(s, "x-kubernetes-list-type") == "map" && s["x-kubernetes-list-map-keys"] == nil:
		return at + ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
	case s["default"] != nil && against("", s["default"], s) != "":
		return at + ".default: Invalid value" + against("", s["default"], s)
	}
	return brokenRule(at, s)
}

// brokenRule says which CEL rule of a schema reads a field that the schema does not have; "" for none.
func brokenRule(at string, s Object) string {
	properties, _ := s["properties"].(Object)
	rules, _ := s["x-kubernetes-validations"].([]any)
	for i, x := range rules {
		rule, _ := x.(Object)
		for _, m := range regex.Of(`\bself\.([A-Za-z_]\w*)( *\()?`).FindAllStringSubmatch(text(rule, "rule"), -1) {
			if m[2] == "" && properties[m[1]] == nil {
				return fmt.Sprintf("%s.x-kubernetes-validations[%d].rule: Invalid value: compilation failed: undefined field '%s'", at, i, m[1])
			}
		}
	}
	return ""
}

// ofDefinition says why an object does not follow the schema of the definition of its kind; "" if it does, or if the kind has no definition.
func (c *Cluster) ofDefinition(at place, o Object) string {
	group, version, _ := strings.Cut(at.resource.gv, "/")
	definition := c.Objects["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+at.resource.Name+"."+group]
	versions, _ := value(definition, "spec", "versions").([]any)
	for _, x := range versions {
		v, _ := x.(Object)
		s, _ := value(v, "schema", "openAPIV3Schema").(Object)
		if text(v, "name") != version || s == nil {
			continue
		}
		rest := maps.Clone(o)
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(rest, name)
		}
		return strings.TrimPrefix(against("", rest, s), ".")
	}
	return ""
}

// typeOf returns the type of a JSON value; "" for null.
func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64, int64, int:
		return "number"
	case Object:
		return "object"
	case []any:
		return "array"
	}
	return ""
}

// against says why a value does not follow a schema; "" if it does.
func against(at string, v any, s Object) string {
	is := typeOf(v)
	if is == "" {
		return ""
	}
	want := text(s, "type")
	if want != "" && want != is && (want != "integer" || is != "number") {
		return fmt.Sprintf("%s: Invalid value: %q: must be of type %s", at, is, want)
	}
	if permitted, _ := s["enum"].([]any); permitted != nil && !slices.Contains(permitted, v) {
		return fmt.Sprintf("%s: Unsupported value: %v", at, v)
	}
	switch v := v.(type) {
	case []any:
		item, _ := s["items"].(Object)
		for i, x := range v {
			if why := against(fmt.Sprintf("%s[%d]", at, i), x, item); why != "" {
				return why
			}
		}
	case Object:
		return fieldsAgainst(at, v, s)
	}
	return ""
}

func fieldsAgainst(at string, v, s Object) string {
	properties, _ := s["properties"].(Object)
	each, isMap := s["additionalProperties"].(Object)
	needed, _ := s["required"].([]any)
	for _, x := range needed {
		name, _ := x.(string)
		if inner, _ := properties[name].(Object); v[name] == nil && inner["default"] == nil {
			return fmt.Sprintf("%s.%s: Required value", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		inner, known := properties[name].(Object)
		switch {
		case known:
		case isMap:
			inner = each
		case s["x-kubernetes-preserve-unknown-fields"] == true || s["additionalProperties"] == true || v[name] == nil || at == "":
			continue
		default:
			return fmt.Sprintf("%s.%s: field not declared in schema", at, name)
		}
		if why := against(at+"."+name, v[name], inner); why != "" {
			return why
		}
	}
	return ""
}
