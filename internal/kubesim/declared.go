package kubesim

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// schemas has the published schemas of the built-in kinds. The API server compares each object of a server-side apply with the schema of its
// kind (k8s.io/apimachinery/pkg/util/managedfields). Those of custom resources are not simulated.
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var schemas = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// fieldSet lists the fields of an object of a built-in kind, in the format of managedFields; nil for other kinds.
func fieldSet(o Object) Object {
	plain, _ := copied(o).(Object)
	object := &unstructured.Unstructured{Object: plain}
	if !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
		return nil
	}
	typed, err := schemas().ObjectToTyped(object)
	if err != nil {
		return nil
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		return nil
	}
	raw, err := set.ToJSON()
	if err != nil {
		return nil
	}
	var fields Object
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	delete(fields, "f:apiVersion")
	delete(fields, "f:kind")
	return fields
}

// undeclared returns the error of the API server about an object that does not conform to the schema of its kind; "" if the object does. An
// object does not conform if a field is unknown, if a value has the wrong type, or if two items of a list have the same key.
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
