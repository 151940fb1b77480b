package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// InAnnotations begins the path of an annotation.
const InAnnotations = "metadata.annotations."

// IsSet reports whether the manifest sets a field. Defaults do not count.
func (o *Entry) IsSet(path string) bool {
	_, set := o.Lines[path]
	return set && o.ValueAt(path) != nil
}

// IsZero reports whether a value is empty: "", false, 0, null, or a list or mapping that contains only empty values. Charts write
// such values for settings that the user has not made.
func IsZero(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, below := range v {
			if !IsZero(below) {
				return false
			}
		}
		return true
	default:
		return v == nil
	}
}

// Entry is one object of the input, from parsing to its typed value.
type Entry struct {
	Kind, Version, Name string
	Namespace           string // as written
	Titled              string // the title of the template, if this machine stands for a template
	Value               map[string]any
	Lines               map[string]Position // position of each path that the manifest sets; the root is ""
	Texts               map[string][]int    // of a field with a block of text: the line in the file of each line of the text
	Typed               any                 // nil until admitted, and if invalid
	Used                bool                // another object refers to it
	Foreign             bool                // from Options.Identities
}

// Title identifies the object in problems: "Kind/name".
func (o *Entry) Title() string { return cmp.Or(o.Titled, o.Kind+"/"+o.Name) }

// Position returns the line of a path, or of its nearest parent that is set.
func (o *Entry) Position(path string) Position {
	for p := path; p != ""; p = Parent(p) {
		if at, ok := o.Lines[p]; ok {
			return at
		}
	}
	return o.Lines[""]
}

// LineOf returns the position of a line, from 1, of the text that is the value of a path: the line of the path if it is no block of text, or an
// unknown one.
func (o *Entry) LineOf(path string, line int) Position {
	at := o.Position(path)
	if lines := o.Texts[path]; line > 0 && line <= len(lines) {
		at.Line = lines[line-1]
	}
	return at
}

// ProblemIn returns a problem at a line of the text that is the value of a path.
func (o *Entry) ProblemIn(path string, line int, what, fix string) Problem {
	p := o.Problem(path, what, fix)
	p.Position = o.LineOf(p.Path, line)
	return p
}

// Parent removes the last element of a path.
func Parent(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// Problem returns a problem of this object.
func (o *Entry) Problem(path, what, fix string) Problem {
	path = o.correctPath(path)
	return Problem{Position: o.Position(path), Object: o.Title(), Path: path, What: what, Fix: fix}
}

// correctPath corrects a path: some checks of upstream omit its beginning, and some
// fields have other names in older API versions.
func (o *Entry) correctPath(path string) string {
	if path == "<nil>" {
		return ""
	}
	for _, m := range correctedPaths(o.Kind) {
		path = strings.Replace(path, m[0], m[1], 1)
	}
	path = o.OldName(path)
	_, known := o.Lines[path]
	if path == "" || known || strings.HasPrefix(path, "metadata") {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "spec."); ok && o.isTemplate() && !strings.HasPrefix(rest, "template.") {
		return "spec.template.spec." + rest
	}
	if _, hasSpec := o.Lines["spec"]; !hasSpec || strings.HasPrefix(path, "spec") {
		return path
	}
	return o.completePath(path)
}

// isTemplate reports whether the machine spec is inside a template.
func (o *Entry) isTemplate() bool {
	return o.Kind == KindAWSMachineTemplate || o.Titled != ""
}

// completePath returns the full path that ends with the given one.
func (o *Entry) completePath(path string) string {
	for _, known := range slices.Sorted(maps.Keys(o.Lines)) {
		if strings.HasSuffix(known, "."+path) {
			return known
		}
	}
	return "spec." + path
}

// correctedPaths lists wrong paths in errors of upstream's checks, and the correct ones.
func correctedPaths(kind string) [][2]string {
	if kind != KindManagedPlane {
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
	case KindControlPlane:
		return [][2]string{
			{"spec.machineTemplate.spec.infrastructureRef", "spec.machineTemplate.infrastructureRef"},
			{"spec.machineTemplate.spec.readinessGates", "spec.machineTemplate.readinessGates"},
			{"spec.rollout.strategy", "spec.rolloutStrategy"},
			{"spec.rollout.before", "spec.rolloutBefore"},
			{"spec.rollout.after", "spec.rolloutAfter"},
			{"spec.remediation", "spec.remediationStrategy"},
			{"spec.machineNaming", "spec.machineNamingStrategy"},
		}
	case KindDeployment:
		return [][2]string{
			{"spec.rollout.strategy", "spec.strategy"},
			{"spec.remediation", "spec.strategy.remediation"},
			{"spec.machineNaming", "spec.machineNamingStrategy"},
		}
	case KindHealthCheck:
		return [][2]string{
			{"spec.checks.nodeStartupTimeoutSeconds", "spec.nodeStartupTimeout"},
			{"spec.checks.unhealthyNodeConditions", "spec.unhealthyConditions"},
			{"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo", "spec.maxUnhealthy"},
			{"spec.remediation.triggerIf.unhealthyInRange", "spec.unhealthyRange"},
			{"spec.remediation.templateRef", "spec.remediationTemplate"},
		}
	default:
		return nil
	}
}

// OldName returns the path in the API version of the manifest.
func (o *Entry) OldName(path string) string {
	if o.Version != VersionOld {
		return path
	}
	for _, m := range olderPaths(o.Kind) {
		if rest, ok := strings.CutPrefix(path, m[0]); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return m[1] + rest
		}
	}
	return path
}

// StringField returns a string field of an object, or "" if it is missing or not a
// string.
func StringField(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func (o *Entry) whereKey(path string) string {
	if path == "" {
		return o.Title()
	}
	return o.Title() + " " + path
}

// ValueAt returns the value that the manifest sets at a path. Names of annotations may
// contain dots.
func (o *Entry) ValueAt(path string) any {
	if name, ok := strings.CutPrefix(path, InAnnotations); ok {
		annotations, _ := ValueAt(o.Value, "metadata.annotations").(map[string]any)
		return annotations[name]
	}
	return ValueAt(o.Value, path)
}

// ValueAt returns the value at a path of an object, or nil.
func ValueAt(value any, path string) any {
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
