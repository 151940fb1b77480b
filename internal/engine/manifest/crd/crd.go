// Package crd validates values with OpenAPI schemas as an API server validates custom
// resources: structural pruning and defaulting, OpenAPI, CEL.
package crd

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Schema is a compiled schema of one version of a kind.
type Schema struct {
	structural *structuralschema.Structural
	openapi    validation.SchemaValidator
	rules      func() *cel.Validator // nil if the schema has no CEL rules
}

// Parse compiles the JSON of an OpenAPI v3 schema.
func Parse(raw []byte) (*Schema, error) {
	var published apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(raw, &published); err != nil {
		return nil, err
	}
	return Compile(&published)
}

// Compile compiles an OpenAPI v3 schema. It fails if the schema has parts that no structural schema has, such as $ref;
// CheckSchema finds what else is wrong.
func Compile(published *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	openapi, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	return &Schema{
		structural: structural,
		openapi:    openapi,
		rules: sync.OnceValue(func() *cel.Validator {
			return cel.NewValidator(structural, true, celconfig.PerCallLimit)
		}),
	}, nil
}

// CheckSchema returns the errors in the schema itself: if it is not structural, or if its
// defaults are invalid.
func (s *Schema) CheckSchema(ctx context.Context) field.ErrorList {
	errs := structuralschema.ValidateStructural(nil, s.structural)
	if len(errs) > 0 {
		return errs
	}
	errs, err := defaulting.ValidateDefaults(ctx, nil, s.structural, false, false)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("default"), "", err.Error())}
	}
	return errs
}

// CheckRules returns the errors of the CEL rules in the schema.
func (s *Schema) CheckRules() field.ErrorList {
	return checkRules(nil, s.structural, model.SchemaDeclType(s.structural, true))
}

func checkRules(at *field.Path, s *structuralschema.Structural, d *apiservercel.DeclType) (errs field.ErrorList) {
	if d == nil {
		return nil
	}
	if len(s.XValidations) > 0 {
		errs = compileRules(at.Child("x-kubernetes-validations"), s, d)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		escaped, _ := apiservercel.Escape(name)
		if f := d.Fields[escaped]; f != nil {
			below := s.Properties[name]
			errs = append(errs, checkRules(at.Child("properties").Key(name), &below, f.Type)...)
		}
	}
	if s.Items != nil {
		errs = append(errs, checkRules(at.Child("items"), s.Items, d.ElemType)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		errs = append(errs, checkRules(at.Child("additionalProperties"), s.AdditionalProperties.Structural, d.ElemType)...)
	}
	return errs
}

// compileRules returns the errors of the CEL rules of one schema, without those of the schemas in it.
func compileRules(at *field.Path, s *structuralschema.Structural, d *apiservercel.DeclType) (errs field.ErrorList) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiled, err := cel.Compile(s, d, celconfig.PerCallLimit, base, cel.StoredExpressionsEnvLoader())
	if err != nil {
		return field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	for i, rule := range compiled {
		if rule.Error != nil {
			errs = append(errs, field.Invalid(at.Index(i).Child("rule"), s.XValidations[i].Rule, rule.Error.Detail))
		}
	}
	return errs
}

// Prune removes fields that are not in the schema from an object, and returns their
// paths.
func (s *Schema) Prune(object map[string]any, isResource bool) []string {
	unknown := pruning.PruneWithOptions(object, s.structural, isResource, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	return unknown
}

// Fill sets the defaults of the schema and removes nulls that the schema does not permit,
// as an API server does before validation.
func (s *Schema) Fill(object map[string]any) {
	s.Default(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
}

// Default sets the defaults of the schema.
func (s *Schema) Default(object map[string]any) {
	defaulting.Default(object, s.structural)
}

// Validate validates an object as an API server validates a custom resource: OpenAPI
// first, then sets and maps in lists, and CEL rules only if the structure is valid.
func (s *Schema) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	rules := s.rules()
	if rules == nil {
		return nil
	}
	errs, _ = rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// Siblings returns the names of the fields next to the one at a path.
func (s *Schema) Siblings(path string) []string {
	at := s.at(parentOf(path))
	if at == nil {
		return nil
	}
	names := make([]string, 0, len(at.Properties))
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Find returns the paths of all fields that have a name. It leaves out the status and the metadata, and fields of the items of
// lists and of the values of maps.
func (s *Schema) Find(name string) []string {
	var all []string
	find(s.structural, "", name, &all)
	slices.Sort(all)
	return all
}

func find(s *structuralschema.Structural, path, name string, all *[]string) {
	for below, next := range s.Properties {
		at := strings.TrimPrefix(path+"."+below, ".")
		if at == "status" || at == "metadata" {
			continue
		}
		if below == name {
			*all = append(*all, at)
		}
		find(&next, at, name, all)
	}
}

// TypeOf returns the type of the value at a path, such as "array"; "" if there is no such field.
func (s *Schema) TypeOf(path string) string {
	if at := s.at(path); at != nil {
		return at.Type
	}
	return ""
}

// InList reports whether a path names a field of a mapping that stands where the schema has a list.
func (s *Schema) InList(path string) bool {
	return !strings.HasSuffix(path, "]") && s.TypeOf(parentOf(path)) == "array"
}

// InScalar reports whether a path names a field of a mapping that stands where the schema has a text, a number, or true or false.
func (s *Schema) InScalar(path string) bool {
	return slices.Contains([]string{"string", "integer", "number", "boolean"}, s.TypeOf(parentOf(path)))
}

// parentOf returns the path of the value that has the field at a path.
func parentOf(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// at returns the schema of the value at a path; nil if the schema does not have the path.
func (s *Schema) at(path string) *structuralschema.Structural {
	at := s.structural
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' }) {
		switch next, known := at.Properties[segment]; {
		case known:
			at = &next
		case strings.HasSuffix(segment, "]") && at.Items != nil:
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	return at
}
