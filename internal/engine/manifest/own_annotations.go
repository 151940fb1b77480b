package manifest

import "fmt"

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

// annotation returns an annotation of this program; set is false if the object does not have it.
func (o *object) annotation(name string) (value string, set bool) {
	if o == nil {
		return "", false
	}
	all, _ := valueAt(o.value, "metadata.annotations").(map[string]any)
	value, set = all[ownAnnotations+name].(string)
	return value, set
}

// annotationProblem returns a problem of the value of an annotation of this program.
func (o *object) annotationProblem(name, what, fix string) Problem {
	value, _ := o.annotation(name)
	return o.problem("metadata.annotations", fmt.Sprintf("the annotation %s%s is %q: %s", ownAnnotations, name, value, what), fix)
}
