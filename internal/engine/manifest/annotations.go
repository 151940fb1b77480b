package manifest

import (
	"fmt"
	"strings"
)

// Annotations of this program, for settings that CAPA's types have no field for.
const (
	OwnAnnotations = "clusterawsadm/"

	// Of an AWSCluster or an AWSManagedControlPlane.
	AnnotationDeletionProtection = "deletion-protection"

	// Of an AWSManagedControlPlane.
	AnnotationAddonPodIdentities = "addon-pod-identities"
	AnnotationAutoMode           = "auto-mode"
	AnnotationAutoModeRole       = "auto-mode-role"
	AnnotationControlPlaneTier   = "control-plane-tier"
	AnnotationKarpenter          = "karpenter"
	AnnotationNATAddresses       = "nat-addresses-in-public-cidrs"
	AnnotationPodIdentities      = "pod-identity-associations"
	AnnotationRemoteNodeNetworks = "remote-node-networks"
	AnnotationRemotePodNetworks  = "remote-pod-networks"
	AnnotationZonalShift         = "zonal-shift"

	// Of an AWSManagedMachinePool.
	AnnotationInstanceTypes      = "instance-types"
	AnnotationRepairMaxParallel  = "node-repair-max-parallel"
	AnnotationRepairMaxUnhealthy = "node-repair-max-unhealthy"
	AnnotationUpdateStrategy     = "update-strategy"

	AnnotationForceUpdate = "force-update" // of both

	// Of the object with the network: an AWSCluster or an AWSManagedControlPlane.
	AnnotationFlowLogs        = "flow-logs"
	AnnotationFlowLogsRole    = "flow-logs-role"
	AnnotationFlowLogsTraffic = "flow-logs-traffic"
)

// AnnotationsOf lists the annotations of this program by kind, without their prefix.
func AnnotationsOf(kind string) []string {
	switch kind {
	case KindAWSCluster:
		return []string{AnnotationDeletionProtection, AnnotationFlowLogs, AnnotationFlowLogsRole, AnnotationFlowLogsTraffic}
	case KindManagedPlane:
		return []string{
			AnnotationAddonPodIdentities,
			AnnotationAutoMode,
			AnnotationAutoModeRole,
			AnnotationControlPlaneTier,
			AnnotationDeletionProtection,
			AnnotationFlowLogs,
			AnnotationFlowLogsRole,
			AnnotationFlowLogsTraffic,
			AnnotationForceUpdate,
			AnnotationKarpenter,
			AnnotationNATAddresses,
			AnnotationPodIdentities,
			AnnotationRemoteNodeNetworks,
			AnnotationRemotePodNetworks,
			AnnotationZonalShift,
		}
	case KindManagedPool:
		return []string{AnnotationForceUpdate, AnnotationInstanceTypes, AnnotationRepairMaxParallel, AnnotationRepairMaxUnhealthy, AnnotationUpdateStrategy}
	}
	return nil
}

// AnnotationPath is the path of an annotation of this program in its object.
func AnnotationPath(name string) string { return InAnnotations + OwnAnnotations + name }

// Annotation returns an annotation of this program; set is false if the object does not have it.
func (o *Entry) Annotation(name string) (value string, set bool) {
	if o == nil {
		return "", false
	}
	all, _ := ValueAt(o.Value, "metadata.annotations").(map[string]any)
	value, set = all[OwnAnnotations+name].(string)
	return value, set
}

// AnnotationProblem returns a problem of the value of an annotation of this program.
func (o *Entry) AnnotationProblem(name, what, fix string) Problem {
	value, _ := o.Annotation(name)
	if strings.Contains(strings.TrimSpace(value), "\n") { // a list
		return o.ProblemOf(OwnAnnotations+name, fmt.Sprintf("the annotation %s%s: %s", OwnAnnotations, name, what), fix)
	}
	return o.ProblemOf(OwnAnnotations+name, fmt.Sprintf("the annotation %s%s is %q: %s", OwnAnnotations, name, value, what), fix)
}

// ProblemOf returns a problem of an annotation, at the line of the annotation. annotation is its full name.
func (o *Entry) ProblemOf(annotation, what, fix string) Problem {
	p := o.Problem("metadata.annotations", what, fix)
	p.Position = o.Position(InAnnotations + annotation)
	return p
}
