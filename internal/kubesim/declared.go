package kubesim

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// schemas are the schemas of the built-in kinds, as the API server publishes them. It compares each object of a server-side apply with
// its schema (k8s.io/apimachinery/pkg/util/managedfields). Custom resources have none here.
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var schemas = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// undeclared returns what is wrong with an object by its schema: a field that its kind does not have, a value of another type, two items of
// a list with the same key. "" for nothing.
func undeclared(o Object) string {
	if value(o, "metadata", "managedFields") != nil { // pkg/endpoints/handlers/patch.go of k8s.io/apiserver
		return "metadata.managedFields must be nil"
	}
	plain, _ := copied(o).(Object)
	object := &unstructured.Unstructured{Object: plain}
	if !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
		return ""
	}
	_, err := schemas().ObjectToTyped(object)
	if err == nil {
		return ""
	}
	return fmt.Sprintf(
		"failed to create typed patch object (%s/%s; %s, Kind=%s): %v",
		text(o, "metadata", "namespace"), text(o, "metadata", "name"), text(o, "apiVersion"), text(o, "kind"), err,
	)
}
