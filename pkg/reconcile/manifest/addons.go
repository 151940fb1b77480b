package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"clusterawsadm/internal/ordered"
)

// collectPayloads fills the maps of ConfigMaps and Secrets. Of two with one
// name the one in the Cluster's namespace counts.
func (l *loader) collectPayloads() {
	home := ""
	if found := l.ofKind(kindCluster); len(found) > 0 {
		home = found[0].namespace
	}
	for _, o := range l.objects {
		near := o.namespace == "" || o.namespace == home
		switch x := o.typed.(type) {
		case *corev1.ConfigMap:
			if l.cluster.ConfigMaps[o.name] == nil || near {
				l.cluster.ConfigMaps[o.name] = x
			}
		case *corev1.Secret:
			if l.cluster.Secrets[o.name] == nil || near {
				l.cluster.Secrets[o.name] = x
			}
		}
	}
}

// resolveAddons finds the ClusterResourceSets whose selector matches the
// Cluster, and what they bring.
func (l *loader) resolveAddons(c *clusterv1.Cluster) {
	for _, o := range l.ofKind(kindResourceSet) {
		s, ok := o.typed.(*addonsv1.ClusterResourceSet)
		if !ok {
			o.used = true
			l.usePayloads(o)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&s.Spec.ClusterSelector)
		l.usePayloads(o)
		if err != nil {
			continue
		}
		o.used = true
		if !selector.Matches(labels.Set(c.Labels)) {
			l.warn(o.problem("spec.clusterSelector", fmt.Sprintf("does not match the labels of Cluster/%s, so nothing of it is applied", c.Name), "add the labels to the Cluster"))
			continue
		}
		set := ResourceSet{Object: s}
		for i, r := range s.Spec.Resources {
			set.Documents = append(set.Documents, l.payload(o, fmt.Sprintf("spec.resources[%d]", i), r)...)
		}
		l.cluster.ResourceSets = append(l.cluster.ResourceSets, set)
	}
}

// usePayloads marks what a ClusterResourceSet names, whether or not it
// applies.
func (l *loader) usePayloads(o *object) {
	resources, _ := at(o.value, "spec.resources").([]any)
	for _, r := range resources {
		m, _ := r.(map[string]any)
		if found := l.lookup(stringField(m, "kind"), stringField(m, "name")); found != nil {
			found.used = true
		}
	}
}

// payload is the YAML of one ConfigMap or Secret: its keys in alphabetical
// order, and the objects of each key in the order Cluster API creates them.
func (l *loader) payload(o *object, path string, r addonsv1.ResourceRef) []string {
	found := l.lookup(r.Kind, r.Name)
	if found == nil {
		l.fail(o.problem(path+".name", fmt.Sprintf("there is no %s/%s in the input", r.Kind, r.Name), l.namesOf(r.Kind, r.Name)))
		return nil
	}
	data := map[string]string{}
	switch x := found.typed.(type) {
	case *corev1.ConfigMap:
		data = x.Data
	case *corev1.Secret:
		if x.Type != addonSecretType {
			l.fail(found.problem("type", fmt.Sprintf("a Secret of a ClusterResourceSet must be of the type %s", addonSecretType), "set type"))
			return nil
		}
		for name, value := range x.Data {
			data[name] = string(value)
		}
	default:
		return nil
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		documents = append(documents, l.pieces(found, name, data[name])...)
	}
	return documents
}

// piece is one object of a payload.
type piece struct {
	rank int
	yaml string
}

// pieces takes a payload apart. A mistake in it is told with the line of the
// payload's key: how the block is indented is not known here.
func (l *loader) pieces(o *object, name, content string) []string {
	t := text{lines: strings.Split(content, "\n")}
	for i := range t.lines {
		t.from = append(t.from, i+1)
	}
	path := "data." + name
	if _, ok := o.set[path]; !ok {
		path = "stringData." + name
	}
	documents, problems := split(t)
	for _, p := range problems {
		bad := o.problem("", fmt.Sprintf("line %d of the value: %s", p.Line, p.What), p.Fix)
		bad.Path, bad.Position = path, o.position(path)
		l.fail(bad)
	}
	var found []piece
	for _, d := range documents {
		for _, root := range listed(d.root) {
			raw, err := yaml.Marshal(root)
			if err != nil {
				continue
			}
			found = append(found, piece{rank: createRank(scalarField(root, "kind")), yaml: string(raw)})
		}
	}
	ordered.By(found, func(a, b piece) int { return a.rank - b.rank })
	out := make([]string, 0, len(found))
	for _, f := range found {
		out = append(out, f.yaml)
	}
	return out
}

// listed is the objects of a document: a JSON list holds several.
func listed(root *yaml.Node) []*yaml.Node {
	if root.Kind == yaml.SequenceNode {
		return root.Content
	}
	return []*yaml.Node{root}
}

func scalarField(n *yaml.Node, name string) string {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// createRank orders kinds as Cluster API creates them: what others need comes
// first, and everything that is not listed last, in its own order.
func createRank(kind string) int {
	first := []string{
		"Namespace", "CustomResourceDefinition", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "Secret",
		"ConfigMap", "ServiceAccount", "LimitRange", "Pod", "ReplicaSet", "Endpoint",
	}
	if i := slices.Index(first, kind); i >= 0 {
		return i
	}
	return len(first)
}
