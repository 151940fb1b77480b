package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	bootstrapv1alpha1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1alpha1"
	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// check compares an object with the API type of its version. A value of the wrong type is
// an error, an unknown field is a warning.
func (l *loader) check(object map[string]any, version string) {
	newest := reflect.TypeFor[bootstrapv1.AWSIAMConfiguration]()
	t := newest
	if version != bootstrapv1.SchemeGroupVersion.Version {
		t = reflect.TypeFor[bootstrapv1alpha1.AWSIAMConfiguration]()
	}
	withoutMark := maps.Clone(object)
	if isOnlyMark(object) {
		delete(withoutMark, "metadata")
	}
	l.value(withoutMark, "", t, newest)
}

// value checks a value against its type. newest is the type in the newest version, or nil
// if the field does not exist there.
func (l *loader) value(v any, path string, t, newest reflect.Type) {
	t, newest = indirect(t), indirect(newest)
	if v == nil {
		return
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		l.textOrTexts(v, path)
		return
	}
	switch t.Kind() { //nolint:exhaustive // the API types have no others
	case reflect.Interface:
	case reflect.Struct, reflect.Map:
		l.objectOrMap(v, path, t, newest)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			l.wrongType(v, path, "a list")
		}
		for i, item := range list {
			l.value(item, path+"["+strconv.Itoa(i)+"]", t.Elem(), t.Elem())
		}
	default:
		l.scalar(v, path, t)
	}
}

func (l *loader) objectOrMap(v any, path string, t, newest reflect.Type) {
	object, ok := v.(map[string]any)
	switch {
	case !ok:
		l.wrongType(v, path, "an object")
	case t.Kind() == reflect.Struct:
		l.object(object, path, t, newest)
	default:
		for _, key := range slices.Sorted(maps.Keys(object)) {
			l.value(object[key], join(path, key), t.Elem(), t.Elem())
		}
	}
}

func (l *loader) scalar(v any, path string, t reflect.Type) {
	if reflect.TypeOf(v).Kind() == t.Kind() {
		return
	}
	want := "a string"
	if t.Kind() == reflect.Bool {
		want = "true or false"
	}
	l.wrongType(v, path, want)
}

// textOrTexts checks fields that IAM permits to be a string or a list of strings.
func (l *loader) textOrTexts(v any, path string) {
	switch v := v.(type) {
	case string:
	case []any:
		for i, item := range v {
			if _, ok := item.(string); !ok && item != nil {
				l.wrongType(item, path+"["+strconv.Itoa(i)+"]", "a string")
			}
		}
	default:
		l.wrongType(v, path, "a string or a list of strings")
	}
}

func (l *loader) wrongType(v any, path, want string) {
	fix := ""
	switch v := v.(type) {
	case bool, int64, float64:
		if strings.HasPrefix(want, "a string") {
			fix = "quote it"
		}
	case string:
		if want == "a list" {
			fix = "begin it with a dash, or put it into brackets"
		}
		if want == "true or false" && (v == "true" || v == "false") {
			fix = "remove the quotes"
		}
	}
	l.errors = append(l.errors, l.problem(path, "must be "+want+", not "+described(v), fix))
}

func described(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %q", v)
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

func (l *loader) object(object map[string]any, path string, t, newest reflect.Type) {
	known, later := fields(t), map[string]reflect.Type{}
	if newest != nil {
		later = fields(newest)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		below := join(path, name)
		if f, ok := known[name]; ok {
			l.value(object[name], below, f, later[name])
			continue
		}
		if _, ok := later[name]; ok {
			l.warn(below, "the field does not exist in this version and has no effect", "use apiVersion: "+bootstrapv1.SchemeGroupVersion.String())
			continue
		}
		l.warn(below, "the field does not exist and has no effect", meant(name, slices.Collect(maps.Keys(known))))
	}
}

// meant suggests a field, but not the opposite of the one in the file.
func meant(name string, known []string) string {
	if strings.HasPrefix(strings.ToLower(name), "enable") && slices.Contains(known, "disable") && !slices.Contains(known, "enable") {
		return "remove it: it is enabled by default, unless disable is set"
	}
	return suggest.DidYouMean(name, known)
}

// fields returns the fields of a struct by their JSON names.
func fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			maps.Copy(out, fields(f.Type))
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}

// functions warns about intrinsic functions that are not a complete encoded string.
// Goformation evaluates these with the placeholder account 123456789012 in us-east-1.
func (l *loader) functions(v any, path string) {
	switch v := v.(type) {
	case string:
		if _, argument := intrinsic(v); hasFunction(argument) {
			l.warn(path, "a function inside the encoded function is replaced by a placeholder value", "use Fn::Sub, which needs no nested functions")
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if below := join(path, name); isFunction(name) {
				l.warn(below, "the function is replaced by a placeholder value", "write it as base64 of its JSON")
			} else {
				l.functions(v[name], below)
			}
		}
	case []any:
		for i, item := range v {
			l.functions(item, path+"["+strconv.Itoa(i)+"]")
		}
	}
}

func isFunction(name string) bool { return name == "Ref" || strings.HasPrefix(name, "Fn::") }

func hasFunction(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			if isFunction(name) || hasFunction(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasFunction)
	}
	return false
}

func indirect(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
