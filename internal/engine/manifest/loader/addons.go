package loader

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// collectPayloads fills the maps of ConfigMaps and Secrets. Of two with the same name, it
// takes the one in the namespace of the Cluster.
func (l *loader) collectPayloads() {
	home := ""
	if found := l.ofKind(manifest.KindCluster); len(found) > 0 {
		home = found[0].Namespace
	}
	for _, o := range l.objects {
		near := o.Namespace == "" || o.Namespace == home
		switch x := o.Typed.(type) {
		case *corev1.ConfigMap:
			if l.cluster.ConfigMaps[o.Name] == nil || near {
				l.cluster.ConfigMaps[o.Name] = x
			}
		case *corev1.Secret:
			if l.cluster.Secrets[o.Name] == nil || near {
				l.cluster.Secrets[o.Name] = x
			}
		}
	}
}

// resolveAddons finds the ClusterResourceSets whose selector matches the Cluster, and
// their objects.
func (l *loader) resolveAddons(c *clusterv1.Cluster) {
	for _, o := range l.ofKind(manifest.KindResourceSet) {
		s, ok := o.Typed.(*addonsv1.ClusterResourceSet)
		if !ok {
			o.Used = true
			l.usePayloads(o)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&s.Spec.ClusterSelector)
		l.usePayloads(o)
		if err != nil {
			continue
		}
		o.Used = true
		if !selector.Matches(labels.Set(c.Labels)) {
			l.warn(
				o.Problem(
					"spec.clusterSelector",
					fmt.Sprintf("does not match the labels of Cluster/%s, so none of its objects are applied", c.Name),
					"add the labels to the Cluster",
				),
			)
			continue
		}
		set := manifest.ResourceSet{
			Name:      s.Name,
			Object:    s,
			Origin:    l.cluster.Origin(o.Title(), ""),
			Reconcile: s.Spec.Strategy == string(addonsv1.ClusterResourceSetStrategyReconcile),
		}
		for i, r := range s.Spec.Resources {
			set.Documents = append(set.Documents, l.payload(o, fmt.Sprintf("spec.resources[%d]", i), r)...)
		}
		l.addSet(set)
	}
	for _, set := range l.files {
		l.addSet(set)
	}
}

// usePayloads marks the ConfigMaps and Secrets of a ClusterResourceSet as used, whether
// or not the set applies.
func (l *loader) usePayloads(o *manifest.Entry) {
	resources, _ := manifest.ValueAt(o.Value, "spec.resources").([]any)
	for _, r := range resources {
		m, _ := r.(map[string]any)
		if found := l.lookup(manifest.StringField(m, "kind"), manifest.StringField(m, "name")); found != nil {
			found.Used = true
		}
	}
}

// payload returns the objects in a ConfigMap or Secret: its keys in alphabetical order,
// and the objects of each key in the order in which Cluster API creates them.
func (l *loader) payload(o *manifest.Entry, path string, r addonsv1.ResourceRef) (all []*manifest.Document) {
	found := l.lookup(r.Kind, r.Name)
	if found == nil {
		l.missingObject(o, path+".name", r.Kind, r.Name)
		return nil
	}
	data := map[string]string{}
	switch x := found.Typed.(type) {
	case *corev1.ConfigMap:
		data = x.Data
	case *corev1.Secret:
		if x.Type != hooks.AddonSecretType {
			l.fail(found.Problem("type", fmt.Sprintf("a Secret of a ClusterResourceSet must be of the type %s", hooks.AddonSecretType), "set type"))
			return nil
		}
		for name, value := range x.Data {
			data[name] = string(value)
		}
	default:
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		all = append(all, l.parseEntry(found, name, data[name])...)
	}
	return all
}

// parseEntry parses a value of a ConfigMap or Secret. Problems have their lines in the file if the value is a block of text, and otherwise
// that of the key.
func (l *loader) parseEntry(o *manifest.Entry, name, content string) []*manifest.Document {
	path := "data." + name
	if _, ok := o.Lines[path]; !ok {
		path = "stringData." + name
	}
	isBlock := o.Texts[path] != nil && (o.Kind == manifest.KindConfigMap || !strings.HasPrefix(path, "data.")) // not one of base64
	place := func(line int) manifest.Position {
		if isBlock {
			return o.LineOf(path, line)
		}
		return o.Position(path)
	}
	at := func(report func(manifest.Problem)) func(manifest.Problem) {
		return func(p manifest.Problem) {
			if isBlock { // "first on line 4" too
				p.What = regex.Of(`\bon line \d+`).ReplaceAllStringFunc(p.What, func(text string) string {
					line, _ := strconv.Atoi(text[len("on line "):])
					return fmt.Sprintf("on line %d", place(line).Line)
				})
			} else {
				p.What = fmt.Sprintf("line %d of the value: %s", p.Line, p.What)
			}
			p.Object, p.Path, p.Position = o.Title(), path, place(p.Line)
			report(p)
		}
	}
	r := objectReader{report: at(l.fail), repeated: at(l.warn), at: place}
	all := r.read(input.Source{Data: []byte(content)})
	for _, d := range all {
		d.At = manifest.Problem{Position: d.Lines[""], Object: o.Title(), Path: path}
		d.Origin = d.Lines[""].String() + " " + o.Title() + " " + path
	}
	return all
}

