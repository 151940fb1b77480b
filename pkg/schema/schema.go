// Package schema publishes what a manifest may have: one JSON Schema of all kinds for editors and
// validators, and explanations of single fields. Both come from the CustomResourceDefinitions of Cluster
// API and Cluster API Provider AWS, with notes about what clusterawsadm does with a field.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
)

// URL is where the documentation site has the schema.
const URL = "https://clusterawsadm.github.io/clusterawsadm/schema.json"

// draft is the dialect: the newest one that all editors know.
const draft = "http://json-schema.org/draft-07/schema#"

// clusterGroup matches apiVersion of the objects of Cluster API and its providers.
const clusterGroup = `^([a-z0-9-]+\.)*cluster\.x-k8s\.io/`

// object is a part of a JSON Schema.
type object = map[string]any

// JSON returns the JSON Schema of the documents of a manifest, in draft-07.
//
// It accepts every manifest that "cluster validate" accepts, with ${VARIABLES} of templates in place of any scalar
// value. It does not know what depends on other fields, objects or the account: "cluster validate" and "cluster plan"
// do. Objects of kinds that are not of Cluster API are accepted with any fields.
func JSON() ([]byte, error) {
	p := &publisher{shared: map[string]int{}}
	var all, ignored []string
	var documents []any
	for _, k := range loader.PublishedKinds() {
		all = append(all, k.Name)
		document, err := p.kind(k)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	for name := range loader.IgnoredKinds() {
		ignored = append(ignored, name)
	}
	slices.Sort(ignored)
	known := append(slices.Clone(all), append(ignored, "MachineSet")...)
	slices.Sort(known)
	documents = append(documents, object{
		"if":   object{"properties": object{"apiVersion": object{"type": "string", "pattern": clusterGroup}}, "required": []string{"apiVersion"}},
		"then": object{"properties": object{"kind": object{"enum": known}}},
	})
	root := object{
		"$schema":     draft,
		"$id":         URL,
		"title":       "Manifest of clusterawsadm",
		"description": "Objects of Cluster API and Cluster API Provider AWS, as clusterawsadm reads them",
		"type":        "object",
		"required":    []string{"apiVersion", "kind"},
		"properties": object{
			"apiVersion": object{"type": "string", "description": "The group and version of the kind"},
			"kind": object{
				"description": "The kind of the object",
				"anyOf":       []any{object{"enum": all}, object{"type": "string"}},
			},
		},
		"allOf": documents,
	}
	return p.finished(root)
}

// publisher collects the parts of the schema.
type publisher struct {
	shared map[string]int // how often a part occurs, by its text
}

// kind returns the schema of the documents of one kind.
func (p *publisher) kind(k loader.PublishedKind) (object, error) {
	var versions []string
	var branches []any
	for _, version := range k.Versions {
		s, err := loader.PublishedSchema(k.Name, version)
		if err != nil {
			return nil, err
		}
		apiVersion := k.APIVersion(version)
		versions = append(versions, apiVersion)
		c := &converter{kind: k.Name, notes: notesOf(k.Name)}
		out := c.schema(s, "")
		fields, _ := out["properties"].(object)
		fields["apiVersion"], fields["kind"] = true, true
		fields["metadata"] = metadata(k.Name)
		fields["status"] = true
		out["required"] = sorted(append(s.Required, "metadata"))
		branches = append(branches, object{
			"if":   object{"properties": object{"apiVersion": object{"const": apiVersion}}, "required": []string{"apiVersion"}},
			"then": out,
		})
	}
	is := object{"kind": object{"const": k.Name}}
	if k.Group != "" { // other groups may have a kind of that name
		is["apiVersion"] = object{"type": "string", "pattern": "^" + strings.ReplaceAll(k.Group, ".", `\.`) + "/"}
	} else {
		is["apiVersion"] = object{"type": "string", "pattern": "^[^/]*$"}
	}
	version := object{"properties": object{"apiVersion": object{"enum": versions}}}
	return object{
		"if":   object{"properties": is, "required": []string{"apiVersion", "kind"}},
		"then": object{"allOf": append([]any{version}, branches...)},
	}, nil
}

// metadata is the schema of the metadata of a kind.
func metadata(kind string) object {
	texts := func(description string) object {
		return object{"type": []string{"object", "null"}, "description": description, "additionalProperties": object{"type": []string{"string", "null"}}}
	}
	annotations := texts("Annotations. Those that begin with clusterawsadm/ are settings that Cluster API Provider AWS has no field for.")
	own, names := object{}, []string{}
	for _, a := range loader.FieldAnnotations(kind) {
		names = append(names, a.Name)
		own[a.Name] = described(object{"type": "string"}, a.Text)
		if a.Values != nil {
			own[a.Name] = described(object{"anyOf": []any{object{"enum": a.Values}, variable()}}, a.Text)
		}
	}
	if len(own) > 0 {
		annotations["properties"] = own
	}
	foreign := object{"not": object{"pattern": "^clusterawsadm/"}}
	annotations["propertyNames"] = foreign
	if len(names) > 0 {
		annotations["propertyNames"] = object{"anyOf": []any{foreign, object{"enum": names}}}
	}
	fields := object{
		"name":        object{"type": "string", "description": "The name of the object"},
		"namespace":   object{"type": "string", "description": "The namespace in a management cluster; the objects of a cluster have the same"},
		"labels":      texts("Labels"),
		"annotations": annotations,
	}
	for _, name := range []string{
		"generateName", "finalizers", "ownerReferences", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "selfLink", "managedFields",
	} {
		fields[name] = true
	}
	return object{"type": "object", "properties": fields, "additionalProperties": false}
}

// variable is the schema of a scalar with a ${VARIABLE} of a template.
func variable() object { return object{"type": "string", "pattern": `\$\{`} }

func described(s object, text string) object {
	if text != "" {
		s["description"] = text
	}
	return s
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// notesOf returns the notes about the fields of a kind, by path.
func notesOf(kind string) map[string]loader.FieldNote {
	out := map[string]loader.FieldNote{}
	for _, n := range loader.FieldNotes(kind) {
		if have, ok := out[n.Path]; ok && have.Refused {
			continue
		}
		out[n.Path] = n
	}
	return out
}

// converter converts the schema of one version of a kind.
type converter struct {
	kind  string
	notes map[string]loader.FieldNote
}

// schema converts a structural schema of OpenAPI v3 to JSON Schema.
func (c *converter) schema(s *apiextensionsv1.JSONSchemaProps, path string) object {
	out := c.values(s)
	c.structure(out, s, path)
	described(out, s.Description)
	if s.Default != nil {
		out["default"] = json.RawMessage(s.Default.Raw)
	}
	if n, ok := c.notes[path]; ok {
		c.note(out, n)
	}
	return out
}

// values returns the type of a value and its limits. A scalar may be a variable instead.
func (c *converter) values(s *apiextensionsv1.JSONSchemaProps) object {
	out := object{}
	limit := func(key string, value *int64) {
		if value != nil {
			out[key] = *value
		}
	}
	limit("minLength", s.MinLength)
	limit("maxLength", s.MaxLength)
	limit("minItems", s.MinItems)
	limit("maxItems", s.MaxItems)
	limit("minProperties", s.MinProperties)
	limit("maxProperties", s.MaxProperties)
	if s.Minimum != nil {
		out[choose(s.ExclusiveMinimum, "exclusiveMinimum", "minimum")] = *s.Minimum
	}
	if s.Maximum != nil {
		out[choose(s.ExclusiveMaximum, "exclusiveMaximum", "maximum")] = *s.Maximum
	}
	if s.Pattern != "" {
		out["pattern"] = s.Pattern
	}
	if len(s.Enum) > 0 {
		var enum []any
		for _, v := range s.Enum {
			enum = append(enum, json.RawMessage(v.Raw))
		}
		out["enum"] = enum
	}
	switch {
	case s.XIntOrString:
		return object{"type": []string{"integer", "string"}}
	case s.Type == "string" && len(out) == 0:
		return object{"type": "string"}
	case s.Type == "integer", s.Type == "number", s.Type == "boolean", s.Type == "string":
		out["type"] = s.Type
		return object{"anyOf": []any{out, variable()}}
	case s.Type != "":
		out["type"] = s.Type
	}
	return out
}

func choose(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// structure adds what is below a value.
func (c *converter) structure(out object, s *apiextensionsv1.JSONSchemaProps, path string) {
	keeps := s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	if len(s.Properties) > 0 {
		fields := object{}
		for name, p := range s.Properties {
			fields[name] = c.field(&p, strings.TrimPrefix(path+"."+name, "."))
		}
		out["properties"] = fields
		if !keeps {
			out["additionalProperties"] = false
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out["additionalProperties"] = c.field(s.AdditionalProperties.Schema, path+"{}")
	}
	if s.Items != nil && s.Items.Schema != nil {
		out["items"] = c.schema(s.Items.Schema, path+"[]")
	}
	// An API server looks for required fields after it has set the defaults.
	required := slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return s.Properties[name].Default != nil })
	if len(required) > 0 {
		out["required"] = sorted(required)
	}
	for key, group := range map[string][]apiextensionsv1.JSONSchemaProps{"allOf": s.AllOf, "oneOf": s.OneOf} {
		if len(group) > 0 {
			out[key] = group
		}
	}
}

// field converts the schema of a field. A key without a value is one that is not set: an API server drops nulls.
func (c *converter) field(s *apiextensionsv1.JSONSchemaProps, path string) object {
	out := c.schema(s, path)
	null := object{"type": "null"}
	if kind, ok := out["type"].(string); ok {
		out["type"] = []string{kind, "null"}
	} else if kinds, ok := out["type"].([]string); ok {
		out["type"] = append(kinds, "null")
	} else if choices, ok := out["anyOf"].([]any); ok {
		out["anyOf"] = append(choices, null)
	}
	return out
}

// note adds what clusterawsadm does with a field. editors show a deprecationMessage as a warning, and an errorMessage as the error.
func (c *converter) note(out object, n loader.FieldNote) {
	text := sentence(n)
	if about, _ := out["description"].(string); about != "" {
		text = about + "\n\n" + text
	}
	out["description"] = text
	switch {
	case n.Refused && n.Value != "":
		out["not"] = object{"const": n.Value}
		out["errorMessage"] = sentence(n)
	case n.Refused:
		out["not"] = object{}
		out["errorMessage"] = sentence(n)
	case n.Ignored && n.Value == "":
		out["deprecationMessage"] = sentence(n)
		out["doNotSuggest"] = true
	}
}

// sentence says what clusterawsadm does with a field.
func sentence(n loader.FieldNote) string {
	what := "clusterawsadm"
	if n.Value != "" {
		what += " with the value " + n.Value
	}
	switch {
	case n.Refused:
		what += ": refused, not supported"
	case n.Ignored:
		what += ": ignored"
	}
	if n.Text != "" {
		what += ": " + n.Text
	}
	return strings.TrimSuffix(what, ".") + "."
}

// finished writes the schema. Parts that occur more than once are written once, below definitions.
func (p *publisher) finished(root object) ([]byte, error) {
	text, err := encode(root)
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	p.count(tree)
	names, definitions := p.names(), object{}
	top, _ := tree.(object)
	for key, below := range top {
		top[key] = p.replaced(below, names, definitions)
	}
	top["definitions"] = definitions
	return encode(top)
}

// smallest is the length of the text of a part that is worth a definition.
const smallest = 400

// count counts the parts.
func (p *publisher) count(v any) {
	switch v := v.(type) {
	case object:
		if text, err := encode(v); err == nil && len(text) >= smallest && isSchema(v) {
			if p.shared[string(text)]++; p.shared[string(text)] > 1 {
				return // what is below is counted already
			}
		}
		for _, below := range v {
			p.count(below)
		}
	case []any:
		for _, below := range v {
			p.count(below)
		}
	}
}

// isSchema reports whether a part is a schema of a value, and not a list of fields.
func isSchema(v object) bool {
	_, typed := v["type"].(string)
	_, several := v["type"].([]any)
	return typed || several
}

// names numbers the parts that occur more than once.
func (p *publisher) names() map[string]string {
	var texts []string
	for text, n := range p.shared {
		if n > 1 {
			texts = append(texts, text)
		}
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	names := map[string]string{}
	for i, text := range texts {
		names[text] = fmt.Sprintf("part%d", i+1)
	}
	return names
}

// replaced returns a value with references to definitions.
func (p *publisher) replaced(v any, names map[string]string, definitions object) any {
	switch v := v.(type) {
	case object:
		text, err := encode(v)
		name, shared := names[string(text)]
		if err == nil && shared {
			if _, made := definitions[name]; !made {
				definitions[name] = true // its parts are smaller
				definitions[name] = p.below(v, names, definitions)
			}
			return object{"$ref": "#/definitions/" + name}
		}
		return p.below(v, names, definitions)
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, p.replaced(item, names, definitions))
		}
		return out
	}
	return v
}

func (p *publisher) below(v object, names map[string]string, definitions object) object {
	out := object{}
	for key, value := range v {
		out[key] = p.replaced(value, names, definitions)
	}
	return out
}

// encode writes JSON with sorted keys, and < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
