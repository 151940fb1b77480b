package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// ErrNotFound is the error for a kind, version or field that does not exist. The text says what does.
var ErrNotFound = errors.New("not found")

type notFoundError struct{ text string }

func (e notFoundError) Error() string        { return e.text }
func (e notFoundError) Is(target error) bool { return target == ErrNotFound }

// Field is a field of a kind, or the kind itself.
type Field struct {
	Name string `json:"name"`
	// Type is a type as kubectl explain writes it: string, integer, boolean, Object, []Object, map[string]string.
	Type        string   `json:"type"`
	Required    bool     `json:"required,omitempty"`
	Description string   `json:"description,omitempty"`
	Default     string   `json:"default,omitempty"` // JSON
	Values      []string `json:"values,omitempty"`  // all that it may have
	Limits      []string `json:"limits,omitempty"`  // such as "at least 1"
	Rules       []string `json:"rules,omitempty"`   // what an API server refuses beyond that
	// Notes say what clusterawsadm does with the field, if it is not what the description says, and what a change does.
	Notes []string `json:"clusterawsadm,omitempty"`
	// Inherited is true if the notes are about a field that contains this one.
	Inherited bool    `json:"-"`
	Fields    []Field `json:"fields,omitempty"`
}

// Explanation is a field with where it is.
type Explanation struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Path       string `json:"path,omitempty"` // "" of the kind itself
	Field
}

// Kind is a kind that a manifest may have.
type Kind struct {
	Name        string   `json:"name"`
	APIVersions []string `json:"apiVersions"` // the newest one first
}

// Kinds returns all kinds that a manifest may have, by name.
func Kinds() (all []Kind) {
	for _, k := range loader.PublishedKinds() {
		out := Kind{Name: k.Name}
		for _, v := range k.Versions {
			out.APIVersions = append(out.APIVersions, k.APIVersion(v))
		}
		all = append(all, out)
	}
	return all
}

// Explain explains a field by its kind and path, such as AWSMachineTemplate.spec.template.spec.rootVolume. The kind may
// be in lower case, or plural. Indexes of lists, as in subnets[0], may be left out. The version is one of the API,
// such as v1beta1, also with its group; "" is the newest one. With recursive, the fields of fields are included.
// If there is no such kind, version or field, the error is [ErrNotFound].
func Explain(path, version string, recursive bool) (*Explanation, error) {
	name, rest, _ := strings.Cut(path, ".")
	kind, err := kindNamed(name)
	if err != nil {
		return nil, err
	}
	if version, err = versionOf(kind, version); err != nil {
		return nil, err
	}
	s, err := loader.PublishedSchema(kind.Name, version)
	if err != nil {
		return nil, err
	}
	s.Properties["metadata"] = metadataSchema(kind.Name)
	delete(s.Properties, "status")
	x := &explainer{notes: notesOf(kind.Name)}
	e := &Explanation{Kind: kind.Name, APIVersion: kind.APIVersion(version)}
	at, required, steps := s, false, stepsOf(rest)
	for i, step := range steps {
		next, below, ok := child(at, e.Path, step)
		if !ok {
			return nil, missing(kind, version, steps[:i+1], at)
		}
		required = slices.Contains(inner(at).Required, step)
		at, e.Path = next, below
	}
	depth := 1
	if recursive {
		depth = deepest
	}
	e.Field = x.field(lastOf(e.Path, kind.Name), at, e.Path, required, depth)
	return e, nil
}

// deepest is the depth to which fields of fields are listed.
const deepest = 30

