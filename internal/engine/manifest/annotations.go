package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// Annotations of this program, for settings that CAPA's types have no field for.
const (
	ownAnnotations = "clusterawsadm/"

	// Of an AWSManagedControlPlane.
	addonPodIdentities = "addon-pod-identities"
	controlPlaneTier   = "control-plane-tier"
	deletionProtection = "deletion-protection"
	podIdentities      = "pod-identity-associations"
	remoteNodeNetworks = "remote-node-networks"
	remotePodNetworks  = "remote-pod-networks"
	zonalShift         = "zonal-shift"

	// Of an AWSManagedMachinePool.
	instanceTypes      = "instance-types"
	repairMaxParallel  = "node-repair-max-parallel"
	repairMaxUnhealthy = "node-repair-max-unhealthy"
	updateStrategy     = "update-strategy"

	forceUpdate = "force-update" // of both

	// Of the object with the network: an AWSCluster or an AWSManagedControlPlane.
	flowLogs        = "flow-logs"
	flowLogsRole    = "flow-logs-role"
	flowLogsTraffic = "flow-logs-traffic"
)

// annotationsOf lists the annotations of this program by kind, without their prefix.
func annotationsOf(kind string) []string {
	switch kind {
	case kindAWSCluster:
		return []string{flowLogs, flowLogsRole, flowLogsTraffic}
	case kindManagedPlane:
		return []string{
			addonPodIdentities,
			controlPlaneTier,
			deletionProtection,
			flowLogs,
			flowLogsRole,
			flowLogsTraffic,
			forceUpdate,
			podIdentities,
			remoteNodeNetworks,
			remotePodNetworks,
			zonalShift,
		}
	case kindManagedPool:
		return []string{forceUpdate, instanceTypes, repairMaxParallel, repairMaxUnhealthy, updateStrategy}
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

// annotation returns an annotation of this program; set is false if the object does not have it.
func (o *object) annotation(name string) (value string, set bool) {
	if o == nil {
		return "", false
	}
	all, _ := valueAt(o.value, "metadata.annotations").(map[string]any)
	value, set = all[ownAnnotations+name].(string)
	return value, set
}

// failAnnotation reports the value of an annotation of this program.
func (l *loader) failAnnotation(o *object, name, what, fix string) {
	value, _ := o.annotation(name)
	l.fail(o.problem("metadata.annotations", fmt.Sprintf("the annotation %s%s is %q: %s", ownAnnotations, name, value, what), fix))
}

// flag returns the value of an annotation that is "true" or "false"; nil if the object does not have it.
func (l *loader) flag(o *object, name string) *bool {
	value, set := o.annotation(name)
	if !set {
		return nil
	}
	on := value == "true"
	if !on && value != "false" {
		l.failAnnotation(o, name, "it is neither true nor false", `set it to "true" or "false"`)
	}
	return &on
}

// choice returns the value of an annotation that is one of some words; "" if the object does not have it.
func (l *loader) choice(o *object, name string, words ...string) string {
	value, set := o.annotation(name)
	if set && !slices.Contains(words, value) {
		l.failAnnotation(o, name, "there is no such value", cmp.Or(suggest.DidYouMean(value, words), "set it to one of "+strings.Join(words, ", ")))
	}
	return value
}

// list returns the values of an annotation that is a list with commas.
func (l *loader) list(o *object, name string) (values []string, set bool) {
	value, set := o.annotation(name)
	for _, v := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		if slices.Contains(values, v) {
			l.failAnnotation(o, name, v+" is in it twice", "name it once")
		}
		values = append(values, v)
	}
	return values, set
}
