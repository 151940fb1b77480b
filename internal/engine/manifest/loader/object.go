package loader

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// key identifies an object. Cluster API looks for references in one namespace only, so an
// empty namespace is the same as that of the Cluster.
type key struct {
	kind, namespace, name string
}

// identify determines the kind and name of a document, and keeps it if it is known.
func (l *loader) identify(d yamldoc.Document) {
	v := &yamldoc.Values{Doc: d, Lines: map[string]manifest.Position{}, Budget: yamldoc.MaxNodes}
	top := v.Value(d.Root, "")
	content, isMapping := top.(map[string]any)
	if !isMapping {
		l.unreadable = true
		what, fix := "the document is not an object", "it needs apiVersion, kind and metadata"
		if _, isList := top.([]any); isList {
			what, fix = "the document is a list", "write its items as documents of their own, or as items of an object of kind List"
		}
		l.fail(manifest.Problem{Position: d.At(d.Root.Line), What: what, Fix: fix})
		return
	}
	if l.notSeparated(d, v) {
		return
	}
	if items, ok := yamldoc.ItemsOf(d.Root); ok {
		for _, item := range items {
			below := d
			below.Root = item
			l.identify(below)
		}
		return
	}
	o := &manifest.Entry{Value: content, Lines: v.Lines, Texts: v.Texts}
	problems, warnings := len(l.problems), len(l.warnings)
	defer func() { l.attribute(o, slices.Concat(l.problems[problems:], l.warnings[warnings:])) }()
	miswritten := correctCase(o)
	o.Kind = manifest.StringField(content, "kind")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		o.Name, o.Namespace = manifest.StringField(metadata, "name"), manifest.StringField(metadata, "namespace")
	}
	if o.Kind != "" {
		l.found = append(l.found, strings.TrimSuffix(o.Title(), "/"))
	}
	if _, known := l.kinds[o.Kind]; !known {
		miswritten = nil
	}
	for _, name := range miswritten {
		right := partNamed(name)
		l.fail(manifest.Problem{
			Position: o.Position(right), Object: strings.TrimSuffix(o.Title(), "/"), Path: name,
			What: "the field does not exist", Fix: suggest.DidYouMean(name, []string{right}),
		})
	}
	for _, p := range v.Problems {
		p.Object = strings.TrimSuffix(o.Title(), "/")
		l.fail(p)
	}
	if l.isEncrypted(o, manifest.StringField(content, "apiVersion")) {
		return
	}
	if l.recognise(o, manifest.StringField(content, "apiVersion")) {
		l.addObject(o)
	}
}

// partNamed returns the part of an object that a name means, which may be written in another case; "" for none.
func partNamed(name string) string {
	for _, part := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if strings.EqualFold(part, name) {
			return part
		}
	}
	return ""
}

// correctCase corrects the names of the parts of an object that are written in another case, so that what follows from
// that is no problem. It returns the names as they are written.
func correctCase(o *manifest.Entry) (miswritten []string) {
	for _, name := range slices.Sorted(maps.Keys(o.Value)) {
		right := partNamed(name)
		if _, has := o.Value[right]; right == "" || right == name || has {
			continue
		}
		miswritten = append(miswritten, name)
		o.Value[right] = o.Value[name]
		delete(o.Value, name)
		for path, at := range maps.Clone(o.Lines) {
			if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
				o.Lines[right+rest] = at
				delete(o.Lines, path)
			}
		}
	}
	return miswritten
}

// notSeparated reports, as one problem, that a document consists of two objects or more.
func (l *loader) notSeparated(d yamldoc.Document, v *yamldoc.Values) bool {
	again := func(field string) int {
		return slices.IndexFunc(v.Problems, func(p manifest.Problem) bool { return p.Path == field && strings.HasPrefix(p.What, "the key ") })
	}
	first, second := again("apiVersion"), again("kind")
	if first < 0 || second < 0 {
		return false
	}
	l.unreadable = true
	line := min(v.Problems[first].Line, v.Problems[second].Line)
	at := manifest.Position{File: d.File, Line: line}
	l.fail(manifest.Problem{Position: at, What: "another object begins in the same document", Fix: "write a line --- before it"})
	return true
}

