package loader

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// checkAnnotations reports annotations of this program that do not exist.
func (l *loader) checkAnnotations() {
	for _, o := range l.objects {
		all, _ := manifest.ValueAt(o.Value, "metadata.annotations").(map[string]any)
		for _, annotation := range slices.Sorted(maps.Keys(all)) {
			name, own := strings.CutPrefix(annotation, manifest.OwnAnnotations)
			if known := manifest.AnnotationsOf(o.Kind); own && !slices.Contains(known, name) {
				l.fail(o.ProblemOf(annotation, fmt.Sprintf("%s has no annotation %s", o.Kind, annotation), cmp.Or(suggest.DidYouMean(name, known), "remove it")))
			}
		}
	}
}

// flag returns the value of an annotation that is "true" or "false"; nil if the object does not have it.
func (l *loader) flag(o *manifest.Entry, name string) *bool {
	value, set := o.Annotation(name)
	if !set {
		return nil
	}
	on := value == "true"
	if !on && value != "false" {
		l.fail(o.AnnotationProblem(name, "it is neither true nor false", `set it to "true" or "false"`))
	}
	return &on
}

// choice returns the value of an annotation that is one of the Values of its FieldAnnotation; "" if the object does not have it.
func (l *loader) choice(o *manifest.Entry, name string) string {
	value, set := o.Annotation(name)
	if words := fieldAnnotation(o.Kind, name).Values; set && !slices.Contains(words, value) {
		l.fail(o.AnnotationProblem(name, "there is no such value", cmp.Or(suggest.DidYouMean(value, words), "set it to one of "+strings.Join(words, ", "))))
	}
	return value
}

// list returns the values of an annotation that is a list with commas.
func (l *loader) list(o *manifest.Entry, name string) (values []string, set bool) {
	value, set := o.Annotation(name)
	for _, v := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		if slices.Contains(values, v) {
			l.fail(o.AnnotationProblem(name, v+" is in it twice", "name it once"))
		}
		values = append(values, v)
	}
	return values, set
}
