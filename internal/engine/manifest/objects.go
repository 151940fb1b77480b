package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
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

// keepObjects records the admitted objects. Objects from Options.Identities are those of a
// management cluster, and not part of the manifest.
func (l *loader) keepObjects() {
	for _, o := range l.objects {
		x, ok := o.typed.(Object)
		if !ok || o.foreign {
			continue
		}
		k := l.kinds[o.kind]
		version := "v1"
		if k.schema {
			version = versionNew
		}
		x.GetObjectKind().SetGroupVersionKind(apischema.GroupVersionKind{Group: k.group, Version: version, Kind: o.kind})
		l.cluster.objects = append(l.cluster.objects, x)
	}
}
