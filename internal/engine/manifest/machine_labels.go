package manifest

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SelectsMachines reports whether a check selects a machine.
func (c *Cluster) SelectsMachines(check *clusterv1.MachineHealthCheck) bool {
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	if err != nil {
		return true // reported already
	}
	for _, of := range c.MachineLabels() {
		if selector.Matches(labels.Set(of)) {
			return true
		}
	}
	return false
}

// MachineLabels returns the labels that Cluster API's controllers set on the Machines of
// the control plane and of MachineDeployments, and those of stand-alone Machines, by the name
// of the object. Labels of MachineSets are not among them.
func (c *Cluster) MachineLabels() map[string]map[string]string {
	all := map[string]map[string]string{}
	add := func(name string, own, more map[string]string) {
		of := map[string]string{clusterv1.ClusterNameLabel: c.Name}
		maps.Copy(of, own)
		maps.Copy(of, more)
		all[name] = of
	}
	if p := c.ControlPlane; p != nil {
		add(p.Object.Name, p.Object.Spec.MachineTemplate.ObjectMeta.Labels, map[string]string{
			clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: p.Object.Name,
		})
	}
	for _, d := range c.Deployments {
		add(d.Object.Name, d.Object.Spec.Template.Labels, map[string]string{clusterv1.MachineDeploymentNameLabel: d.Object.Name})
	}
	for _, m := range c.Machines {
		add(m.Object.Name, m.Object.Labels, nil)
	}
	return all
}

// UnhealthyRange parses remediation.triggerIf.unhealthyInRange: "[1-3]".
func UnhealthyRange(text string) (least, most int, err error) {
	low, high, ok := strings.Cut(strings.Trim(text, "[]"), "-")
	if !ok {
		return 0, 0, errors.New("is not a range such as [1-3]")
	}
	if least, err = strconv.Atoi(low); err == nil {
		most, err = strconv.Atoi(high)
	}
	switch {
	case err != nil:
		return 0, 0, errors.New("is not a range such as [1-3]")
	case most < least:
		return 0, 0, errors.New("the end of the range is before its start")
	}
	return least, most, nil
}
