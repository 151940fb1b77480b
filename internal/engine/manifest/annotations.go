package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// checkAnnotations reports annotations of this program that do not exist.
func (l *loader) checkAnnotations() {
	for _, o := range l.objects {
		all, _ := valueAt(o.value, "metadata.annotations").(map[string]any)
		for _, annotation := range slices.Sorted(maps.Keys(all)) {
			name, own := strings.CutPrefix(annotation, ownAnnotations)
			if known := annotationsOf(o.kind); own && !slices.Contains(known, name) {
				l.fail(o.problem("metadata.annotations", fmt.Sprintf("%s has no annotation %s", o.kind, annotation), cmp.Or(suggest.DidYouMean(name, known), "remove it")))
			}
		}
	}
}

// flag returns the value of an annotation that is "true" or "false"; nil if the object does not have it.
func (l *loader) flag(o *object, name string) *bool {
	value, set := o.annotation(name)
	if !set {
		return nil
	}
	on := value == "true"
	if !on && value != "false" {
		l.fail(o.annotationProblem(name, "it is neither true nor false", `set it to "true" or "false"`))
	}
	return &on
}

// choice returns the value of an annotation that is one of some words; "" if the object does not have it.
func (l *loader) choice(o *object, name string, words ...string) string {
	value, set := o.annotation(name)
	if set && !slices.Contains(words, value) {
		l.fail(o.annotationProblem(name, "there is no such value", cmp.Or(suggest.DidYouMean(value, words), "set it to one of "+strings.Join(words, ", "))))
	}
	return value
}

// list returns the values of an annotation that is a list with commas.
func (l *loader) list(o *object, name string) (values []string, set bool) {
	value, set := o.annotation(name)
	for _, v := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		if slices.Contains(values, v) {
			l.fail(o.annotationProblem(name, v+" is in it twice", "name it once"))
		}
		values = append(values, v)
	}
	return values, set
}