// isEncrypted sets an object aside that SOPS has encrypted, unless all of it can be read.
// https://getsops.io/docs/#encryption-format
func (l *loader) isEncrypted(o *manifest.Entry, apiVersion string) bool {
	if mac, _ := manifest.ValueAt(o.Value, "sops.mac").(string); mac == "" {
		return false
	}
	if (o.Kind == manifest.KindSecret || o.Kind == manifest.KindConfigMap) && apiVersion == "v1" {
		l.warn(o.Problem("sops", fmt.Sprintf("the %s is encrypted with SOPS and is ignored", o.Kind), decryptFix))
		l.setAside(o, "", false).encrypted = true
		return true
	}
	l.fail(o.Problem("sops", "the object is encrypted with SOPS", decryptFix))
	l.setAside(o, "", true)
	return true
}

// recognise checks apiVersion, kind and name, and reports whether to go on with the
// object.
func (l *loader) recognise(o *manifest.Entry, apiVersion string) bool {
	if o.Kind == "" {
		l.withoutKind(o, apiVersion)
		return false
	}
	gv, err := apischema.ParseGroupVersion(apiVersion)
	refuse := func(p manifest.Problem) bool {
		l.fail(p)
		l.setAside(o, gv.Group, true)
		return false
	}
	if err != nil || apiVersion == "" {
		return refuse(o.Problem("apiVersion", badVersion(apiVersion), cmp.Or(l.versionsOf(o.Kind), "write the group and the version of its API")))
	}
	k, known := l.kinds[o.Kind]
	switch {
	case !known:
		l.unknownKind(o, gv)
		return false
	case k.isOlder(gv):
		l.refuseOlder(o, gv)
		return false
	case k.group != gv.Group && gv.Group != "" && !manifest.IsClusterGroup(gv.Group):
		l.ignoreOther(o, gv) // the Cluster of another API, such as that of a database
		return false
	case k.group != gv.Group:
		return refuse(o.Problem("apiVersion", fmt.Sprintf("there is no kind %s in %s", o.Kind, gv), l.versionsOf(o.Kind)))
	case k.versions[gv.Version] == nil:
		return refuse(o.Problem("apiVersion", fmt.Sprintf("%s has no version %s", o.Kind, gv), l.versionsOf(o.Kind)))
	}
	o.Version = gv.Version
	if o.Name == "" {
		return refuse(l.withoutName(o))
	}
	if k.capa && gv.Version == manifest.VersionOld {
		l.warnOfUnserved(o, gv)
	}
	return true
}

// badVersion says what is wrong with a text that is no API version.
func badVersion(text string) string {
	if text == "" {
		return "the object has no apiVersion"
	}
	return fmt.Sprintf("%q is not an API version", text)
}

// isOlder reports whether the kind has had a version that is not supported.
func (k kind) isOlder(gv apischema.GroupVersion) bool {
	return k.group != "" && k.versions[gv.Version] == nil && (isConverted(gv) || isForgotten(gv))
}

// withoutName returns the problem of an object whose name is missing, or no text.
func (l *loader) withoutName(o *manifest.Entry) manifest.Problem {
	name := manifest.ValueAt(o.Value, "metadata.name")
	if name == nil || name == "" {
		return o.Problem("metadata.name", "the object has no name", "set metadata.name")
	}
	l.unreadable = true // references to the object cannot be followed
	return o.Problem("metadata.name", fmt.Sprintf("must be a string, not %s", typeName(name)), "put the value in quotes")
}

// warnOfUnserved warns, once for each file, of a version that Cluster API Provider AWS does not serve any more.
func (l *loader) warnOfUnserved(o *manifest.Entry, gv apischema.GroupVersion) {
	file := o.Position("").File
	if l.unserved[file] {
		return
	}
	l.unserved[file] = true
	l.warn(o.Problem("apiVersion", fmt.Sprintf("%s is no longer served by Cluster API Provider AWS", gv), "convert the file: "+convertCommand(o)))
}

