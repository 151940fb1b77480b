package crd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
)

// parsed parses a schema in YAML.
func parsed(t *testing.T, text string) *crd.Schema {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	s, err := crd.Parse(raw)
	require.NoError(t, err)
	return s
}

// object parses an object in YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

const boat = `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  status: {type: object, properties: {length: {type: integer}}}
  spec:
    type: object
    required: [name]
    properties:
      name: {type: string, maxLength: 5}
      length: {type: integer, default: 3, minimum: 1}
      flag: {type: string, nullable: true}
      sail: {type: object, default: {}, properties: {length: {type: integer, default: 2}}}
      labels: {type: object, additionalProperties: {type: object, properties: {length: {type: integer}}}}
      crew:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties: {name: {type: string}, length: {type: integer}}
    x-kubernetes-validations:
    - {rule: "self.name != 'Titan'", message: "that one sinks"}
`

// A schema that cannot be read is an error, and one that is no schema of a custom resource has errors.
func TestSchemasAreChecked(t *testing.T) {
	_, err := crd.Parse([]byte("{"))
	require.Error(t, err)
	_, err = crd.Compile(&apiextensionsv1.JSONSchemaProps{Type: "object", Ref: new("#/definitions/x")})
	require.Error(t, err)
	for name, c := range map[string]struct{ text, want string }{
		"as it should be":    {boat, ""},
		"no type":            {"properties: {a: {type: string}}", "type: Required value"},
		"a default too long": {"{type: object, properties: {a: {type: string, maxLength: 1, default: abc}}}", "properties[a].default: Too long"},
		"a default of another type": {
			"{type: object, properties: {a: {type: integer, default: abc}}}", "properties[a].default: Invalid value",
		},
	} {
		errs := parsed(t, c.text).CheckSchema(t.Context())
		if c.want == "" {
			require.Empty(t, errs, name)
			continue
		}
		require.ErrorContains(t, errs.ToAggregate(), c.want, name)
	}
}

// Pruning removes what the schema does not have, and names it. The fields that each resource has stay.
func TestPrune(t *testing.T) {
	o := object(t, `{apiVersion: v1, kind: Boat, metadata: {name: x, labels: {a: b}}, spec: {name: a, rudder: 1, crew: [{name: b, age: 3}]}, anchor: {a: 1}}`)
	require.Equal(t, []string{"anchor", "spec.crew[0].age", "spec.rudder"}, parsed(t, boat).Prune(o, true))
	require.Equal(t, object(t, `{apiVersion: v1, kind: Boat, metadata: {name: x, labels: {a: b}}, spec: {name: a, crew: [{name: b}]}}`), o)
	require.Empty(t, parsed(t, boat).Prune(o, true))
}

// Defaults are set where a value is missing, also below other defaults. A null is removed where the schema permits none.
func TestFill(t *testing.T) {
	o := object(t, `{spec: {name: a, flag: null, crew: null, length: null}}`)
	parsed(t, boat).Fill(o)
	require.Equal(t, map[string]any{"name": "a", "flag": nil, "length": int64(3), "sail": map[string]any{"length": int64(2)}}, o["spec"])
	o = object(t, `{spec: {name: a, length: 7, sail: {length: 0}}}`)
	parsed(t, boat).Fill(o)
	require.Equal(t, object(t, `{spec: {name: a, length: 7, sail: {length: 0}}}`), o, "given values stay")
}

// An API server checks the structure first: rules in CEL are not run on an object that is not as the schema says.
func TestValidate(t *testing.T) {
	s := parsed(t, boat)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"valid":   {`{spec: {name: a, crew: [{name: b}, {name: c}]}}`, nil},
		"missing": {`{spec: {}}`, []string{"spec.name: Required value"}},
		"a rule":  {`{spec: {name: Titan}}`, []string{`spec: Invalid value: that one sinks`}},
		"a rule is not run": {
			`{spec: {name: Titan, length: 0}}`, []string{"spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1"},
		},
		"twice in a list map": {`{spec: {name: Titan, crew: [{name: b}, {name: b}]}}`, []string{`spec.crew[1]: Duplicate value: {"name":"b"}`}},
		"all errors": {
			`{spec: {name: abcdef, crew: [{length: 1}]}}`,
			[]string{"spec.name: Too long", "spec.crew[0].name: Required value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range s.Validate(t.Context(), object(t, c.text)) {
				got = append(got, e.Error())
			}
			require.Len(t, got, len(c.want), "%q", got)
			for _, want := range c.want {
				require.True(t, slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, want) }), "%q has no %q", got, want)
			}
		})
	}
}

