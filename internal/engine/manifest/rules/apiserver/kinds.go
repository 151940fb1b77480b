package apiserver

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

func kindOf(object map[string]any) schema.GroupVersionKind {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}

// elsewhere returns the built-in kinds whose Go types are not part of client-go.
func elsewhere() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		apiServiceKind(),
	}
}

func apiServiceKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
}

// Unserved says why an API server does not serve the kind of an object; ok is false if it serves the kind, or if that is not certain. It looks
// only at the API groups of Kubernetes itself, and not at versions that Kubernetes has removed.
func (s Server) Unserved(object map[string]any) (bad Refusal, ok bool) {
	kind := kindOf(object)
	foreign := !scheme.Scheme.IsGroupRegistered(kind.Group) &&
		!slices.ContainsFunc(elsewhere(), func(k schema.GroupVersionKind) bool { return k.Group == kind.Group })
	if foreign || slices.Contains(elsewhere(), kind) {
		return Refusal{}, false
	}
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		if s.Minor > newest { // it may be new
			return Refusal{}, false
		}
		version := kind.GroupVersion().String()
		return Refusal{"kind", fmt.Sprintf("there is no kind %s in %s", kind.Kind, version), otherVersion(kind)}, true
	}
	if since := introduced(typed); s.Minor > 0 && since > s.Minor {
		what := fmt.Sprintf("the kind %s of %s is there since Kubernetes 1.%d, and the cluster has 1.%d", kind.Kind, kind.GroupVersion(), since, s.Minor)
		return Refusal{"apiVersion", what, fmt.Sprintf("remove it, or use Kubernetes 1.%d", since)}, true
	}
	if s.Defaults && isOff(kind.GroupVersion(), introduced(typed)) {
		fix := "use another version, or set runtime-config of the API server"
		return Refusal{"apiVersion", kind.GroupVersion().String() + " is off by default", fix}, true
	}
	return Refusal{}, false
}

// isOff reports whether an API server serves an API version only if its runtime-config says so. That is the case for alpha versions, and for
// beta versions that came with Kubernetes 1.24 or later (KEP 3136). The beta versions of flow control are exceptions.
func isOff(version schema.GroupVersion, since uint64) bool {
	const offByDefault = 24
	alpha, beta := strings.Contains(version.Version, "alpha"), strings.Contains(version.Version, "beta")
	return alpha || beta && since >= offByDefault && version.Group != "flowcontrol.apiserver.k8s.io"
}

// introduced returns the first minor version of Kubernetes that serves a kind; 0 if the type does not say which that is.
func introduced(o runtime.Object) uint64 {
	if x, is := o.(interface{ APILifecycleIntroduced() (major, minor int) }); is {
		if major, minor := x.APILifecycleIntroduced(); major == 1 {
			return uint64(max(0, minor))
		}
	}
	return 0
}

// otherVersion says what to write instead of a kind that the API version does not have: the API version that has it, or a kind with a similar
// name.
func otherVersion(kind schema.GroupVersionKind) string {
	var names []string
	for known := range scheme.Scheme.AllKnownTypes() {
		if known.Kind == kind.Kind && known.Version == "v1" {
			return "write apiVersion: " + known.GroupVersion().String()
		}
		if known.Group == kind.Group && known.Version == kind.Version {
			names = append(names, known.Kind)
		}
	}
	for _, known := range elsewhere() {
		if known.Kind == kind.Kind {
			return "write apiVersion: " + known.GroupVersion().String()
		}
	}
	slices.Sort(names)
	return meant(kind.Kind, names, "correct apiVersion and kind")
}

// siblings returns the names of all fields of the mapping in which the field at a path is.
func siblings(typed runtime.Object, path string) (names []string) {
	at := reflect.TypeOf(typed)
	steps := strings.Split(regex.Of(`\[[^\]]*\]`).ReplaceAllString(path, ""), ".")
	for _, step := range steps[:len(steps)-1] {
		field, found := fieldNamed(at, step)
		if !found {
			return nil
		}
		at = field
	}
	for _, f := range fieldsOf(at) {
		names = append(names, f.name)
	}
	return names
}

type field struct {
	name string
	is   reflect.Type
}

// fieldsOf returns the fields of a struct type, with their names in JSON. For a pointer, a list or a map, it returns the fields of the element
// type.
func fieldsOf(t reflect.Type) (all []field) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			all = append(all, fieldsOf(f.Type)...)
		case name != "" && name != "-":
			all = append(all, field{name, f.Type})
		}
	}
	return all
}

func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range fieldsOf(t) {
		if f.name == name {
			return f.is, true
		}
	}
	return nil, false
}
