package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// Annotations of this program, for settings of EKS that CAPA's types have no field for. Their
// values are "true" or "false".
const (
	ownAnnotations     = "clusterawsadm/"
	deletionProtection = "deletion-protection" // of an AWSManagedControlPlane
	zonalShift         = "zonal-shift"         // of an AWSManagedControlPlane
	forceUpdate        = "force-update"        // of an AWSManagedMachinePool
)

// annotationsOf lists the annotations of this program by kind, without their prefix.
func annotationsOf(kind string) []string {
	switch kind {
	case kindManagedPlane:
		return []string{deletionProtection, zonalShift}
	case kindManagedPool:
		return []string{forceUpdate}
	}
	return nil
}

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

// flag returns the value of an annotation of this program; nil if the object does not have it.
func (l *loader) flag(o *object, name string) *bool {
	if o == nil {
		return nil
	}
	all, _ := valueAt(o.value, "metadata.annotations").(map[string]any)
	value, set := all[ownAnnotations+name]
	if !set {
		return nil
	}
	on := value == "true"
	if !on && value != "false" {
		l.fail(o.problem("metadata.annotations", fmt.Sprintf("the annotation %s%s is %q", ownAnnotations, name, value), `set it to "true" or "false"`))
	}
	return &on
}
