package class

import (
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// healthCheck is the MachineHealthCheck of a control plane or of a MachineDeployment: that of
// the topology, or else that of the class. The two are not merged.
type healthCheck struct {
	name     string            // of its object, and of the object whose machines it checks
	selector map[string]string // labels of the machines
	own      bool              // the topology has one
	class    bool              // the class has one
	enabled  *bool             // in the topology; nil: true

	topology, classes any // the two, with the fields checks and remediation
	at, inClass       Place
}

// healthChecks creates the MachineHealthChecks.
func (e *expander) healthChecks() {
	if e.planeMachine != nil {
		own, class := e.topology.ControlPlane.HealthCheck, e.class.Spec.ControlPlane.HealthCheck
		name, _ := valueAt(e.plane.Value, "metadata", "name").(string)
		e.healthCheck(healthCheck{
			name: name, selector: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			own: own.IsDefined(), class: class.IsDefined(), enabled: own.Enabled, topology: own, classes: class,
			at: e.inCluster("controlPlane.healthCheck"), inClass: e.inClass("controlPlane.healthCheck"),
		})
	}
	for n, d := range e.deployments {
		own := d.topology.HealthCheck
		class, c := e.classOf(d.topology.Class)
		e.healthCheck(healthCheck{
			name: d.typed.Name, selector: map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: d.topology.Name},
			own: own.IsDefined(), class: class.HealthCheck.IsDefined(), enabled: own.Enabled, topology: own, classes: class.HealthCheck,
			at:      e.inCluster(indexed("workers.machineDeployments", n)).Below("healthCheck"),
			inClass: e.inClass(indexed("workers.machineDeployments", c)).Below("healthCheck"),
		})
	}
}

func (e *expander) healthCheck(h healthCheck) {
	if !h.own && !h.class || h.enabled != nil && !*h.enabled {
		return
	}
	from, at := h.classes, h.inClass
	if h.own {
		from, at = h.topology, h.at
	}
	spec, err := toUntyped(from)
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
	maps.Copy(labels, anyMap(h.selector))
	spec["clusterName"], spec["selector"] = e.cluster.Name, map[string]any{"matchLabels": labels}
	metadata := map[string]any{"name": h.name, "labels": anyMap(e.owned())}
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