// kindNamed returns a kind by its name, in lower case, or in the plural.
func kindNamed(name string) (loader.PublishedKind, error) {
	all := loader.PublishedKinds()
	var names []string
	for _, k := range all {
		low := strings.ToLower(k.Name)
		plural := strings.TrimSuffix(low, "y") + "ies"
		if slices.Contains([]string{low, low + "s", low + "es", plural}, strings.ToLower(name)) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	if reason, ok := loader.IgnoredKinds()[name]; ok {
		return loader.PublishedKind{}, notFoundError{fmt.Sprintf("objects of the kind %s are ignored: %s", name, reason)}
	}
	hint := "without an argument, the command lists the kinds"
	switch before, _, separated := strings.Cut(strings.ReplaceAll(name, "/", " "), " "); {
	case name == "":
		return loader.PublishedKind{}, notFoundError{"the kind is missing: " + hint}
	case separated && before != "":
		return loader.PublishedKind{}, notFoundError{
			fmt.Sprintf("there is no kind %q: write dots between the kind and its fields, as in AWSCluster.spec.network", name),
		}
	}
	hint = cmp.Or(suggest.DidYouMean(name, names), hint)
	return loader.PublishedKind{}, notFoundError{fmt.Sprintf("there is no kind %s: %s", name, hint)}
}

// versionOf returns the version that is asked for.
func versionOf(k loader.PublishedKind, asked string) (string, error) {
	if asked == "" {
		return k.Versions[0], nil
	}
	for _, v := range k.Versions {
		if asked == v || asked == k.APIVersion(v) {
			return v, nil
		}
	}
	return "", notFoundError{fmt.Sprintf("%s has no version %s: it has %s", k.Name, asked, strings.Join(k.Versions, " and "))}
}

// stepsOf splits a path. The dots of an annotation or label are part of its name.
func stepsOf(path string) (steps []string) {
	path = regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(path, "")
	for _, of := range []string{"metadata.annotations.", "metadata.labels."} {
		if name, ok := strings.CutPrefix(path, of); ok {
			return append(strings.Split(strings.TrimSuffix(of, "."), "."), name)
		}
	}
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

// inner returns the schema of the items of a list, and any other schema as it is.
func inner(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	for s.Items != nil && s.Items.Schema != nil {
		s = s.Items.Schema
	}
	return s
}

// child returns the field of that name, or the items of a list by an index, and its path.
func child(s *apiextensionsv1.JSONSchemaProps, path, name string) (*apiextensionsv1.JSONSchemaProps, string, bool) {
	if _, err := strconv.Atoi(name); err == nil && s.Items != nil && s.Items.Schema != nil {
		return s.Items.Schema, path + "[]", true
	}
	for s.Items != nil && s.Items.Schema != nil {
		s, path = s.Items.Schema, path+"[]"
	}
	if p, ok := s.Properties[name]; ok {
		return &p, strings.TrimPrefix(path+"."+name, "."), true
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema, path + "{}", true
	}
	return nil, "", false
}

// missing is the error for a field that does not exist. Another version may have it.
func missing(kind loader.PublishedKind, version string, steps []string, in *apiextensionsv1.JSONSchemaProps) error {
	name, path := steps[len(steps)-1], strings.Join(steps, ".")
	known := slices.Sorted(maps.Keys(inner(in).Properties))
	what := fmt.Sprintf("%s %s has no field %s", kind.Name, version, path)
	for _, other := range kind.Versions {
		if other == version {
			continue
		}
		if _, err := find(kind.Name, other, steps); err == nil {
			return notFoundError{fmt.Sprintf("%s: %s has it: use --api-version %s", what, other, other)}
		}
	}
	switch near := suggest.DidYouMean(name, known); {
	case near != "":
		return notFoundError{what + ": " + near}
	case len(known) == 0:
		return notFoundError{what + ": there are no fields below " + cmp.Or(strings.Join(steps[:len(steps)-1], "."), kind.Name)}
	default:
		return notFoundError{what + ": it has " + strings.Join(known, ", ")}
	}
}

func find(kind, version string, steps []string) (*apiextensionsv1.JSONSchemaProps, error) {
	s, err := loader.PublishedSchema(kind, version)
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		next, _, ok := child(s, "", step)
		if !ok {
			return nil, ErrNotFound
		}
		s = next
	}
	return s, nil
}

// metadataSchema is the schema of the metadata of a kind.
func metadataSchema(kind string) apiextensionsv1.JSONSchemaProps {
	texts := func(description string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: description,
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		}
	}
	annotations := texts("Annotations. Those that begin with clusterawsadm/ are settings that Cluster API Provider AWS has no field for.")
	for _, a := range loader.FieldAnnotations(kind) {
		if annotations.Properties == nil {
			annotations.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		p := apiextensionsv1.JSONSchemaProps{Type: "string", Description: a.Text}
		for _, v := range a.Values {
			p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + v + `"`)})
		}
		annotations.Properties[a.Name] = p
	}
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: "Name, namespace, labels and annotations, as of every object.",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name":      {Type: "string", Description: "The name of the object."},
			"namespace": {Type: "string", Description: "The namespace in a management cluster. The objects of a cluster have the same."},
			"labels":    texts("Labels."), "annotations": annotations,
		},
		Required: []string{"name"},
	}
}

