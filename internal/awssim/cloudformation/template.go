package cloudformation

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// mostTemplate is the maximum size in bytes of a template in a request.
const mostTemplate = 51200

// template is a parsed template.
type template struct {
	description string
	resources   map[string]*declaration
}

// declaration is one resource of a template.
type declaration struct {
	kind       string
	properties map[string]any
	needs      []string
}

// parseTemplate parses a template in YAML or JSON.
func parseTemplate(body string) (*template, error) {
	switch {
	case body == "":
		return nil, invalid("Either Template URL or Template Body must be specified.")
	case len(body) > mostTemplate:
		return nil, invalid(
			"1 validation error detected: Value '…' at 'templateBody' failed to satisfy constraint: Member must have length less than or equal to %d",
			mostTemplate,
		)
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(body), &root); err != nil || len(root.Content) == 0 {
		return nil, invalid("Template format error: YAML not well-formed.")
	}
	value, err := plain(root.Content[0], "")
	if err != nil {
		return nil, err
	}
	doc, ok := value.(map[string]any)
	if !ok {
		return nil, invalid("Template format error: unsupported structure.")
	}
	if v, ok := doc["AWSTemplateFormatVersion"]; ok && v != "2010-09-09" {
		return nil, invalid("Template format error: %v is not a supported value for AWSTemplateFormatVersion.", v)
	}
	for _, section := range core.SortedKeys(doc) {
		switch section {
		case "AWSTemplateFormatVersion", "Description", "Resources":
		case "Parameters", "Outputs", "Conditions", "Mappings", "Metadata", "Rules", "Transform", "Hooks":
			return nil, core.NotSimulated("the section %s of a template", section)
		default:
			return nil, invalid("Invalid template property or properties [%s]", section)
		}
	}
	t := &template{resources: map[string]*declaration{}}
	t.description, _ = doc["Description"].(string)
	resources, _ := doc["Resources"].(map[string]any)
	if len(resources) == 0 {
		return nil, invalid("Template format error: At least one Resources member must be defined.")
	}
	for _, id := range core.SortedKeys(resources) {
		if t.resources[id], err = declare(id, resources[id]); err != nil {
			return nil, err
		}
	}
	return t, t.check()
}

// plain converts YAML to JSON values: dates stay strings.
func plain(n *yaml.Node, path string) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return nil, invalid("Template error: YAML aliases are not allowed in CloudFormation templates")
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			v, err := plain(n.Content[i+1], path+"/"+key)
			if err != nil {
				return nil, err
			}
			m[key] = v
		}
		return short(n, m), nil
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, err := plain(c, path)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return short(n, list), nil
	case yaml.DocumentNode, yaml.ScalarNode:
	}
	var v any
	switch n.Tag {
	case "!!null":
		return nil, invalid("[%s] 'null' values are not allowed in templates", path)
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&v); err != nil {
			return nil, invalid("Template format error: YAML not well-formed.")
		}
	default:
		v = n.Value
	}
	return short(n, v), nil
}

// short converts the short form of a function: !Ref x is {Ref: x}.
func short(n *yaml.Node, v any) any {
	if strings.HasPrefix(n.Tag, "!!") || !strings.HasPrefix(n.Tag, "!") {
		return v
	}
	name := n.Tag[1:]
	if text, ok := v.(string); ok && name == "GetAtt" {
		of, attribute, _ := strings.Cut(text, ".")
		v = []any{of, attribute}
	}
	if name != "Ref" && name != "Condition" {
		name = "Fn::" + name
	}
	return map[string]any{name: v}
}

func declare(id string, v any) (*declaration, error) {
	m, ok := v.(map[string]any)
	kind, _ := m["Type"].(string)
	if !ok || kind == "" {
		return nil, invalid("Template format error: [/Resources/%s] Every Resources object must contain a Type member.", id)
	}
	d := &declaration{kind: kind, properties: map[string]any{}}
	for _, field := range core.SortedKeys(m) {
		switch field {
		case "Type":
		case "Properties":
			if d.properties, ok = m[field].(map[string]any); !ok {
				return nil, invalid("Template format error: [/Resources/%s/Properties] must be an object", id)
			}
		case "DependsOn":
			d.needs = texts(m[field])
		case "Condition", "CreationPolicy", "DeletionPolicy", "Metadata", "UpdatePolicy", "UpdateReplacePolicy":
			return nil, core.NotSimulated("%s of a resource", field)
		default:
			return nil, invalid("Invalid template resource property '%s'", field)
		}
	}
	if _, known := resourceKinds()[kind]; !known {
		return nil, core.NotSimulated("the resource type %s", kind)
	}
	needs, err := references(d.properties)
	if err != nil {
		return nil, err
	}
	d.needs = slices.Compact(slices.Sorted(slices.Values(append(d.needs, needs...))))
	return d, nil
}

