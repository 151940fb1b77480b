package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// key identifies an object. Cluster API looks for references in one namespace only, so an
// empty namespace is the same as that of the Cluster.
type key struct {
	kind, namespace, name string
}

// object is one object of the input, from parsing to its typed value.
type object struct {
	kind, version, name string
	namespace           string // as written
	titled              string // the title of the template, if this machine stands for a template
	value               map[string]any
	set                 map[string]Position // position of each path that the manifest sets; the root is ""
	typed               any                 // nil until admitted, and if invalid
	used                bool                // another object refers to it
	foreign             bool                // from Options.Identities
}

// title identifies the object in problems: "Kind/name".
func (o *object) title() string { return cmp.Or(o.titled, o.kind+"/"+o.name) }

// position returns the line of a path, or of its nearest parent that is set.
func (o *object) position(path string) Position {
	for p := path; p != ""; p = parent(p) {
		if at, ok := o.set[p]; ok {
			return at
		}
	}
	return o.set[""]
}

// parent removes the last element of a path.
func parent(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// problem returns a problem of this object.
func (o *object) problem(path, what, fix string) Problem {
	path = o.correctPath(path)
	return Problem{Position: o.position(path), Object: o.title(), Path: path, What: what, Fix: fix}
}

// correctPath corrects a path: some checks of upstream omit its beginning, and some
// fields have other names in older API versions.
func (o *object) correctPath(path string) string {
	if path == "<nil>" {
		return ""
	}
	for _, m := range correctedPaths(o.kind) {
		path = strings.Replace(path, m[0], m[1], 1)
	}
	path = o.oldName(path)
	_, known := o.set[path]
	if path == "" || known || strings.HasPrefix(path, "metadata") {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "spec."); ok && o.isTemplate() && !strings.HasPrefix(rest, "template.") {
		return "spec.template.spec." + rest
	}
	if _, hasSpec := o.set["spec"]; !hasSpec || strings.HasPrefix(path, "spec") {
		return path
	}
	return o.completePath(path)
}

// isTemplate reports whether the machine spec is inside a template.
func (o *object) isTemplate() bool {
	return o.kind == kindAWSMachineTemplate || o.titled != ""
}

// completePath returns the full path that ends with the given one.
func (o *object) completePath(path string) string {
	for _, known := range slices.Sorted(maps.Keys(o.set)) {
		if strings.HasSuffix(known, "."+path) {
			return known
		}
	}
	return "spec." + path
}

// correctedPaths lists wrong paths in errors of upstream's checks, and the correct ones.
func correctedPaths(kind string) [][2]string {
	if kind != kindManagedPlane {
		return nil
	}
	return [][2]string{
		{"spec.networkSpec.vpc.privateDNSHostnameTypeOnLaunch", "spec.network.vpc.privateDnsHostnameTypeOnLaunch"},
		{"spec.vpc.secondaryCidrBlock", "spec.secondaryCidrBlock"},
	}
}

// olderPaths lists fields of the newest API version and their paths in the older one, by
// kind, the more specific first.
func olderPaths(kind string) [][2]string {
	switch kind {
	case kindControlPlane:
		return [][2]string{
			{"spec.machineTemplate.spec.infrastructureRef", "spec.machineTemplate.infrastructureRef"},
			{"spec.machineTemplate.spec.readinessGates", "spec.machineTemplate.readinessGates"},
			{"spec.rollout.strategy", "spec.rolloutStrategy"},
			{"spec.rollout.before", "spec.rolloutBefore"},
			{"spec.remediation", "spec.remediationStrategy"},
			{"spec.machineNaming", "spec.machineNamingStrategy"},
		}
	case kindDeployment:
		return [][2]string{
			{"spec.rollout.strategy", "spec.strategy"},
			{"spec.remediation", "spec.strategy.remediation"},
			{"spec.machineNaming", "spec.machineNamingStrategy"},
		}
	default:
		return nil
	}
}

// oldName returns the path in the API version of the manifest.
func (o *object) oldName(path string) string {
	if o.version != versionOld {
		return path
	}
	for _, m := range olderPaths(o.kind) {
		if rest, ok := strings.CutPrefix(path, m[0]); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return m[1] + rest
		}
	}
	return path
}

