package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of a manifest, with its type of the newest API version.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects returns the objects of the manifest in its order, with their kind, defaults and
// namespace. A topology is replaced by the objects that it describes. The objects are
// shared: a caller that changes one has to copy it.
func (c *Cluster) Objects() []Object { return c.objects }

// Keep adds an object to Objects.
func (c *Cluster) Keep(o Object) { c.objects = append(c.objects, o) }
