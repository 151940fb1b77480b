package loader

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// placeClusters sets the namespace of each Cluster that has none to that of its objects, if those with a namespace are all in one: such a
// file is for "kubectl apply -n", or it comes from a chart whose templates set the namespace of some objects only. kubectl then takes this
// namespace for the other ones, too. Objects that are in several namespaces stay what they are: Cluster API would not find some of them.
func (l *loader) placeClusters() {
	for _, c := range l.ofKind(manifest.KindCluster) {
		if c.Namespace != "" {
			continue
		}
		namespace, named := l.namespaceOfObjects(c)
		if namespace == "" || namespace == metav1.NamespaceDefault {
			continue
		}
		l.warnAbout(c, c.Problem(
			"metadata",
			fmt.Sprintf("has no namespace: the Cluster is taken to be in %s, as %s is", namespace, named.Title()),
			"write metadata.namespace: "+namespace,
		))
		c.Namespace = namespace
		if metadata, ok := c.Value["metadata"].(map[string]any); ok {
			metadata["namespace"] = namespace
		}
	}
}

// warnAbout adds a warning that is left out if another Cluster is chosen.
func (l *loader) warnAbout(o *manifest.Entry, p manifest.Problem) {
	l.warn(p)
	l.attribute(o, []manifest.Problem{p})
}

// namespaceOfObjects returns the one namespace that the objects of a Cluster have, and the first of these objects. It is empty if no object
// has a namespace, or if two have different ones.
func (l *loader) namespaceOfObjects(c *manifest.Entry) (namespace string, named *manifest.Entry) {
	sameName := map[objectName][]*manifest.Entry{}
	for _, o := range l.objects {
		sameName[objectName{o.Kind, o.Name}] = append(sameName[objectName{o.Kind, o.Name}], o)
	}
	belongs := l.belongingTo(c, sameName)
	withoutNamespace := func(o *manifest.Entry) bool { return o.Namespace == "" } // a Cluster without a namespace finds this one
	for _, o := range l.objects {
		n := objectName{o.Kind, o.Name}
		switch {
		case !belongs[n] || o.Namespace == "" || slices.ContainsFunc(sameName[n], withoutNamespace):
		case namespace != "" && namespace != o.Namespace:
			return "", nil
		case namespace == "":
			namespace, named = o.Namespace, o
		}
	}
	return namespace, named
}

// belongingTo returns the names of the objects of a Cluster: those that name it, those to which it refers, and those to which they refer.
func (l *loader) belongingTo(c *manifest.Entry, sameName map[objectName][]*manifest.Entry) map[objectName]bool {
	belongs := map[objectName]bool{}
	var pending []objectName
	add := func(n objectName) {
		if !belongs[n] && l.livesWithCluster(n.kind) {
			belongs[n] = true
			pending = append(pending, n)
		}
	}
	references(c.Value, add)
	if class, elsewhere := classOf(c); class != "" && !elsewhere {
		belongs[objectName{manifest.KindClusterClass, class}] = true
		pending = append(pending, objectName{manifest.KindClusterClass, class})
	}
	for _, o := range l.objects {
		if name, _ := manifest.ValueAt(o.Value, "spec.clusterName").(string); name == c.Name && o.Kind != manifest.KindCluster {
			add(objectName{o.Kind, o.Name})
		}
	}
	for len(pending) > 0 {
		for _, o := range sameName[pending[0]] {
			references(o.Value, add)
		}
		pending = pending[1:]
	}
	return belongs
}

// classOf returns the name of the ClusterClass of a Cluster, and whether the Cluster names a namespace for it.
func classOf(c *manifest.Entry) (name string, elsewhere bool) {
	topology, _ := manifest.ValueAt(c.Value, "spec.topology").(map[string]any)
	ref, _ := topology["classRef"].(map[string]any)
	name = cmp.Or(manifest.StringField(topology, "class"), manifest.StringField(ref, "name"))
	return name, manifest.StringField(topology, "classNamespace") != "" || manifest.StringField(ref, "namespace") != ""
}

// livesWithCluster reports whether Cluster API looks for referenced objects of a kind only in the namespace of the Cluster. That is not so for
// Secrets: those of identities are in another namespace.
func (l *loader) livesWithCluster(kind string) bool {
	k, known := l.kinds[kind]
	switch kind {
	case manifest.KindCluster, manifest.KindClusterClass, manifest.KindSecret, manifest.KindConfigMap, manifest.KindResourceSet, manifest.KindHelmChart:
		return false
	}
	return known && !k.clusterScoped
}

// objectName is what a reference says of an object.
type objectName struct{ kind, name string }

// references calls a function for each reference in a value: a mapping with a kind and a name.
func references(value any, found func(objectName)) {
	switch v := value.(type) {
	case map[string]any:
		kind, _ := v["kind"].(string)
		if name, _ := v["name"].(string); kind != "" && name != "" {
			found(objectName{kind, name})
		}
		for _, below := range v {
			references(below, found)
		}
	case []any:
		for _, below := range v {
			references(below, found)
		}
	}
}