// texts returns a string or a list of strings as a list.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			if text, ok := x.(string); ok {
				list = append(list, text)
			}
		}
	}
	return list
}

// references lists the logical IDs that a value refers to.
func references(v any) (ids []string, err error) {
	_, err = resolve(v, func(id, attribute string) (string, error) {
		if !strings.HasPrefix(id, "AWS::") {
			ids = append(ids, id)
		}
		return id + "." + attribute, nil
	})
	return ids, err
}

// resolve evaluates the functions in a value. An attribute is "" for Ref.
func resolve(v any, lookup func(id, attribute string) (string, error)) (any, error) {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			r, err := resolve(x, lookup)
			if err != nil {
				return nil, err
			}
			list[i] = r
		}
		return list, nil
	case map[string]any:
		if name := function(v); name != "" {
			return carryOut(name, v[name], lookup)
		}
		m := map[string]any{}
		for _, k := range core.SortedKeys(v) {
			r, err := resolve(v[k], lookup)
			if err != nil {
				return nil, err
			}
			m[k] = r
		}
		return m, nil
	}
	return v, nil
}

// function returns the name of the function in an object, or "".
func function(m map[string]any) string {
	for k := range m {
		if len(m) == 1 && (k == "Ref" || strings.HasPrefix(k, "Fn::")) {
			return k
		}
	}
	return ""
}

func carryOut(name string, argument any, lookup func(id, attribute string) (string, error)) (any, error) {
	text, isText := argument.(string)
	switch {
	case name == "Ref" && isText:
		return lookup(text, "")
	case name == "Fn::GetAtt":
		if isText {
			of, attribute, _ := strings.Cut(text, ".")
			return lookup(of, attribute)
		}
		if parts := texts(argument); len(parts) == 2 {
			return lookup(parts[0], parts[1])
		}
	case name == "Fn::Sub" && isText:
		var out strings.Builder
		for {
			before, rest, found := strings.Cut(text, "${")
			out.WriteString(before)
			if !found {
				return out.String(), nil
			}
			inner, after, closed := strings.Cut(rest, "}")
			switch {
			case !closed:
				return nil, invalid("Template error: variable names in Fn::Sub syntax must contain only alphanumeric characters, underscores, periods, and colons")
			case strings.HasPrefix(inner, "!"):
				out.WriteString("${" + inner[1:] + "}")
			default:
				of, attribute, _ := strings.Cut(inner, ".")
				value, err := lookup(of, attribute)
				if err != nil {
					return nil, err
				}
				out.WriteString(value)
			}
			text = after
		}
	}
	return nil, core.NotSimulated("%s in this form", name)
}

// check returns an error for references to unknown resources and for circular references.
func (t *template) check() error {
	var open []string
	for _, id := range core.SortedKeys(t.resources) {
		for _, n := range t.resources[id].needs {
			if t.resources[n] == nil {
				open = append(open, n)
			}
		}
	}
	if len(open) > 0 {
		return invalid("Template format error: Unresolved resource dependencies [%s] in the Resources block of the template", strings.Join(open, ", "))
	}
	done := map[string]bool{}
	for range t.resources {
		for id, d := range t.resources {
			done[id] = done[id] || !slices.ContainsFunc(d.needs, func(n string) bool { return !done[n] })
		}
	}
	for id, ok := range done {
		if !ok {
			return invalid("Circular dependency between resources: [%s]", id)
		}
	}
	return nil
}

// capability returns the capability that the caller has to acknowledge:
// CAPABILITY_NAMED_IAM if an IAM resource has a name, as all simulated types can.
func (t *template) capability() types.Capability {
	need := types.Capability("")
	for _, d := range t.resources {
		if need == "" {
			need = types.CapabilityCapabilityIam
		}
		if d.properties[resourceKinds()[d.kind].name] != nil {
			need = types.CapabilityCapabilityNamedIam
		}
	}
	return need
}

func (t *template) acknowledged(given []types.Capability) error {
	need := t.capability()
	if need == "" || slices.Contains(given, need) || need == types.CapabilityCapabilityIam && slices.Contains(given, types.CapabilityCapabilityNamedIam) {
		return nil
	}
	text := "Requires capabilities : [" + string(need) + "]"
	return &types.InsufficientCapabilitiesException{Message: &text}
}

// canonical returns a value as canonical JSON.
func canonical(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the value came from JSON or YAML
	}
	return strings.TrimSpace(b.String())
}

func uncanonical(text string) (v map[string]any) {
	if text == "" {
		return map[string]any{}
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err) // the text came from canonical
	}
	return v
}