// isConverted reports whether an object of this version is not supported, and "cluster convert" converts it.
func isConverted(gv apischema.GroupVersion) bool {
	return manifest.IsClusterGroup(gv.Group) && (gv.Version == "v1alpha3" || gv.Version == "v1alpha4")
}

// isForgotten reports whether an object is of a version that no program converts.
func isForgotten(gv apischema.GroupVersion) bool {
	return manifest.IsClusterGroup(gv.Group) && (gv.Version == "v1alpha1" || gv.Version == "v1alpha2")
}

// convertCommand returns the command that converts the file of an object.
func convertCommand(o *manifest.Entry) string {
	file := o.Position("").File
	if file == "" || file == "stdin" {
		file = "-"
	}
	return "clusterawsadm cluster convert -f " + file
}

// olderFile is a file with objects of versions that are not supported.
type olderFile struct {
	problem int    // index of its problem
	version string // of its first object
	more    int    // further objects
}

// refuseOlder refuses an object of a version that is not supported. All of a file are one problem.
func (l *loader) refuseOlder(o *manifest.Entry, gv apischema.GroupVersion) {
	l.setAside(o, gv.Group, true)
	l.consequence = true
	file := o.Position("").File
	if first := l.older[file]; first != nil {
		first.more++
		l.problems[first.problem].What = fmt.Sprintf("%s is not supported, nor %s in the file", first.version, moreVersions(first.more))
		return
	}
	l.older[file] = &olderFile{problem: len(l.problems), version: gv.String()}
	fix := "convert the file: " + convertCommand(o)
	if isForgotten(gv) {
		fix = "no program converts it: make a new manifest with clusterawsadm cluster generate"
	}
	l.fail(o.Problem("apiVersion", gv.String()+" is not supported", fix))
}

// moreVersions counts the further objects of versions that are not supported.
func moreVersions(n int) string {
	if n == 1 {
		return "is the API version of another object"
	}
	return fmt.Sprintf("are the API versions of %d more objects", n)
}

// withoutKind reports a document that does not say what it is. It may be any of the missing objects.
func (l *loader) withoutKind(o *manifest.Entry, apiVersion string) {
	l.unreadable = true
	if o.Value["STATUS"] != nil && o.Value["REVISION"] != nil {
		l.fail(
			manifest.Problem{
				Position: o.Position(""),
				What:     "this is what helm install or helm upgrade prints",
				Fix:      "use the output of helm template, or of helm get manifest",
			},
		)
		return
	}
	if apiVersion == "" {
		l.fail(manifest.Problem{Position: o.Position(""), What: "the document has no apiVersion and no kind", Fix: "add them, or remove the document"})
		return
	}
	l.fail(manifest.Problem{Position: o.Position("kind"), What: "the document has no kind", Fix: "add it"})
}

// versionsOf returns the fix for a wrong apiVersion.
func (l *loader) versionsOf(name string) string {
	k, known := l.kinds[name]
	if !known {
		return ""
	}
	var versions []string
	for _, v := range slices.Sorted(maps.Keys(k.versions)) {
		versions = append(versions, apischema.GroupVersion{Group: k.group, Version: v}.String())
	}
	slices.Reverse(versions)
	return "use " + strings.Join(versions, " or ")
}

// addObject adds an object, unless one with the same kind and name exists.
func (l *loader) addObject(o *manifest.Entry) {
	k := key{o.Kind, o.Namespace, o.Name}
	if l.kinds[o.Kind].clusterScoped {
		k.namespace = ""
	}
	if first, twice := l.byKey[k]; twice {
		l.fail(o.Problem("", "the object is duplicated, first at "+first.Position("").String(), "keep one of them"))
		return
	}
	l.byKey[k] = o
	l.objects = append(l.objects, o)
	l.cluster.Add(o)
}
