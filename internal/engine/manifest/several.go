package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Clusters returns the Clusters of an input, in its order, as input.LoadOptions.Cluster takes them:
// NAME, or NAMESPACE/NAME if there is another one of that name. It is empty if no Cluster can be read.
func Clusters(sources []input.Source, o input.LoadOptions) []string {
	l := newLoader(o)
	l.read(sources)
	found := l.ofKind(kindCluster)
	names := make([]string, 0, len(found))
	for _, c := range found {
		names = append(names, chosenAs(c, found))
	}
	return names
}

// chosenAs returns the shortest text that chooses a Cluster among others.
func chosenAs(c *object, among []*object) string {
	same := func(o *object) bool { return o != c && o.name == c.name }
	if slices.ContainsFunc(among, same) {
		return homeOf(c) + "/" + c.name
	}
	return c.name
}

// homeOf returns the namespace of an object. It is "default" if the manifest has none, as with kubectl apply.
func homeOf(o *object) string { return cmp.Or(o.namespace, metav1.NamespaceDefault) }

// choose keeps the objects of the Cluster that the options name, those that it shares with others, and
// those that belong to no Cluster. Problems of the other objects are problems of the other Clusters.
func (l *loader) choose() {
	clusters := l.ofKind(kindCluster)
	if l.options.Cluster == "" {
		return
	}
	i := slices.IndexFunc(clusters, func(c *object) bool {
		return l.options.Cluster == c.name || l.options.Cluster == homeOf(c)+"/"+c.name
	})
	if i < 0 {
		l.noSuchCluster(clusters)
		return
	}
	if len(clusters) == 1 {
		return
	}
	owned := make([]map[*object]bool, len(clusters))
	for j, c := range clusters {
		owned[j] = l.ownedBy(c)
	}
	l.removeOthers(func(o *object) bool {
		elsewhere := func(set map[*object]bool) bool { return set[o] }
		switch {
		case owned[i][o]:
			return false
		case slices.ContainsFunc(owned, elsewhere):
			return true
		}
		return i > 0 && clusterNameOf(o) != "" // of no Cluster of the input: the first one has the problem
	})
}

// noSuchCluster reports that the input lacks the chosen Cluster.
func (l *loader) noSuchCluster(clusters []*object) {
	if len(clusters) == 0 {
		return // which is reported in any case
	}
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, chosenAs(c, clusters))
	}
	l.fail(clusters[0].problem("metadata.name", fmt.Sprintf("there is no Cluster %s in the input", l.options.Cluster), "it has "+strings.Join(names, ", ")))
	l.consequence, l.unexpanded = true, true
}

// removeOthers removes objects from the input, with their problems and warnings.
func (l *loader) removeOthers(other func(*object) bool) {
	l.objects = slices.DeleteFunc(l.objects, other)
	for k, o := range l.byKey {
		if other(o) {
			delete(l.byKey, k)
		}
	}
	l.asides = slices.DeleteFunc(l.asides, func(a *aside) bool { return other(a.object) })
	about := func(p Problem) bool { o := l.about[p]; return o != nil && other(o) }
	l.problems = slices.DeleteFunc(l.problems, about)
	l.warnings = slices.DeleteFunc(l.warnings, about)
	l.consequence = l.consequence && len(l.problems) > 0
	// Two objects of different namespaces may have one title.
	l.cluster.forget()
	for _, o := range l.objects {
		l.cluster.add(o)
	}
}

// attribute records that problems are those of an object.
func (l *loader) attribute(o *object, problems []Problem) {
	for _, p := range problems {
		l.about[p] = o
	}
}

// ownedBy returns the objects that belong to a Cluster: those that name it, those that it needs, and what
// these need.
func (l *loader) ownedBy(c *object) map[*object]bool {
	all := slices.Clone(l.objects)
	for _, a := range l.asides {
		all = append(all, a.object)
	}
	owned := map[*object]bool{c: true}
	pending := []*object{c}
	add := func(o *object) {
		if !owned[o] {
			owned[o] = true
			pending = append(pending, o)
		}
	}
	for _, o := range all {
		if names(o, c) {
			add(o)
		}
	}
	for len(pending) > 0 {
		from := pending[0]
		pending = pending[1:]
		for _, o := range all {
			if !owned[o] && l.needs(from, o) {
				add(o)
			}
		}
	}
	return owned
}

// names reports whether an object belongs to a Cluster by itself: it names the Cluster, or selects it, or
// is a Secret of which Cluster API knows the name, such as "demo-ca".
func names(o, c *object) bool {
	if o.namespace != "" && homeOf(o) != homeOf(c) || o.kind == kindCluster {
		return false
	}
	switch o.kind {
	case kindResourceSet, kindHelmChart:
		return selects(o, c)
	case kindSecret:
		rest, ok := strings.CutPrefix(o.name, c.name+"-")
		if ok && slices.Contains([]string{"ca", "etcd", "sa", "proxy", "kubeconfig"}, rest) {
			return true
		}
	}
	return clusterNameOf(o) == c.name
}

// clusterNameOf returns the name of the Cluster that an object names; "" for none.
func clusterNameOf(o *object) string {
	name, _ := valueAt(o.value, "spec.clusterName").(string)
	if name != "" {
		return name
	}
	own, _ := valueAt(o.value, "metadata.labels").(map[string]any)
	return stringField(own, clusterv1.ClusterNameLabel)
}

// selects reports whether the selector of a ClusterResourceSet or HelmChartProxy matches the labels of a Cluster.
func selects(set, c *object) bool {
	raw, _ := valueAt(set.value, "spec.clusterSelector").(map[string]any)
	var wanted metav1.LabelSelector
	if decodeInto(raw, &wanted) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&wanted)
	if err != nil {
		return false
	}
	have := labels.Set{}
	marks, _ := valueAt(c.value, "metadata.labels").(map[string]any)
	for name, value := range marks {
		have[name], _ = value.(string)
	}
	return selector.Matches(have)
}

// needs reports whether an object refers to another one: by kind and name, or, where Cluster API has
// fields with the name alone, by name.
func (l *loader) needs(from, to *object) bool {
	if to.kind == kindCluster || to.name == "" {
		return false
	}
	_, known := l.kinds[to.kind] // a kind that is misspelt is not that of the reference
	byName := !known || slices.Contains([]string{kindSecret, kindConfigMap, kindClusterClass}, to.kind)
	anywhere := l.kinds[to.kind].clusterScoped || to.kind == kindSecret || to.kind == kindClusterClass
	if !anywhere && from.namespace != "" && to.namespace != "" && from.namespace != to.namespace {
		return false
	}
	return mentions(from.value, to.kind, to.name) || byName && hasText(from.value, to.name)
}

// hasText reports whether a value contains a text as one of its fields or items.
func hasText(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case map[string]any:
		for _, below := range v {
			if hasText(below, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(below any) bool { return hasText(below, text) })
	}
	return false
}
