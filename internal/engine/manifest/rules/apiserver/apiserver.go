// Package apiserver says why the API server of a cluster would refuse an object that is applied to it. The rules are those of Kubernetes: the
// types in k8s.io/api, and the packages pkg/apis/*/validation. The simulated API server (internal/kubesim) shares no code with this package,
// so that each can be tested with the other.
package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// Refusal is a reason to refuse an object.
type Refusal struct{ Field, What, Fix string }

const noField = "the kind has no such field"

// Unknown reports whether the kind of the object has no such field. The API server refuses the field in a server-side apply. It ignores the
// field when an object is created, which is what resource sets of Cluster API do.
func (r Refusal) Unknown() bool { return r.What == noField }

// Drop removes the field from the object.
func (r Refusal) Drop(object map[string]any) {
	drop(object, regex.Of(`[^.\[\]]+`).FindAllString(r.Field, -1))
}

func drop(at any, path []string) {
	switch v := at.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
		} else {
			drop(v[path[0]], path[1:])
		}
	case []any:
		if n, err := strconv.Atoi(path[0]); err == nil && n < len(v) && len(path) > 1 {
			drop(v[n], path[1:])
		}
	}
}

// Server is what is known of the API server.
type Server struct {
	Minor    uint64         // the minor version of Kubernetes; 0 if it is not known
	Services []netip.Prefix // the blocks of Services; nil if they are not known
	Defaults bool           // it serves the API versions that are on by default, and no others
	Gates    bool           // its feature gates are those of Kubernetes
	NodePort [2]int32       // the first and last node port
	// Schemas are those of kinds that the manifest defines.
	Schemas map[schema.GroupVersionKind]*crd.Schema
}

// check collects the refusals of one object.
type check struct {
	Server
	found []Refusal
}

func (c *check) refuse(field, what, fix string) { c.found = append(c.found, Refusal{field, what, fix}) }

// need refuses an empty value of a field that is required.
func (c *check) need(field, value string) {
	if value == "" {
		c.refuse(field, "a value is required", "set it")
	}
}

// oneOf refuses a value that is not permitted. An empty value is permitted: Kubernetes then uses its default.
func oneOf[S ~string](c *check, field string, value S, permitted ...S) {
	words := make([]string, 0, len(permitted))
	for _, p := range permitted {
		if value == p {
			return
		}
		words = append(words, string(p))
	}
	if value != "" {
		c.refuse(field, fmt.Sprintf("%q is not one of %s", value, strings.Join(words, ", ")), "write one of them")
	}
}

// Refusals returns the reasons for which the API server refuses an object of a built-in kind. If a value has the wrong type, that is the only
// reason. If the kind does not have some fields, these are the only reasons.
func (s Server) Refusals(object map[string]any) []Refusal {
	typed, known := typeOf(object)
	switch {
	case kindOf(object) == apiServiceKind():
		return s.apiServices(object)
	case !known:
		return s.custom(object)
	}
	if bad := s.decode(object, typed); len(bad) > 0 {
		return bad
	}
	c := &check{Server: s}
	c.metadata(typed)
	c.object(typed)
	return c.found
}

// typeOf returns an empty value of the Go type for the kind of an object; false if there is none.
func typeOf(object map[string]any) (runtime.Object, bool) {
	kind := kindOf(object)
	if kind == apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
		return &apiextensionsv1.CustomResourceDefinition{}, true
	}
	typed, err := scheme.Scheme.New(kind)
	return typed, err == nil
}

// newest is the minor version of the Kubernetes release from which this program has the types of k8s.io/api. A later release may have fields
// that these types do not have.
const newest = 37

// decode sets the fields of typed to those of the object. Fields that the type does not have are refusals, as in a server-side apply.
func (s Server) decode(object map[string]any, typed runtime.Object) (bad []Refusal) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	unknown, err := kjson.UnmarshalStrict(text, typed)
	if err != nil {
		return []Refusal{wrongType(err, object)}
	}
	for _, e := range unknown {
		path := quoted(e.Error())
		if s.Minor > newest || path == "" {
			continue
		}
		name := path[strings.LastIndex(path, ".")+1:]
		bad = append(bad, Refusal{path, noField, meant(name, siblings(typed, path), "remove it, or correct its name")})
	}
	return bad
}

// meant suggests the name that is nearest to a wrong one. It returns the other fix if none is near.
func meant(wrong string, names []string, other string) string {
	if name := suggest.Nearest(wrong, names); name != "" {
		return fmt.Sprintf("did you mean %q?", name)
	}
	return other
}

// quoted returns the part of a text that is in quotation marks.
func quoted(text string) string {
	if m := regex.Of(`"([^"]*)"`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// wrongType converts the error of the JSON decoder about a value of the wrong type. The refusal names the field with the value.
func wrongType(err error, object map[string]any) Refusal {
	m := regex.Of(`cannot unmarshal (\S+) into Go (?:struct field \w+\.(\S+)|value) of type (\S+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return Refusal{"", strings.TrimPrefix(err.Error(), "json: "), "correct it"}
	}
	want, fix := m[3], "write one"
	switch {
	case want == "string":
		want, fix = "a text", "put the value in quotes"
	case strings.HasPrefix(want, "int"), strings.HasPrefix(want, "uint"):
		want, fix = "a whole number", "write the number without quotes"
	case want == "bool":
		want, fix = "true or false", "write it without quotes"
	case strings.HasPrefix(want, "[]"):
		want, fix = "a list", "write a list"
	case strings.HasPrefix(want, "map["):
		want, fix = "a mapping", "write NAME: VALUE"
	default:
		want = "a mapping"
	}
	have := map[string]string{"bool": "true or false", "array": "a list", "object": "a mapping", "string": "a text"}[m[1]]
	if have == "" {
		have = "a " + m[1]
	}
	if have == "a text" && want == "a list" || m[1] == "array" {
		fix = "write " + want
	}
	path := m[2]
	if exact := locate(object, strings.Split(path, "."), m[1]); exact != "" {
		path = strings.TrimPrefix(exact, ".")
	}
	return Refusal{path, fmt.Sprintf("is %s, not %s", have, want), fix}
}

// locate returns the path of the first value of a JSON type at the given fields, such as "spec.ports[1].port": the errors of the decoder do
// not have the numbers of list items. It returns "." if the value is the start itself, and "" if there is none.
func locate(at any, fields []string, want string) string {
	if len(fields) == 0 && typeOfJSON(at) == want {
		return "."
	}
	switch v := at.(type) {
	case map[string]any:
		keys, rest := slices.Sorted(maps.Keys(v)), fields
		if len(fields) > 0 {
			keys, rest = fields[:1], fields[1:]
		}
		for _, key := range keys {
			if found := locate(v[key], rest, want); found != "" {
				return "." + key + strings.TrimSuffix(found, ".")
			}
		}
	case []any:
		for i, item := range v {
			if found := locate(item, fields, want); found != "" {
				return fmt.Sprintf("[%d]%s", i, strings.TrimSuffix(found, "."))
			}
		}
	}
	return ""
}

// typeOfJSON returns the name of the type of a value in errors of the JSON decoder.
func typeOfJSON(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "bool"
	case nil:
		return "null"
	}
	return "number"
}
