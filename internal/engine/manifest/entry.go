package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// isSet reports whether the manifest sets a field. Defaults do not count.
func (o *object) isSet(path string) bool {
	_, set := o.set[path]
	return set && o.valueAt(path) != nil
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

// stringField returns a string field of an object, or "" if it is missing or not a
// string.
func stringField(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func (o *object) whereKey(path string) string {
	if path == "" {
		return o.title()
	}
	return o.title() + " " + path
}

// valueAt returns the value that the manifest sets at a path. Names of annotations may
// contain dots.
func (o *object) valueAt(path string) any {
	if name, ok := strings.CutPrefix(path, annotation); ok {
		annotations, _ := valueAt(o.value, "metadata.annotations").(map[string]any)
		return annotations[name]
	}
	return valueAt(o.value, path)
}

// valueAt returns the value at a path of an object, or nil.
func valueAt(value any, path string) any {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' }) {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(strings.TrimSuffix(step, "]"))
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