// readFile reads a file of Kubernetes objects. It substitutes no ${VARIABLES}: in files
// for kubectl they are meant for other programs.
func (l *loader) readFile(s input.Source, network bool) {
	set := manifest.ResourceSet{Name: filepath.Base(s.Name), Origin: s.Name, Reconcile: true, Network: network}
	r := objectReader{report: l.fail, at: func(line int) manifest.Position { return manifest.Position{File: s.Name, Line: line} }}
	set.Documents = r.read(s)
	for _, d := range set.Documents {
		d.At = manifest.Problem{Position: d.Lines[""]}
		d.Origin = d.Lines[""].String()
	}
	if len(set.Documents) == 0 && len(l.problems) == 0 {
		l.fail(manifest.Problem{Position: manifest.Position{File: s.Name, Line: 1}, What: "the file contains no object", Fix: "use a file for kubectl apply"})
	}
	l.files = append(l.files, set)
}

// objectReader reads Kubernetes objects.
type objectReader struct {
	report   func(manifest.Problem)
	repeated func(manifest.Problem) // as in values
	at       func(line int) manifest.Position
}

// read reads all objects of a text and sorts them in the order in which Cluster API creates
// them.
func (r objectReader) read(s input.Source) (all []*manifest.Document) {
	t := yamldoc.Text{File: s.Name, Lines: strings.Split(strings.ReplaceAll(string(s.Data), "\r\n", "\n"), "\n")}
	for i := range t.Lines {
		t.From = append(t.From, i+1)
	}
	documents, problems := yamldoc.Split(t)
	for _, d := range documents {
		for _, root := range yamldoc.ListItems(d.Root) {
			v := &yamldoc.Values{Doc: d, Lines: map[string]manifest.Position{}, Budget: yamldoc.MaxNodes, Repeated: r.repeated}
			content, _ := v.Value(root, "").(map[string]any)
			problems = append(problems, v.Problems...)
			if what, fix := incomplete(content); what != "" {
				problems = append(problems, manifest.Problem{Position: d.At(root.Line), What: what, Fix: fix})
				continue
			}
			metadata, _ := content["metadata"].(map[string]any)
			for _, k := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
				delete(metadata, k) // from the cluster that the object was exported from
			}
			for path, at := range v.Lines {
				v.Lines[path] = r.at(at.Line)
			}
			all = append(all, &manifest.Document{Object: content, Line: v.Lines[""].Line, Lines: v.Lines})
		}
	}
	for _, p := range problems {
		r.report(p)
	}
	slices.SortStableFunc(all, func(a, b *manifest.Document) int { return createRank(a.Kind()) - createRank(b.Kind()) })
	return all
}

// incomplete describes a required field that an object lacks.
func incomplete(o map[string]any) (what, fix string) {
	d := &manifest.Document{Object: o}
	switch {
	case o == nil:
		return "the document is not an object", "it needs apiVersion, kind and metadata"
	case d.Kind() == "":
		return "the object has no kind", "set kind"
	case manifest.StringField(o, "apiVersion") == "":
		return d.Kind() + " has no apiVersion", "set apiVersion"
	case d.Metadata("name") == "":
		return d.Kind() + " has no name", "set metadata.name: objects that are applied repeatedly need a name"
	}
	return "", ""
}

// addSet adds a set to those that apply. Two sets may contain the same object if both are
// equal, or if neither updates existing objects.
func (l *loader) addSet(set manifest.ResourceSet) {
	l.dropRemoved(&set)
	taken := map[string]bool{}
	for _, s := range l.cluster.ResourceSets {
		taken[s.Name] = true
	}
	for n, name := 2, set.Name; taken[set.Name]; n++ {
		set.Name = fmt.Sprintf("%s-%d", name, n)
	}
	mine := map[string]*manifest.Document{}
	set.Documents = slices.DeleteFunc(set.Documents, func(d *manifest.Document) bool {
		first, twice := mine[d.Identity()]
		if !twice {
			mine[d.Identity()] = d
			first, twice = l.applied[d.Identity()]
			twice = twice && set.Reconcile
		} else if !set.Reconcile || reflect.DeepEqual(first.Object, d.Object) {
			return true
		}
		if twice && !reflect.DeepEqual(first.Object, d.Object) {
			p := d.At
			p.What, p.Fix = fmt.Sprintf("%s is also in %s, and differs", d.Title(), first.Origin), "keep one of them: each run would apply both"
			l.fail(p)
		}
		return false
	})
	for _, d := range set.Documents {
		if set.Reconcile {
			l.applied[d.Identity()] = d
		}
	}
	l.cluster.ResourceSets = append(l.cluster.ResourceSets, set)
}

// createRank orders kinds as Cluster API does: objects that others need come first, and
// kinds that are not listed last, in their own order.
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
