package class

import (
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// healthCheck is the field healthCheck of the topology or of the class.
type healthCheck struct {
	defined bool
	value   any
	at      Place
}

// healthChecks creates the MachineHealthChecks of the control plane and of MachineDeployments.
func (e *expander) healthChecks() {
	if e.planeMachine != nil {
		own, class := e.topology.ControlPlane.HealthCheck, e.class.Spec.ControlPlane.HealthCheck
		name, _ := valueAt(e.plane.Value, "metadata", "name").(string)
		e.addHealthCheck(name, map[string]string{clusterv1.MachineControlPlaneLabel: ""}, own.Enabled,
			healthCheck{own.IsDefined(), own, e.inCluster("controlPlane.healthCheck")},
			healthCheck{class.IsDefined(), class, e.inClass("controlPlane.healthCheck")})
	}
	for n, d := range e.deployments {
		own := d.topology.HealthCheck
		class, c := e.classOf(d.topology.Class)
		e.addHealthCheck(d.typed.Name, map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: d.topology.Name}, own.Enabled,
			healthCheck{own.IsDefined(), own, e.inCluster(indexed("workers.machineDeployments", n)).Below("healthCheck")},
			healthCheck{class.HealthCheck.IsDefined(), class.HealthCheck, e.inClass(indexed("workers.machineDeployments", c)).Below("healthCheck")})
	}
}

// addHealthCheck adds the MachineHealthCheck for the machines with these labels: that of the
// topology, or that of the class if the topology has none. The two are not merged.
func (e *expander) addHealthCheck(name string, selector map[string]string, enabled *bool, own, class healthCheck) {
	from := own
	if !own.defined {
		from = class
	}
	if !from.defined && enabled != nil && *enabled { // validateMachineHealthChecks of the Cluster webhook
		e.fail(own.at, "is enabled, and neither the topology nor the class says what it checks", "set checks, or remove enabled")
		return
	}
	if !from.defined || enabled != nil && !*enabled {
		return
	}
	at := from.at
	spec, err := toUntyped(from.value)
	if err != nil {
		e.fail(at, err.Error(), "")
		return
	}
	delete(spec, "enabled")
	if remediation, _ := spec["remediation"].(map[string]any); remediation != nil {
		delete(remediation, "maxInFlight") // it is a field of the MachineDeployment
		if len(remediation) == 0 {
			delete(spec, "remediation")
		}
	}
	labels := map[string]any{clusterv1.ClusterTopologyOwnedLabel: ""}
	maps.Copy(labels, anyMap(selector))
	spec["clusterName"], spec["selector"] = e.cluster.Name, map[string]any{"matchLabels": labels}
	metadata := map[string]any{"name": name, "labels": anyMap(e.owned())}
	if e.cluster.Namespace != "" {
		metadata["namespace"] = e.cluster.Namespace
	}
	o := &Object{Places: map[string]Place{}, Value: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(), "kind": "MachineHealthCheck", "metadata": metadata, "spec": spec,
	}}
	o.recordPlaces(o.Value, "", func(path string) Place {
		for _, part := range []string{"checks", "remediation"} {
			if isBelow(path, "spec."+part) {
				return at.Below(path[len("spec."):])
			}
		}
		return at
	})
	e.checks = append(e.checks, o)
}
