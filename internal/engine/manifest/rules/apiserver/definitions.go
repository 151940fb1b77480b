package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// definition checks a CustomResourceDefinition (pkg/apis/apiextensions/validation of k8s.io/apiextensions-apiserver).
func (c *check) definition(o *apiextensionsv1.CustomResourceDefinition) {
	if name := o.Spec.Names.Plural + "." + o.Spec.Group; o.Name != name {
		c.refuse("metadata.name", fmt.Sprintf("%q is not spec.names.plural and spec.group, %s", o.Name, name), "change one of them")
	}
	if protected := regex.Of(`\.(k8s|kubernetes)\.io$`).MatchString(o.Spec.Group); protected && o.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation] == "" {
		c.refuse("metadata.annotations", "the group "+o.Spec.Group+" belongs to Kubernetes, which demands "+apiextensionsv1.KubeAPIApprovedAnnotation,
			`use a group of your own, or set it to "unapproved, WHY"`)
	}
	c.definedNames(&o.Spec.Names)
	if o.Spec.Scope == "" {
		c.need("spec.scope", "")
	}
	oneOf(c, "spec.scope", o.Spec.Scope, apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped)
	stored := 0
	for i := range o.Spec.Versions {
		v := &o.Spec.Versions[i]
		if v.Storage {
			stored++
		}
		c.versionOfDefinition(fmt.Sprintf("spec.versions[%d].", i), v)
	}
	if stored != 1 {
		c.refuse("spec.versions", fmt.Sprintf("%d of them have storage: true", stored), "set it for one")
	}
}

// definedNames checks the names of a kind (ValidateCustomResourceDefinitionNames). Those of the kind and its list may have capital letters.
func (c *check) definedNames(n *apiextensionsv1.CustomResourceDefinitionNames) {
	c.need("spec.names.plural", n.Plural)
	c.need("spec.names.kind", n.Kind)
	for field, name := range map[string]string{"kind": strings.ToLower(n.Kind), "listKind": strings.ToLower(n.ListKind), "plural": n.Plural, "singular": n.Singular} {
		if name != "" {
			c.invalid("spec.names."+field, name, validation.IsDNS1035Label(name))
		}
	}
	for i, name := range n.ShortNames {
		c.invalid(fmt.Sprintf("spec.names.shortNames[%d]", i), name, validation.IsDNS1035Label(name))
	}
}

func (c *check) versionOfDefinition(at string, v *apiextensionsv1.CustomResourceDefinitionVersion) {
	c.invalid(at+"name", v.Name, validation.IsDNS1035Label(v.Name))
	for i, column := range v.AdditionalPrinterColumns {
		where := fmt.Sprintf("%sadditionalPrinterColumns[%d].", at, i)
		c.need(where+"type", column.Type)
		oneOf(c, where+"type", column.Type, "integer", "number", "string", "boolean", "date")
		if path := column.JSONPath; !strings.HasPrefix(path, ".") || jsonpath.New("").Parse("{"+path+"}") != nil {
			c.refuse(where+"jsonPath", fmt.Sprintf("%q is not a path such as .spec.size", path), "change it")
		}
	}
	if v.Subresources != nil && v.Subresources.Scale != nil {
		c.under(at+"subresources.scale.specReplicasPath", v.Subresources.Scale.SpecReplicasPath, ".spec.")
		c.under(at+"subresources.scale.statusReplicasPath", v.Subresources.Scale.StatusReplicasPath, ".status.")
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		c.refuse(at+"schema.openAPIV3Schema", "a schema is required", "add one, at least {type: object, x-kubernetes-preserve-unknown-fields: true}")
		return
	}
	at += "schema.openAPIV3Schema"
	before := len(c.found)
	if c.schema(at, v.Schema.OpenAPIV3Schema); len(c.found) > before {
		return
	}
	compiled, err := crd.Compile(v.Schema.OpenAPIV3Schema)
	if err != nil {
		c.refuse(at, err.Error(), "correct it")
		return
	}
	errs := compiled.CheckSchema(context.Background()) //nolint:forbidigo // only a value: no call below waits
	if len(errs) == 0 {
		errs = compiled.CheckRules()
	}
	for _, e := range errs {
		c.refuse(at+"."+dotted(e.Field), worded(e), "correct it")
	}
}

// under refuses a path that does not begin as it has to.
func (c *check) under(at, path, begin string) {
	if !strings.HasPrefix(path, begin) {
		c.refuse(at, fmt.Sprintf("%q does not begin with %s", path, begin), "change it")
	}
}

// schema checks what a structural schema does not show any more, in a schema and in those in it.
func (c *check) schema(at string, s *apiextensionsv1.JSONSchemaProps) {
	switch {
	case s.Ref != nil:
		c.refuse(at+".$ref", "references are not supported", "write the schema there")
	case s.UniqueItems:
		c.refuse(at+".uniqueItems", "is not supported", "use x-kubernetes-list-type: set")
	case s.XListType != nil && *s.XListType == "map" && len(s.XListMapKeys) == 0:
		c.refuse(at+".x-kubernetes-list-map-keys", "a list of the type map needs keys", "name the fields that tell its items apart")
	case len(s.Properties) > 0 && s.AdditionalProperties != nil && (s.AdditionalProperties.Schema != nil || !s.AdditionalProperties.Allows):
		c.refuse(at+".additionalProperties", "is not possible beside properties", "remove one of them")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		inner := s.Properties[name]
		c.schema(at+".properties."+name, &inner)
	}
	if s.Items != nil && s.Items.Schema != nil {
		c.schema(at+".items", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.schema(at+".additionalProperties", s.AdditionalProperties.Schema)
	}
}

// custom checks an object of a kind that a CustomResourceDefinition of the manifest defines.
func (s Server) custom(object map[string]any) (bad []Refusal) {
	schema := s.Schemas[kindOf(object)]
	if schema == nil {
		return nil
	}
	text, err := json.Marshal(object)
	var copied map[string]any
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(text, &copied) != nil {
		return nil
	}
	for _, path := range schema.Prune(copied, true) {
		name := path[strings.LastIndex(path, ".")+1:]
		bad = append(bad, Refusal{path, noField, meant(name, schema.Siblings(path), "remove it, or correct its name")})
	}
	if len(bad) > 0 {
		return bad
	}
	schema.Fill(copied)
	for _, e := range schema.Validate(context.Background(), copied) { //nolint:forbidigo // as above
		if strings.HasPrefix(e.Detail, "rule compile error") { // which the definition is refused for
			continue
		}
		bad = append(bad, Refusal{e.Field, worded(e), "change it"})
	}
	return bad
}

// worded returns the reason of an error of Kubernetes' validation, without the field and the value.
func worded(e *invalid.Error) string {
	if e.Type == invalid.ErrorTypeRequired {
		return "a value is required"
	}
	detail, _, _ := strings.Cut(e.Detail, "\n") // CEL draws the place in more lines
	detail = regex.Of(`^\S* ?in body `).ReplaceAllString(detail, "")
	return cmp.Or(regex.Of(`: "\w+"$`).ReplaceAllString(detail, ""), strings.ToLower(e.Type.String()))
}

// dotted writes the names in a path of Kubernetes' validation as in YAML: properties[spec].type is properties.spec.type.
func dotted(path string) string {
	return regex.Of(`\[([^\]\d][^\]]*)\]`).ReplaceAllString(path, ".$1")
}