// What the messages about an unknown field are made of.
func TestPaths(t *testing.T) {
	s := parsed(t, boat)
	require.Equal(t, []string{"crew", "flag", "labels", "length", "name", "sail"}, s.Siblings("spec.lenght"))
	require.Equal(t, []string{"length", "name"}, s.Siblings("spec.crew[1].nam"))
	require.Equal(t, []string{"length"}, s.Siblings("spec.labels.mine.lenght"))
	require.Equal(t, []string{"apiVersion", "kind", "metadata", "spec", "status"}, s.Siblings("spce"))
	require.Empty(t, s.Siblings("spec.mast.x"))
	require.Empty(t, s.Siblings("spec.name.x"))

	require.Equal(t, []string{"spec.length", "spec.sail.length"}, s.Find("length"))
	require.Equal(t, []string{"spec.name"}, s.Find("name"))
	require.Empty(t, s.Find("mast"))

	for path, want := range map[string]string{
		"": "object", "spec.crew": "array", "spec.crew[7]": "object", "spec.crew[7].name": "string", "spec.labels.mine.length": "integer",
		"spec.mast": "", "spec.crew.name": "", "spec.name[0]": "",
	} {
		require.Equal(t, want, s.TypeOf(path), path)
	}
	for path, want := range map[string]bool{"spec.crew.name": true, "spec.crew[0]": false, "spec.crew[0].name": false, "spec.sail.length": false, "crew": false} {
		require.Equal(t, want, s.InList(path), path)
	}
}

// The schemas of all kinds are those of the releases, also where a CustomResourceDefinition differs from what its release served.
func TestFor(t *testing.T) {
	s, err := crd.For("AWSCluster", "v1beta2")
	require.NoError(t, err)
	again, err := crd.For("AWSCluster", "v1beta2")
	require.NoError(t, err)
	require.Same(t, s, again, "a schema is compiled once")
	require.Equal(t, "string", s.TypeOf("spec.network.subnets[0].id"))
	for _, name := range [][2]string{{"AWSCluster", "v1"}, {"Boat", "v1beta2"}, {"../AWSCluster", "v1beta2"}} {
		_, err := crd.For(name[0], name[1])
		require.ErrorContains(t, err, "schema "+name[0]+"/"+name[1]+".json: ")
		_, err = crd.Described(name[0], name[1])
		require.ErrorContains(t, err, "schema "+name[0]+"/"+name[1]+": ")
	}
	subnets := object(t, `{spec: {network: {subnets: [{cidrBlock: 10.0.0.0/24}, {cidrBlock: 10.0.1.0/24}]}}}`)
	old, err := crd.For("AWSManagedControlPlane", "v1beta1")
	require.NoError(t, err)
	require.Empty(t, old.Validate(t.Context(), subnets), "subnets had no IDs")
	later, err := crd.For("AWSManagedControlPlane", "v1beta2")
	require.NoError(t, err)
	require.ErrorContains(t, later.Validate(t.Context(), subnets).ToAggregate(), "spec.network.subnets[0].id: Required value")
}

// Each description is at its path: below lists and maps, too.
func TestDescribe(t *testing.T) {
	s := apiextensionsv1.JSONSchemaProps{Description: "old", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"crew": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Description: "of a release"}, "age": {}},
		}}},
		"flags": {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{}}},
	}}
	crd.Describe(&s, "", func(path string) string {
		if path == "" || path == "crew[].name" {
			return ""
		}
		return "about " + path
	})
	require.Equal(t, "old", s.Description, "what has no description keeps its own")
	require.Equal(t, "about crew", s.Properties["crew"].Description)
	require.Equal(t, "about crew[]", s.Properties["crew"].Items.Schema.Description)
	require.Equal(t, "of a release", s.Properties["crew"].Items.Schema.Properties["name"].Description)
	require.Equal(t, "about crew[].age", s.Properties["crew"].Items.Schema.Properties["age"].Description)
	require.Equal(t, "about flags{}", s.Properties["flags"].AdditionalProperties.Schema.Description)

	served, err := crd.Described("AWSCluster", "v1beta2")
	require.NoError(t, err)
	spec := served.Properties["spec"]
	require.NotEmpty(t, spec.Properties["region"].Description)
	require.NotEmpty(t, spec.Properties["network"].Properties["subnets"].Items.Schema.Properties["cidrBlock"].Description)
}