// identify determines the kind and name of a document, and keeps it if it is known.
func (l *loader) identify(d document) {
	v := &values{doc: d, lines: map[string]Position{}, budget: maxNodes}
	top := v.value(d.root, "")
	content, isMapping := top.(map[string]any)
	if !isMapping {
		l.unreadable = true
		l.fail(Problem{Position: d.at(d.root.Line), What: "the document is not an object", Fix: "it needs apiVersion, kind and metadata"})
		return
	}
	if items, ok := itemsOf(d.root); ok {
		for _, item := range items {
			l.identify(document{file: d.file, from: d.from, root: item})
		}
		return
	}
	o := &object{kind: stringField(content, "kind"), value: content, set: v.lines}
	problems, warnings := len(l.problems), len(l.warnings)
	defer func() { l.attribute(o, slices.Concat(l.problems[problems:], l.warnings[warnings:])) }()
	if metadata, ok := content["metadata"].(map[string]any); ok {
		o.name, o.namespace = stringField(metadata, "name"), stringField(metadata, "namespace")
	}
	for _, p := range v.problems {
		p.Object = strings.TrimSuffix(o.title(), "/")
		l.fail(p)
	}
	if l.isEncrypted(o, stringField(content, "apiVersion")) {
		return
	}
	if l.recognise(o, stringField(content, "apiVersion")) {
		l.addObject(o)
	}
}

// isEncrypted sets an object aside that SOPS has encrypted, unless all of it can be read.
// https://getsops.io/docs/#encryption-format
func (l *loader) isEncrypted(o *object, apiVersion string) bool {
	if mac, _ := valueAt(o.value, "sops.mac").(string); mac == "" {
		return false
	}
	if (o.kind == kindSecret || o.kind == kindConfigMap) && apiVersion == "v1" {
		l.warn(o.problem("sops", fmt.Sprintf("the %s is encrypted with SOPS and is ignored", o.kind), decryptFix))
		l.setAside(o, "", false).encrypted = true
		return true
	}
	l.fail(o.problem("sops", "the object is encrypted with SOPS", decryptFix))
	l.setAside(o, "", true)
	return true
}

