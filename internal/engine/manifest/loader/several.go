package loader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Clusters returns the Clusters of an input, in its order, as input.LoadOptions.Cluster takes them:
// NAME, or NAMESPACE/NAME if there is another one of that name. It is empty if no Cluster can be read.
func Clusters(sources []input.Source, o input.LoadOptions) []string {
	l := newLoader(o)
	l.read(sources)
	l.placeClusters()
	found := l.ofKind(manifest.KindCluster)
	names := make([]string, 0, len(found))
	for _, c := range found {
		names = append(names, chosenAs(c, found))
	}
	return names
}

// chosenAs returns the shortest text that chooses a Cluster among others.
func chosenAs(c *manifest.Entry, among []*manifest.Entry) string {
	same := func(o *manifest.Entry) bool { return o != c && o.Name == c.Name }
	if slices.ContainsFunc(among, same) {
		return homeOf(c) + "/" + c.Name
	}
	return c.Name
}

// homeOf returns the namespace of an object. It is "default" if the manifest has none, as with kubectl apply.
func homeOf(o *manifest.Entry) string { return cmp.Or(o.Namespace, metav1.NamespaceDefault) }

// choose keeps the objects of the Cluster that the options name, those that it shares with others, and
// those that belong to no Cluster. Problems of the other objects are problems of the other Clusters.
func (l *loader) choose() {
	clusters := l.ofKind(manifest.KindCluster)
	if l.options.Cluster == "" {
		return
	}
	i := slices.IndexFunc(clusters, func(c *manifest.Entry) bool {
		return l.options.Cluster == c.Name || l.options.Cluster == homeOf(c)+"/"+c.Name
	})
	if i < 0 {
		l.noSuchCluster(clusters)
		return
	}
	if len(clusters) == 1 {
		return
	}
	owned := make([]map[*manifest.Entry]bool, len(clusters))
	for j, c := range clusters {
		owned[j] = l.ownedBy(c)
	}
	l.removeOthers(func(o *manifest.Entry) bool {
		elsewhere := func(set map[*manifest.Entry]bool) bool { return set[o] }
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
func (l *loader) noSuchCluster(clusters []*manifest.Entry) {
	if len(clusters) == 0 {
		return // which is reported in any case
	}
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, chosenAs(c, clusters))
	}
	l.fail(clusters[0].Problem("metadata.name", fmt.Sprintf("there is no Cluster %s in the input", l.options.Cluster), "it has "+strings.Join(names, ", ")))
	l.consequence, l.unexpanded = true, true
}

// removeOthers removes objects from the input, with their problems and warnings.
func (l *loader) removeOthers(other func(*manifest.Entry) bool) {
	l.objects = slices.DeleteFunc(l.objects, other)
	for k, o := range l.byKey {
		if other(o) {
			delete(l.byKey, k)
		}
	}
	l.asides = slices.DeleteFunc(l.asides, func(a *aside) bool { return other(a.Entry) })
	about := func(p manifest.Problem) bool { o := l.about[p]; return o != nil && other(o) }
	l.problems = slices.DeleteFunc(l.problems, about)
	l.warnings = slices.DeleteFunc(l.warnings, about)
	l.consequence = l.consequence && len(l.problems) > 0
	// Two objects of different namespaces may have one title.
	l.cluster.Forget()
	for _, o := range l.objects {
		l.cluster.Add(o)
	}
}

// attribute records that problems are those of an object.
func (l *loader) attribute(o *manifest.Entry, problems []manifest.Problem) {
	for _, p := range problems {
		l.about[p] = o
	}
}

// ownedBy returns the objects that belong to a Cluster: those that name it, those that it needs, and what
// these need.
func (l *loader) ownedBy(c *manifest.Entry) map[*manifest.Entry]bool {
	all := slices.Clone(l.objects)
	for _, a := range l.asides {
		all = append(all, a.Entry)
	}
	owned := map[*manifest.Entry]bool{c: true}
	pending := []*manifest.Entry{c}
	add := func(o *manifest.Entry) {
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
func names(o, c *manifest.Entry) bool {
	if o.Namespace != "" && homeOf(o) != homeOf(c) || o.Kind == manifest.KindCluster {
		return false
	}
	switch o.Kind {
	case manifest.KindResourceSet, manifest.KindHelmChart:
		return selects(o, c)
	case manifest.KindSecret:
		rest, ok := strings.CutPrefix(o.Name, c.Name+"-")
		if ok && slices.Contains([]string{"ca", "etcd", "sa", "proxy", "kubeconfig"}, rest) {
			return true
		}
	}
	return clusterNameOf(o) == c.Name
}

// clusterNameOf returns the name of the Cluster that an object names; "" for none.
func clusterNameOf(o *manifest.Entry) string {
	name, _ := manifest.ValueAt(o.Value, "spec.clusterName").(string)
	if name != "" {
		return name
	}
	own, _ := manifest.ValueAt(o.Value, "metadata.labels").(map[string]any)
	return manifest.StringField(own, clusterv1.ClusterNameLabel)
}

// selects reports whether the selector of a ClusterResourceSet or HelmChartProxy matches the labels of a Cluster.
func selects(set, c *manifest.Entry) bool {
	raw, _ := manifest.ValueAt(set.Value, "spec.clusterSelector").(map[string]any)
	var wanted metav1.LabelSelector
	if decodeInto(raw, &wanted) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&wanted)
	if err != nil {
		return false
	}
	have := labels.Set{}
	marks, _ := manifest.ValueAt(c.Value, "metadata.labels").(map[string]any)
	for name, value := range marks {
		have[name], _ = value.(string)
	}
	return selector.Matches(have)
}

// needs reports whether an object refers to another one: by kind and name, or, where Cluster API has
// fields with the name alone, by name.
func (l *loader) needs(from, to *manifest.Entry) bool {
	if to.Kind == manifest.KindCluster || to.Name == "" {
		return false
	}
	_, known := l.kinds[to.Kind] // a kind that is misspelt is not that of the reference
	byName := !known || slices.Contains([]string{manifest.KindSecret, manifest.KindConfigMap, manifest.KindClusterClass}, to.Kind)
	anywhere := l.kinds[to.Kind].clusterScoped || to.Kind == manifest.KindSecret || to.Kind == manifest.KindClusterClass
	if !anywhere && from.Namespace != "" && to.Namespace != "" && from.Namespace != to.Namespace {
		return false
	}
	return mentions(from.Value, to.Kind, to.Name) || byName && hasText(from.Value, to.Name)
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
