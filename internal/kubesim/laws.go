package kubesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// law is a rule of the API server about the values of a field.
type law struct {
	kinds string // "Deployment Job"; a kind and its group if another group has the kind, too
	path  string // of the field; "[]" stands for each item of a list
	// wrong says what is wrong with a value; "" for nothing. The value is nil if the field is not set. in is the mapping that has the field.
	wrong func(v any, in Object) string
}

// brokenLaw returns the first rule that an object breaks, as the API server says it; "" for none.
func brokenLaw(o Object) string {
	of := text(o, "kind")
	if why := badFinalizer(o); why != "" {
		return why
	}
	if why := classTwice(o); why != "" {
		return why
	}
	for _, l := range laws() {
		if slices.Contains(strings.Fields(l.kinds), of) {
			if why := broken(o, l.path, "", l.wrong); why != "" {
				return why
			}
		}
	}
	if spec, at := podOf(o); spec != nil {
		return brokenPodLaw(o, spec, at)
	}
	return ""
}

// brokenPodLaw returns the first rule that the pods of an object break.
func brokenPodLaw(o, spec Object, at string) string {
	all := slices.Concat(podLaws(), settingLaws(), placementLaws(), volumeLaws())
	if text(o, "kind") == "Pod" {
		all = append(all, barePod()...)
	}
	for _, l := range all {
		if text(o, "kind") == "StatefulSet" && (l.path == "hostname" || l.path == "subdomain") {
			continue // it is not checked there
		}
		if why := broken(spec, l.path, at+".", l.wrong); why != "" {
			return why
		}
	}
	for _, list := range []string{"initContainers", "containers"} {
		rules := containerLaws(spec, o)
		if list == "initContainers" {
			rules = append(rules, beginsOnly()...)
		}
		for i, c := range listed(spec[list]) {
			for _, l := range rules {
				if why := broken(c, l.path, fmt.Sprintf("%s.%s[%d].", at, list, i), l.wrong); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// badFinalizer returns what is wrong with the finalizers of an object (ValidateFinalizerName of pkg/apis/core/validation).
func badFinalizer(o Object) string {
	names, _ := value(o, "metadata", "finalizers").([]any)
	for i, x := range names {
		if name, _ := x.(string); !strings.Contains(name, "/") && name != "kubernetes" && name != "orphan" && name != "foregroundDeletion" {
			return fmt.Sprintf(
				"metadata.finalizers[%d]: Invalid value: %q: prepend finalizer name with domain: name is neither a standard one nor fully qualified",
				i,
				name,
			)
		}
	}
	return ""
}

// broken applies a rule to each field at a path.
func broken(in Object, path, before string, wrong func(any, Object) string) string {
	name, rest, deeper := strings.Cut(path, ".")
	key, isList := strings.CutSuffix(name, "[]")
	if !isList {
		if !deeper {
			if why := wrong(in[key], in); why != "" {
				return before + key + ": " + why
			}
			return ""
		}
		if inner, is := in[key].(Object); is {
			return broken(inner, rest, before+key+".", wrong)
		}
		return ""
	}
	list, _ := in[key].([]any)
	for i, x := range list {
		at := fmt.Sprintf("%s%s[%d]", before, key, i)
		if !deeper {
			if why := wrong(x, in); why != "" {
				return at + ": " + why
			}
			continue
		}
		if inner, is := x.(Object); is {
			if why := broken(inner, rest, at+".", wrong); why != "" {
				return why
			}
		}
	}
	return ""
}

// podOf returns the specification of the pods of an object, and its path; nil if it has none.
func podOf(o Object) (Object, string) {
	path := map[string]string{
		"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec", "Deployment": "spec.template.spec", "DaemonSet": "spec.template.spec",
		"StatefulSet": "spec.template.spec", "ReplicaSet": "spec.template.spec", "Job": "spec.template.spec", "ReplicationController": "spec.template.spec",
	}[text(o, "kind")]
	if group, _, _ := strings.Cut(text(o, "apiVersion"), "/"); path == "" || !slices.Contains([]string{"v1", "apps", "batch"}, group) {
		return nil, ""
	}
	spec, _ := value(o, strings.Split(path, ".")...).(Object)
	if spec == nil {
		spec = Object{}
	}
	return spec, path
}

const required = "Required value"

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case Object:
		return len(v) == 0
	}
	return false
}

func needed(v any, _ Object) string {
	if isEmpty(v) {
		return required
	}
	return ""
}

// among permits these values, or none.
func among(words ...string) func(any, Object) string {
	return func(v any, _ Object) string {
		if s, is := v.(string); is && s != "" && !slices.Contains(words, s) {
			return fmt.Sprintf("Unsupported value: %q: supported values: %q", s, words)
		}
		return ""
	}
}

// counted permits numbers that are not negative.
func counted(v any, _ Object) string {
	if n, is := number(v); is && n < 0 {
		return fmt.Sprintf("Invalid value: %v: must be greater than or equal to 0", v)
	}
	return ""
}

// portNumber permits the numbers and the names of ports.
func portNumber(v any, _ Object) string {
	if n, is := number(v); is && (n < 1 || n > 65535) {
		return fmt.Sprintf("Invalid value: %v: must be between 1 and 65535, inclusive", v)
	}
	if s, is := v.(string); is && !regex.Of(`^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`).MatchString(s) {
		return fmt.Sprintf("Invalid value: %q: must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)", s)
	}
	return ""
}

// isLabel reports whether a text is a DNS label (RFC 1123).
func isLabel(s string) bool { return regex.Of(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString(s) }

// isShare reports whether a text is a percentage.
func isShare(s string) bool { return regex.Of(`^[0-9]+%$`).MatchString(s) }

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// one permits exactly one of the fields of a mapping.
func one(fields ...string) func(any, Object) string {
	return func(_ any, in Object) string {
		set := 0
		for _, f := range fields {
			if in[f] != nil {
				set++
			}
		}
		switch {
		case set == 0:
			return "Required value: must specify one of: " + strings.Join(fields, ", ")
		case set > 1:
			return "Forbidden: may not specify more than 1"
		}
		return ""
	}
}