// stringField returns a string field of an object, or "" if it is missing or not a
// string.
func stringField(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// recognise checks apiVersion, kind and name, and reports whether to go on with the
// object.
func (l *loader) recognise(o *object, apiVersion string) bool {
	if o.kind == "" {
		l.withoutKind(o, apiVersion)
		return false
	}
	gv, err := apischema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion == "" {
		l.fail(o.problem("apiVersion", fmt.Sprintf("%q is not an API version", apiVersion), l.versionsOf(o.kind)))
		l.setAside(o, "", true)
		return false
	}
	k, known := l.kinds[o.kind]
	refuse := func(p Problem) bool {
		l.fail(p)
		l.setAside(o, gv.Group, true)
		return false
	}
	switch {
	case !known:
		l.unknownKind(o, gv)
		return false
	case k.group != "" && isConverted(gv):
		l.refuseOlder(o, gv)
		return false
	case k.group != gv.Group && gv.Group != "" && !isClusterGroup(gv.Group):
		l.ignoreOther(o, gv) // the Cluster of another API, such as that of a database
		return false
	case k.group != gv.Group:
		return refuse(o.problem("apiVersion", fmt.Sprintf("there is no kind %s in %s", o.kind, gv), l.versionsOf(o.kind)))
	case k.versions[gv.Version] == nil:
		return refuse(o.problem("apiVersion", fmt.Sprintf("%s has no version %s", o.kind, gv), l.versionsOf(o.kind)))
	}
	o.version = gv.Version
	if o.name == "" {
		return refuse(o.problem("metadata.name", "the object has no name", "set metadata.name"))
	}
	if k.capa && gv.Version == versionOld {
		l.warn(o.problem("apiVersion", fmt.Sprintf("%s is no longer served by Cluster API Provider AWS", gv), "convert the file: "+convertCommand(o)))
	}
	return true
}

// isConverted reports whether an object of this version is not supported, and "cluster convert" converts it.
func isConverted(gv apischema.GroupVersion) bool {
	return isClusterGroup(gv.Group) && (gv.Version == "v1alpha3" || gv.Version == "v1alpha4")
}

// convertCommand returns the command that converts the file of an object.
func convertCommand(o *object) string {
	file := o.position("").File
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
func (l *loader) refuseOlder(o *object, gv apischema.GroupVersion) {
	l.setAside(o, gv.Group, true)
	l.consequence = true
	file := o.position("").File
	if first := l.older[file]; first != nil {
		first.more++
		l.problems[first.problem].What = fmt.Sprintf("%s is not supported, nor are the API versions of %d more objects in the file", first.version, first.more)
		return
	}
	l.older[file] = &olderFile{problem: len(l.problems), version: gv.String()}
	l.fail(o.problem("apiVersion", gv.String()+" is not supported", "convert the file: "+convertCommand(o)))
}

// withoutKind reports a document that does not say what it is. It may be any of the missing objects.
func (l *loader) withoutKind(o *object, apiVersion string) {
	l.unreadable = true
	if apiVersion == "" {
		l.fail(Problem{Position: o.position(""), What: "the document has no apiVersion and no kind", Fix: "add them, or remove the document"})
		return
	}
	l.fail(Problem{Position: o.position("kind"), What: "the document has no kind", Fix: "add it"})
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
func (l *loader) addObject(o *object) {
	k := key{o.kind, o.namespace, o.name}
	if l.kinds[o.kind].clusterScoped {
		k.namespace = ""
	}
	if first, twice := l.byKey[k]; twice {
		l.fail(o.problem("", "the object is duplicated, first at "+first.position("").String(), "keep one of them"))
		return
	}
	l.byKey[k] = o
	l.objects = append(l.objects, o)
	l.locate(o)
}

// locate records the positions and the texts of the fields of an object.
func (l *loader) locate(o *object) {
	l.keepScalars(o)
	for path, at := range o.set {
		l.cluster.where[o.whereKey(path)] = at
	}
	for _, m := range olderPaths(o.kind) {
		for path, at := range o.set {
			if rest, ok := strings.CutPrefix(path, m[1]); ok && o.version == versionOld {
				l.cluster.where[o.whereKey(m[0]+rest)] = at
			}
		}
	}
}

func (o *object) whereKey(path string) string {
	if path == "" {
		return o.title()
	}
	return o.title() + " " + path
}

// At returns the position of a field, or of its nearest parent that is set. The object is
// "Kind/name". For an object that is not in the input, At returns the zero Position.
func (c *Cluster) At(object, path string) Position {
	for p := path; p != ""; p = parent(p) {
		if at, ok := c.where[object+" "+p]; ok {
			return at
		}
	}
	return c.where[object]
}

// Sets reports whether the manifest sets a field. Defaults do not count.
func (c *Cluster) Sets(object, path string) bool {
	_, set := c.where[object+" "+path]
	return set
}

// Origin returns a position and a field for plans and errors: "cluster.yaml:31
// AWSCluster/prod spec.network.vpc".
func (c *Cluster) Origin(object, path string) string {
	words := []string{object}
	if at := c.At(object, path); at.File != "" {
		words = []string{at.String(), object}
	}
	if path != "" {
		words = append(words, path)
	}
	return strings.Join(words, " ")
}
