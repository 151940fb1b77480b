package class

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
)

// builtinName is the variable that Cluster API sets.
const builtinName = "builtin"

// variable is the value of a variable and where it comes from.
type variable struct {
	value any
	place Place
}

type variableSet map[string]variable

// definition is a variable of the class with its compiled schema. The schema is for an
// object with the variable as its only field.
type definition struct {
	clusterv1.ClusterClassVariable
	place  Place
	schema *crd.Schema // nil if it is invalid
}

// variables reads the values that the Cluster sets, sets defaults, and validates them
// with the schemas of the class.
func (e *expander) variables(ctx context.Context) {
	definitions := e.definitions(ctx)
	e.global = e.values(ctx, definitions, e.topology.Variables, e.inCluster("variables"))
	e.fromDefaults(definitions)
	plane := e.inCluster("controlPlane.variables.overrides")
	e.planes = e.values(ctx, definitions, e.topology.ControlPlane.Variables.Overrides, plane)
	e.workers = map[string]variableSet{}
	for i, d := range e.topology.Workers.MachineDeployments {
		at := e.inCluster(indexed("workers.machineDeployments", i) + ".variables.overrides")
		e.workers[d.Name] = e.values(ctx, definitions, d.Variables.Overrides, at)
	}
}

// inSchema returns the place of the schema of the variable.
func (d *definition) inSchema() Place { return d.place.Below("schema.openAPIV3Schema") }

func (e *expander) definitions(ctx context.Context) map[string]*definition {
	all := map[string]*definition{}
	for i, v := range e.class.Spec.Variables {
		d := &definition{ClusterClassVariable: v, place: e.inClass(indexed("variables", i))}
		switch {
		case v.Name == builtinName:
			e.fail(d.place.Below("name"), "the name builtin is reserved for Cluster API", "choose another name")
		case strings.Contains(v.Name, "."):
			e.fail(d.place.Below("name"), "the name of a variable must not contain dots", "choose another name")
		case all[v.Name] != nil:
			e.fail(d.place.Below("name"), fmt.Sprintf("duplicate variable %q", v.Name), "keep one of them")
		}
		all[v.Name] = d
		schema, err := compile(v)
		if err != nil {
			e.fail(d.inSchema(), fmt.Sprintf("the schema of the variable %q is invalid: %v", v.Name, err), "")
			continue
		}
		errs := schema.CheckSchema(ctx)
		for _, err := range errs {
			at := inside(d.inSchema(), err.Field, "properties["+v.Name+"]")
			e.fail(at, fmt.Sprintf("the schema of the variable %q is invalid: %s", v.Name, explained(err)), "")
		}
		if len(errs) == 0 {
			d.schema = schema
			e.checkExamples(ctx, v.Name, &v.Schema.OpenAPIV3Schema, d.inSchema())
		}
	}
	return all
}

