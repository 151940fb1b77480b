package manifest

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The time in which a machine has to become a Node (MachineHealthCheck,
// checks.nodeStartupTimeoutSeconds): the default, and the least.
const (
	nodeStartupTimeout      = 600
	leastNodeStartupTimeout = 30
)

// defaultHealthCheck sets the defaults of the MachineHealthCheck webhook.
func defaultHealthCheck(c *clusterv1.MachineHealthCheck) {
	set(&c.Labels, clusterv1.ClusterNameLabel, c.Spec.ClusterName)
	if c.Spec.Checks.NodeStartupTimeoutSeconds == nil {
		timeout := int32(nodeStartupTimeout)
		c.Spec.Checks.NodeStartupTimeoutSeconds = &timeout
	}
}

// validateHealthCheck applies the rules of the MachineHealthCheck webhook.
func validateHealthCheck(c *clusterv1.MachineHealthCheck) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	switch selector, err := metav1.LabelSelectorAsSelector(&c.Spec.Selector); {
	case err != nil:
		errs = append(errs, field.Invalid(spec.Child("selector"), "", err.Error()))
	case selector.Empty():
		errs = append(errs, field.Required(spec.Child("selector"), "it must not be empty"))
	}
	if name, ok := c.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel]; ok && name != c.Spec.ClusterName {
		errs = append(errs, field.Invalid(spec.Child("selector"), name, "selects machines of another cluster than spec.clusterName"))
	}
	if t := *c.Spec.Checks.NodeStartupTimeoutSeconds; t != 0 && t < leastNodeStartupTimeout {
		errs = append(errs, field.Invalid(spec.Child("checks", "nodeStartupTimeoutSeconds"), t, "must be at least 30 seconds, or 0 for no limit"))
	}
	trigger := spec.Child("remediation", "triggerIf")
	if most := c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo; most != nil {
		if _, err := intstr.GetScaledValueFromIntOrPercent(most, 100, false); err != nil {
			errs = append(errs, field.Invalid(trigger.Child("unhealthyLessThanOrEqualTo"), most.String(), "must be a number or a percentage"))
		}
	}
	if text := c.Spec.Remediation.TriggerIf.UnhealthyInRange; text != "" {
		if _, _, err := UnhealthyRange(text); err != nil {
			errs = append(errs, field.Invalid(trigger.Child("unhealthyInRange"), text, err.Error()))
		}
	}
	return errs
}

// resolveHealthChecks finds the MachineHealthChecks of the cluster.
func (l *loader) resolveHealthChecks() {
	for _, o := range l.ofKind(kindHealthCheck) {
		o.used = true
		c, ok := o.typed.(*clusterv1.MachineHealthCheck)
		if !ok || !l.belongs(o, c.Spec.ClusterName) {
			continue
		}
		_, paused := c.Annotations[clusterv1.PausedAnnotation]
		switch {
		case paused:
			l.warn(o.problem("metadata.annotations", "the annotation cluster.x-k8s.io/paused turns the check off", ""))
		case c.Spec.Remediation.TemplateRef.IsDefined():
			l.warn(
				o.problem(
					"spec.remediation.templateRef",
					"the check has no effect: external remediation needs a management cluster",
					"remove templateRef, so that unhealthy machines are replaced",
				),
			)
		case !l.cluster.selectsMachines(c):
			l.warn(o.problem("spec.selector", "the check has no effect: it selects no machine of the manifest", "change the labels"))
		default:
			l.cluster.HealthChecks = append(l.cluster.HealthChecks, c)
		}
	}
}

// selectsMachines reports whether a check selects a machine.
func (c *Cluster) selectsMachines(check *clusterv1.MachineHealthCheck) bool {
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