// explainer describes the fields of one kind.
type explainer struct{ notes map[string]loader.FieldNote }

// field describes a field and, down to the given depth, the fields below it.
func (x *explainer) field(name string, s *apiextensionsv1.JSONSchemaProps, path string, required bool, depth int) Field {
	f := Field{Name: name, Type: typeOf(s), Required: required, Description: s.Description, Limits: limitsOf(s)}
	f.Notes, f.Inherited = x.notesAt(path)
	if s.Default != nil {
		f.Default = string(s.Default.Raw)
	}
	for _, v := range s.Enum {
		var text string
		if json.Unmarshal(v.Raw, &text) != nil {
			text = string(v.Raw)
		}
		f.Values = append(f.Values, text)
	}
	for _, r := range s.XValidations {
		f.Rules = append(f.Rules, cmp.Or(r.Message, r.Rule))
	}
	if depth == 0 {
		return f
	}
	in := inner(s)
	for s.Items != nil && s.Items.Schema != nil {
		s, path = s.Items.Schema, path+"[]"
	}
	for _, below := range slices.Sorted(maps.Keys(in.Properties)) {
		p := in.Properties[below]
		f.Fields = append(f.Fields, x.field(below, &p, strings.TrimPrefix(path+"."+below, "."), slices.Contains(in.Required, below), depth-1))
	}
	if values := in.AdditionalProperties; values != nil && values.Schema != nil && len(in.Properties) == 0 && len(inner(values.Schema).Properties) > 0 {
		f.Fields = append(f.Fields, x.field("KEY", values.Schema, path+"{}", false, depth-1))
	}
	return f
}

// notesAt returns the notes about a field: its own, or if it has none what a change of the nearest field above it does.
func (x *explainer) notesAt(path string) (texts []string, inherited bool) {
	if n, ok := x.notes[path]; ok {
		return []string{strings.TrimPrefix(strings.TrimPrefix(sentence(n), "clusterawsadm: "), "clusterawsadm ")}, false
	}
	for at := path; ; {
		cut := strings.LastIndexAny(at, ".[{")
		if cut < 0 {
			return nil, false
		}
		at = at[:cut]
		if n, ok := x.notes[at]; ok && (n.Effect != "" || n.Value == "") {
			return []string{at + ": " + strings.TrimPrefix(sentence(n), "clusterawsadm: ")}, true
		}
	}
}

// typeOf writes a type as kubectl explain does.
func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "IntOrString"
	case s.Items != nil && s.Items.Schema != nil:
		return "[]" + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map[string]" + typeOf(s.AdditionalProperties.Schema)
	case s.Type == "object":
		return "Object"
	}
	return cmp.Or(s.Type, "any")
}

// limitsOf lists the limits of a value.
func limitsOf(s *apiextensionsv1.JSONSchemaProps) (limits []string) {
	add := func(most string, value *int64, noun string) {
		if value != nil && (*value > 0 || most == "at most ") {
			limits = append(limits, most+text.Count(int(*value), noun))
		}
	}
	if s.Minimum != nil {
		limits = append(limits, fmt.Sprintf(choose(s.ExclusiveMinimum, "more than %v", "at least %v"), *s.Minimum))
	}
	if s.Maximum != nil {
		limits = append(limits, fmt.Sprintf(choose(s.ExclusiveMaximum, "less than %v", "at most %v"), *s.Maximum))
	}
	add("at least ", s.MinLength, "character")
	add("at most ", s.MaxLength, "character")
	add("at least ", s.MinItems, "item")
	add("at most ", s.MaxItems, "item")
	add("at least ", s.MinProperties, "field")
	if s.Pattern != "" {
		limits = append(limits, "matches "+s.Pattern)
	}
	return limits
}

func lastOf(path, otherwise string) string {
	name := strings.NewReplacer("[]", "", "{}", "").Replace(path)
	return cmp.Or(name[strings.LastIndexByte(name, '.')+1:], otherwise)
}