// checkExamples compares the examples in a schema with it (validateSchema in internal/topology/variables/clusterclass_variable_validation.go of
// Cluster API).
func (e *expander) checkExamples(ctx context.Context, name string, s *clusterv1.JSONSchemaProps, at Place) {
	if s.Example != nil {
		one := clusterv1.ClusterClassVariable{Name: name, Schema: clusterv1.VariableSchema{OpenAPIV3Schema: *s}}
		schema, err := compile(one)
		example, wrong := value(s.Example.Raw)
		if err != nil || wrong != nil {
			return // the schema around it is invalid, too
		}
		for _, err := range schema.Validate(ctx, map[string]any{name: example}) {
			e.fail(
				at.Below("example"),
				fmt.Sprintf("the example does not fit the schema of the variable %q: %s", name, explained(err)),
				"change the example, or remove it",
			)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[key]
		e.checkExamples(ctx, name, &p, at.Below("properties."+key))
	}
	if s.Items != nil {
		e.checkExamples(ctx, name, s.Items, at.Below("items"))
	}
}

// compile compiles a schema for an object with the variable as its only field. Of Cluster
// API's schemas, only x-metadata is not part of OpenAPI, and it does not concern values.
func compile(v clusterv1.ClusterClassVariable) (*crd.Schema, error) {
	raw, err := json.Marshal(v.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	var schema apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	eachSchema(&schema, func(s *apiextensionsv1.JSONSchemaProps) {
		if s.XPreserveUnknownFields != nil && !*s.XPreserveUnknownFields {
			s.XPreserveUnknownFields = nil // only true is permitted
		}
	})
	return crd.Compile(&apiextensionsv1.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{v.Name: schema},
	})
}

// eachSchema visits a schema and the schemas in it.
func eachSchema(s *apiextensionsv1.JSONSchemaProps, visit func(*apiextensionsv1.JSONSchemaProps)) {
	if s == nil {
		return
	}
	visit(s)
	for name, p := range s.Properties {
		eachSchema(&p, visit)
		s.Properties[name] = p
	}
	if s.Items != nil {
		eachSchema(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil {
		eachSchema(s.AdditionalProperties.Schema, visit)
	}
	for _, group := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range group {
			eachSchema(&group[i], visit)
		}
	}
	eachSchema(s.Not, visit)
}

// values reads variables of the Cluster.
func (e *expander) values(ctx context.Context, definitions map[string]*definition, set []clusterv1.ClusterVariable, at Place) variableSet {
	found := variableSet{}
	for i, v := range set {
		place := at.Below(fmt.Sprintf("[%d]", i))
		d := definitions[v.Name]
		if d == nil && e.discovers() { // what the extension would make of it, its patch says
			continue
		}
		if d == nil {
			e.fail(place.Below("name"), fmt.Sprintf("the ClusterClass has no variable %q", v.Name), availableNames("its variables are ", maps.Keys(definitions)))
			continue
		}
		if _, twice := found[v.Name]; twice {
			e.fail(place.Below("name"), fmt.Sprintf("the variable %q is a duplicate", v.Name), "keep one of them")
			continue
		}
		given, err := value(v.Value.Raw)
		if err != nil {
			e.fail(place.Below("value"), err.Error(), "")
			continue
		}
		found[v.Name] = variable{e.checked(ctx, d, given, place.Below("value")), place.Below("value")}
	}
	return found
}

// checked sets the defaults inside a value, and validates it with its schema.
func (e *expander) checked(ctx context.Context, d *definition, given any, at Place) any {
	if d.schema == nil {
		return given
	}
	wrapped := map[string]any{d.Name: given}
	d.schema.Default(wrapped)
	errs := d.schema.Validate(ctx, wrapped)
	for _, err := range errs {
		if strings.HasPrefix(err.Detail, brokenRule) { // no value satisfies it
			e.fail(d.inSchema(), fmt.Sprintf("the schema of the variable %q: %s", d.Name, err.Detail), "correct the rule")
			continue
		}
		e.fail(inside(at, err.Field, d.Name), fmt.Sprintf("the variable %q: %s", d.Name, explained(err)), fixOf(err))
	}
	if len(errs) == 0 {
		for _, unknown := range d.schema.Prune(wrapped, false) {
			e.fail(
				inside(at, unknown, d.Name),
				fmt.Sprintf("the schema of the variable %q has no such field", d.Name),
				availableNames("it has ", slices.Values(d.schema.Siblings(unknown))),
			)
		}
	}
	return wrapped[d.Name]
}

// brokenRule is how the error for a value begins if a validation rule in its schema is not valid CEL
// (validateExpressions in apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go).
const brokenRule = "rule compile error"

// inside returns the place of a path that begins with the name of the variable.
func inside(at Place, path, name string) Place {
	return at.Below(strings.TrimPrefix(strings.TrimPrefix(path, name), "."))
}

func explained(err *field.Error) string {
	detail := err.Detail
	if _, rest, ok := strings.Cut(" "+detail, " in body "); ok {
		detail = rest
	}
	switch err.Type { //nolint:exhaustive // the others have a detail
	case field.ErrorTypeRequired:
		return strings.TrimSuffix("a value is required: "+detail, ": ")
	case field.ErrorTypeNotSupported:
		return fmt.Sprintf("%v is not one of the allowed values", err.BadValue)
	default:
		return detail
	}
}

func fixOf(err *field.Error) string {
	if err.Type == field.ErrorTypeNotSupported {
		return strings.Replace(err.Detail, "supported values: ", "use one of ", 1)
	}
	return "change the value"
}

// fromDefaults sets the variables that the Cluster does not set to their defaults, and
// reports required ones that are missing.
func (e *expander) fromDefaults(definitions map[string]*definition) {
	for _, v := range e.class.Spec.Variables {
		d := definitions[v.Name]
		if _, set := e.global[v.Name]; set || d.schema == nil {
			continue
		}
		if v.Schema.OpenAPIV3Schema.Default != nil {
			wrapped := map[string]any{}
			d.schema.Default(wrapped)
			e.global[v.Name] = variable{wrapped[v.Name], d.place.Below("schema.openAPIV3Schema.default")}
			continue
		}
		if v.Required != nil && *v.Required && !e.givenWrongly(v.Name) {
			e.fail(e.inCluster("variables"), fmt.Sprintf("the ClusterClass requires the variable %q", v.Name), "set it")
		}
	}
}

// givenWrongly reports whether the Cluster sets a variable, with a valid value or not.
func (e *expander) givenWrongly(name string) bool {
	return slices.ContainsFunc(e.topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == name })
}

// availableNames returns a fix that lists names.
func availableNames(start string, names func(func(string) bool)) string {
	sorted := slices.Sorted(names)
	if len(sorted) == 0 || len(sorted) > 20 {
		return ""
	}
	return start + strings.Join(sorted, ", ")
}
